"""Waiting and fairness on a trace: our queues beside first come first served and strict priority.

The trace is of one virtual cluster of Microsoft's Philly, as Gavel gives it (MIT): when jobs come,
how many GPUs they ask, what they train. What it does not say is stated here:

- A team is what a job trains: seven teams, each a queue of weight 1.
- Run times are drawn (`SEED`): 10**x minutes with x even from 1.5 to 4, half an hour to a week.
- Of three priorities each job has one, drawn evenly; only strict priority looks at them.
- The fleet is eight nodes of eight GPUs. A job of more than eight GPUs is a gang of pods with eight
  each, that start together.

Finish-time fairness is the time from coming to end that a team's jobs take, to what they would take
alone on their part of the fleet (`alone`; Mahajan et al., Themis, NSDI 2020): above 1 a team would
be better off by itself.

All three place by the same allocator, and what is kept for the first that does not fit is left
alone by what would delay it; they differ by the order alone.
"""

import csv
import os
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from benchmarks import record
from driver.cli.simulation import turns
from driver.resources import queues
from driver.scheduling.queues import engine, fair_share, tree
from driver.scheduling.queues import resources as queue_resources
from tests.support import snapshots
from tests.support.scenarios import replays

TRACE = "gavel_philly_11cb48.csv"
SEED = 42
NODES, A_NODE = 8, 8
HOUR = 3600.0
BOUND_S = 24 * HOUR
_ROOT = Path(__file__).parents[2]
_PRIORITIES = 3
_SHORT, _LONG = 1.5, 4.0
BUSY = slice(400, 900)
"""Jobs of the first weeks in which more is asked than there is."""
OURS, FIFO, STRICT = "ours", "FIFO", "strict priority"


@dataclass(frozen=True, slots=True)
class Row:
    """A job of the trace, and what was drawn for it. Times in seconds."""

    name: str
    team: str
    at: float
    gpus: int
    lasts: float
    priority: int


def folder() -> Path | None:
    """Where the trace is: `$RATION_TRACES`, or beside the checkout; None where it is not."""
    named = os.environ.get("RATION_TRACES")
    places = [Path(named)] if named else [_ROOT.parent / "shared" / "traces"]
    return next((one for one in places if (one / TRACE).is_file()), None)


def load(at: Path, seed: int = SEED) -> list[Row]:
    """The trace, with run times and priorities drawn by a seed."""
    of = random.Random(seed)  # noqa: S311 - no secret
    found = []
    for number, row in enumerate(csv.DictReader((at / TRACE).read_text().splitlines())):
        power = of.uniform(_SHORT, _LONG)
        found.append(
            Row(
                f"job-{number:04}",
                row["job_type"].partition(" (")[0],
                float(row["arrival_s"]),
                int(row["gpus"]),
                60 * 10**power,
                of.randrange(_PRIORITIES),
            )
        )
    return found


def job(row: Row, priority: int) -> turns.Job:
    """A job of the trace, of one pod or of several with eight GPUs each."""
    pods = -(-row.gpus // A_NODE)
    return replays.a_job(
        row.name,
        row.team,
        pods=pods,
        gpus=row.gpus // pods,
        time_s=row.at,
        lasts=row.lasts,
        priority=priority,
    )


def teams(rows: Sequence[Row]) -> list[queues.Queue]:
    """A queue each, of one weight."""
    names = sorted({row.team for row in rows})
    return [queues.Queue(name, starvation_s=BOUND_S) for name in names]


@dataclass
class Watch:
    """What teams have and what is exactly fair, summed over the time in which any job waits."""

    found: list[queues.Queue]
    sim: turns.JobScheduler | None = None
    has: dict[str, float] = field(default_factory=dict)
    fair: dict[str, float] = field(default_factory=dict)
    _known: dict[tuple[tuple[str, int, int], ...], Mapping[str, float]] = field(
        default_factory=dict
    )

    def __call__(self, since: float, until: float) -> None:
        """Time passes."""
        state = tuple(self.sim.queue_usage()) if self.sim and until > since else ()
        if not any(waits for _, _, waits in state):
            return
        if state not in self._known:
            self._known[state] = self._shares(state)
        for name, has, _ in state:
            fair_s = self._known[state][name] * (until - since)
            self.has[name] = self.has.get(name, 0.0) + has * (until - since)
            self.fair[name] = self.fair.get(name, 0.0) + fair_s

    def _shares(self, state: Sequence[tuple[str, int, int]]) -> Mapping[str, float]:
        whole = NODES * A_NODE * queue_resources.FULL
        demand = {name: Fraction(has + waits, whole) for name, has, waits in state}
        shares = fair_share.fair_shares(
            tree.build_tree(self.found), queue_resources.Amounts(whole), demand
        )
        return {name: float(share * whole) for name, share in shares.items()}


def alone(rows: Sequence[Row], teams: int) -> float:
    """Hours that a team's jobs would take together on its part of the fleet, one after another.

    As a fluid: what is left of a job's GPU time flows through all GPUs of the part. No job takes
    less than it runs.
    """
    rate = NODES * A_NODE / teams
    total = free = 0.0
    for row in rows:
        free = max(free, row.at) + row.gpus * row.lasts / rate
        total += max(free - row.at, row.lasts)
    return total / HOUR


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one order, by team: waits in hours, finish-time fairness, shares had to fair ones."""

    waits: Mapping[str, Sequence[float]]
    delays: Mapping[str, float]
    shares: Mapping[str, float]

    @property
    def all_waits(self) -> list[float]:
        """Of all teams."""
        return [wait for found in self.waits.values() for wait in found]

    @property
    def worst_team(self) -> float:
        """The mean wait of the team that waits longest, in hours."""
        return max(statistics.fmean(found) for found in self.waits.values())

    @property
    def jain(self) -> float:
        """Jain's index of shares had to fair ones: 1 where all teams come as near to theirs."""
        parts = [*self.shares.values()]
        return sum(parts) ** 2 / (len(parts) * sum(one * one for one in parts))


def play(rows: Sequence[Row], order: str) -> Outcome:
    """The trace by one order."""
    by = engine.QueueEngine(snapshots.DRIVER)
    found = teams(rows)
    for one in found if order == OURS else ():
        by.set_queue(one.name, one)
    watch = Watch(found)
    at = replays.a_desk({f"node-{number}": A_NODE for number in range(NODES)})
    watch.sim = turns.JobScheduler(at, by, turns.JobRules(told=watch))
    fates = watch.sim.run([job(row, row.priority if order == STRICT else 0) for row in rows])
    waits: dict[str, list[float]] = {one.name: [] for one in found}
    times = dict.fromkeys(waits, 0.0)
    for fate in fates:
        if fate.waited is None:
            raise AssertionError(fate.job.name)
        waits[fate.job.leaf].append(fate.waited / HOUR)
        times[fate.job.leaf] += (fate.waited + fate.job.duration_s) / HOUR
    by_team = {name: [row for row in rows if row.team == name] for name in waits}
    return Outcome(
        waits,
        {name: times[name] / alone(mine, len(found)) for name, mine in by_team.items()},
        {name: watch.has[name] / watch.fair[name] for name in waits if watch.fair.get(name)},
    )


def run(*, quick: bool) -> list[record.Figure]:
    """The figures; none, with a word, where the trace is not here. `quick`: some busy weeks."""
    at = folder()
    if at is None:
        print("the trace is not here: name its folder in $RATION_TRACES")
        return []
    rows = load(at)
    found = {order: play(rows[BUSY] if quick else rows, order) for order in ORDERS}
    for order, one in found.items():
        _tell(order, one)
    return [figure for other in ORDERS[1:] for figure in _beside(found[OURS], found[other], other)]


ORDERS = (OURS, FIFO, STRICT)


def _tell(order: str, one: Outcome) -> None:
    print(f"{order}: by team jobs, mean and longest wait in hours, time to alone, share to fair")
    for team, waits in one.waits.items():
        told = f"{statistics.fmean(waits):7.2f} {max(waits):8.2f} {one.delays[team]:6.2f}"
        print(f"  {team:16} {len(waits):5} {told} {one.shares.get(team, 1.0):6.2f}", flush=True)


def _beside(ours: Outcome, theirs: Outcome, name: str) -> list[record.Figure]:
    def figure(what: str, unit: str, mine: float, other: float) -> record.Figure:
        return record.figure(f"Gavel, {what} beside {name}", unit, [mine], [other], seed=SEED)

    p95 = [record.percentile(one.all_waits, 0.95) for one in (ours, theirs)]
    means = [statistics.fmean(one.all_waits) for one in (ours, theirs)]
    longest = [max(one.all_waits) for one in (ours, theirs)]
    delays = [max(one.delays.values()) for one in (ours, theirs)]
    least = [min(one.shares.values()) for one in (ours, theirs)]
    return [
        figure("mean wait", "h", *means),
        figure("p95 wait", "h", *p95),
        figure("longest wait", "h", *longest),
        figure("mean wait of the worst team", "h", ours.worst_team, theirs.worst_team),
        figure("finish-time fairness of the worst team", "x", *delays),
        figure("least share of a team to its fair one", "x", *least),
        figure("Jain's index of shares to fair ones", "", ours.jain, theirs.jain),
    ]
