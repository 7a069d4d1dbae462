"""Random trees of queues with a crowd of jobs in each leaf, and fleets where they have turns.

A crowd is closed: as soon as a job ends another comes, so that a queue always wants as many GPUs as
it has jobs. All jobs are of one GPU. They run six minutes on average, drawn evenly from three to
nine; queues' starvation bound is an hour, as it is by default.
"""

import itertools
import random  # noqa: TID251 - the draws of a test have a seed
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from driver.cli.simulation import scheduler, turns
from driver.resources import queues
from driver.scheduling.queues import engine, fair_share, tree
from driver.scheduling.queues import resources as queue_resources
from tests.support import snapshots
from tests.support.builders.queues import queue, some
from tests.support.scenarios import replays

GPUS = 16
HOUR = 3600.0
MINUTE = 60.0
SHORTEST, LONGEST = 3 * MINUTE, 9 * MINUTE
_BRANCHES = (2, 3)
_DEEP = 3


@dataclass(frozen=True)
class Forest:
    """Queues, and how many GPUs each leaf wants."""

    queues: tuple[queues.Queue, ...]
    wants: Mapping[str, int]

    def fair(self) -> dict[str, float]:
        """The exact weighted max-min shares of the leaves, in GPUs."""
        queue_tree = tree.build_tree(self.queues)
        demand = {leaf: Fraction(count, GPUS) for leaf, count in self.wants.items()}
        shares = fair_share.fair_shares(queue_tree, some(GPUS), demand)
        return {leaf: float(shares[leaf] * GPUS) for leaf in self.wants}


def draw(seed: int, half_life_s: float = 0.0) -> Forest:
    """A tree of two or three levels; what all deserve together is no more than there is."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    results: list[queues.Queue] = []
    left = GPUS
    for name, parent, is_leaf in _names(rng, "", 0):
        due = rng.choice([0, 0, rng.randint(1, 4)]) if is_leaf else 0
        due = min(due, left)
        left -= due
        limit = due + rng.randint(1, 6) if rng.random() < 0.2 else None
        created = queue(name, parent, weight=rng.randint(1, 4), deserved=due or None, limit=limit)
        results.append(replace(created, half_life_s=half_life_s))
    leaves = tree.build_tree(results).leaves
    wants = {leaf: rng.choice([GPUS, GPUS, rng.randint(1, 4)]) for leaf in leaves if leaf}
    return Forest(tuple(results), wants)


def _names(rng: random.Random, parent: str, depth: int) -> Iterator[tuple[str, str, bool]]:
    """Name, parent, whether it is a leaf."""
    for number in range(rng.choice(_BRANCHES)):
        name = f"{parent or 'q'}{number}"
        is_leaf = depth + 1 >= _DEEP or rng.random() < 0.6
        yield name, parent, is_leaf
        if not is_leaf:
            yield from _names(rng, name, depth + 1)


@dataclass
class Crowd:
    """The jobs of a forest: who comes at first, and who comes when one ends."""

    forest: Forest
    seed: int
    _of: random.Random = field(init=False)
    _numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._of = random.Random(self.seed)  # noqa: S311 - no secret
        self._numbers = itertools.count()

    def first(self) -> list[turns.Job]:
        return [
            self.one(leaf, 0.0) for leaf, count in self.forest.wants.items() for _ in range(count)
        ]

    def then(self, job: turns.Job, now: float) -> Iterable[turns.Job]:
        return (self.one(job.leaf, now),)

    def one(self, leaf: str, time_s: float, priority: int = 0) -> turns.Job:
        lasts = self._of.uniform(SHORTEST, LONGEST)
        name = f"{leaf}-{next(self._numbers)}"
        return replays.a_job(name, leaf, time_s=time_s, lasts=lasts, priority=priority)


@dataclass
class Watch:
    """GPUs of each queue, on average over a window of time."""

    by: engine.QueueEngine
    since: float
    until: float
    sums: dict[str, float] = field(default_factory=dict)

    def __call__(self, since: float, until: float) -> None:
        seconds = min(until, self.until) - max(since, self.since)
        if seconds > 0:
            for name in self.by.tree.accepted:
                used = self.by.usage(name).gpus / queue_resources.FULL
                self.sums[name] = self.sums.get(name, 0.0) + used * seconds

    def mean(self, name: str) -> float:
        return self.sums.get(name, 0.0) / (self.until - self.since)


def seated(forest: Forest) -> tuple[scheduler.SimulatedScheduler, engine.QueueEngine]:
    """Two nodes of eight GPUs, and the engine with the queues."""
    queue_engine = engine.QueueEngine(snapshots.DRIVER)
    for item in forest.queues:
        queue_engine.set_queue(item.name, item)
    return replays.a_desk({"node-a": GPUS // 2, "node-b": GPUS // 2}), queue_engine


def course(forest: Forest, seed: int, since: float, until: float) -> dict[str, float]:
    """Return how far each leaf's average use is from its exact share, in GPUs.

    At first one leaf has every GPU; all that others want waits since then.
    """
    simulated_scheduler, by = seated(forest)
    watch = Watch(by, since, until)
    crowd = Crowd(forest, seed)
    sim = turns.JobScheduler(simulated_scheduler, by, turns.JobRules(then=crowd.then, told=watch))
    hog = max(forest.wants, key=lambda leaf: (forest.wants[leaf], leaf))
    jobs = crowd.first()
    mine = [job for job in jobs if job.leaf == hog]
    for item in mine:
        sim.set_running(item)
    sim.run([job for job in jobs if job.leaf != hog], until)
    return {leaf: watch.mean(leaf) - share for leaf, share in forest.fair().items()}
