"""Soak the whole driver with real pods: `python -m tests.soak.pods`, or `make soak`'s last part.

A cluster of its own, real kubelets and containers, the load and the faults of `tests.chaos`, a
fault a minute. Exit code 0: every invariant held and no process of ours grew; 1: otherwise.
"""

import argparse
import dataclasses
import functools
import itertools
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from driver import errors
from hack.cluster import api
from tests.chaos import __main__ as chaos
from tests.chaos import draw, load, run, world
from tests.fakes import kubelet
from tests.soak import report, samples, verdict
from tests.soak import rush as rushing

PODS, AT_ONCE, FAULT_S = 2_500, 24, 60.0
HOLD_S = 0.5, 4.0
"""Seconds that a pod runs: the shorter, the more of them a process has had when it is judged."""
SAMPLE_S = 4.0
_NOBODY = 1 << 30
KILLING = 0.2
"""Of the pods: what is judged afterwards is one life of each process."""
RUSH_S = 3.0
"""For how long the calls of a rush get no answer from the API server."""
SHORT_LIVES = frozenset(
    {
        *(draw.Kind.PLUGIN_KILLED, draw.Kind.SUPERVISOR_KILLED, draw.Kind.NODE_REBOOTED),
        *(draw.Kind.LEADER_KILLED, draw.Kind.STANDBY_KILLED, draw.Kind.LEADER_FROZEN),
        *(draw.Kind.LEADER_PARTITIONED, draw.Kind.STANDBY_FROZEN, draw.Kind.API_HALF_OPEN),
        *(draw.Kind.API_SERVER_KILLED, draw.Kind.ETCD_KILLED, draw.Kind.API_REFUSES),
        *(draw.Kind.API_DROPS,),
    }
)
"""Faults that a process of ours may end by: a leader that cannot renew its Lease ends itself."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Options: how many pods, a fault how often, all drawn by the seed."""

    seed: int
    pods: int
    fault_s: float


@dataclass(frozen=True, slots=True)
class Steps:
    """Progress of the load: pods so far, and whether all have gone; and how a rush is made."""

    made: Callable[[], int]
    done: Callable[[], bool]
    rush: Callable[[], None]


def paced(request: Asked, steps: Steps) -> Iterator[draw.Fault]:
    """A fault so often until all pods have gone.

    What a process of ours may end by comes early: what is judged afterwards is one life of each.
    Then comes the `rush`, so that each has as many threads and connections as it will ever have.
    """
    every = frozenset(draw.Kind)
    early = draw.faults(request.seed, every)
    late = draw.faults(request.seed, every - SHORT_LIVES)
    rushed = False
    for number in itertools.count():
        if steps.done():
            return
        killing = steps.made() < KILLING * request.pods
        if not killing and not rushed:
            rushed = True
            steps.rush()
        fault = next(early if killing else late)
        yield dataclasses.replace(fault, number=number, pause_s=request.fault_s)


def rush(source: world.World) -> None:
    """Calls for a whole node at once, on each, and no API server."""
    for side in source.nodes:
        with kubelet.Kubelet(side.places.kubelet) as asking:
            plugin = asking.reach()
            source.proxies[side.name].dig(RUSH_S)
            for call in rushing.start(plugin):
                call.result()


class Soak:
    """A run with samples of every process of ours meanwhile."""

    def __init__(self, request: Asked) -> None:
        self._asked = request
        self.run: run.Run | None = None
        self.rush: Callable[[], None] = lambda: None
        self.sampler = samples.Sampler({})

    def faults(self) -> Iterator[draw.Fault]:
        """Until all pods have come and gone."""
        work = self._of().load
        steps = Steps(lambda: work.counts.made["pods"], lambda: work.done, self.rush)
        yield from paced(self._asked, steps)

    def _of(self) -> run.Run:
        if self.run is None:
            raise RuntimeError("faults are asked for before the run is there")
        return self.run

    def sample(self, source: world.World, stop: threading.Event) -> None:
        """A thread's target: looks at every process of ours, until told to stop."""
        cluster, time = source.cluster, source.time
        result: dict[str, Callable[[], int]] = {
            verdict.LEADER: functools.partial(_pid_of, cluster, source.holder),
            "standby controller": functools.partial(_pid_of, cluster, source.standby),
        }
        for side, component in itertools.product(source.nodes, world.OURS):
            pid = functools.partial(_pid, cluster, component, side.name)
            result[f"{component} of {side.name}"] = pid
        self.sampler = samples.Sampler(result)
        began = time.monotonic()
        while not time.wait(stop, SAMPLE_S):
            self.sampler.look(time.monotonic() - began, self._of().prepared)


def _pid(cluster: api.Cluster, component: str, node: str | None) -> int:
    """Return a pid that no process has."""
    return cluster.pid(component, node) or _NOBODY


def _pid_of(cluster: api.Cluster, who: Callable[[], str]) -> int:
    """Return the pid of the leading controller: one that takes the lead is warm only later."""
    try:
        name = who()
    except errors.ApiError:  # nobody knows, for a moment
        return _NOBODY
    return _pid(cluster, name, None) if name else _NOBODY


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, judge, record."""
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, chaos.end)
    chaos.KEEP.mkdir(parents=True, exist_ok=True)
    soak = Soak(Asked(chosen.seed, chosen.pods, chosen.fault_seconds))
    measure = load.Measure(AT_ONCE, chosen.pods, HOLD_S)
    request = run.Asked(chosen.seed, soak.faults(), False, chaos.KEEP, measure)  # noqa: FBT003 - as named there
    with chaos.cluster() as up, tempfile.TemporaryDirectory() as folder:
        with world.opened(up, Path(folder)) as opened:
            soak.run, soak.rush = (
                run.Run(opened, request, chaos.say),
                functools.partial(rush, opened),
            )
            soak.run.beside.append(lambda stop: soak.sample(opened, stop))
            soak.run.go()
        return told(soak, chosen.pods)


def told(soak: Soak, pods: int) -> int:
    """Say and record what became of it."""
    book, growths = soak.run.book if soak.run else None, soak.sampler.growths()
    if book is None:
        return 1
    chaos.say(book.text())
    for growth in growths:
        chaos.say(growth.text)
    good = book.good and not verdict.any_grows(growths)
    if pods >= PODS:
        per_s = book.pods / book.seconds
        record.write(
            "soak_pods",
            [
                record.figure("pods", "", [book.pods], seed=book.seed),
                record.figure("pods a second", "/s", [per_s], seed=book.seed),
                record.figure("claims prepared", "", [len(book.prepared)], seed=book.seed),
                record.figure("faults", "", [book.faults], seed=book.seed),
                record.figure("breaches", "", [len(book.broken)], seed=book.seed),
                record.figure("hardware in two claims", "", [book.overlaps]),
                *(report.figure(item, book.seed) for item in growths),
            ],
        )
    chaos.say("good" if good else "NOT GOOD")
    return 0 if good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.pods", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--pods", type=int, default=PODS, help="how many in all")
    parser.add_argument("--seed", type=int, default=chaos.SEED, help="draws pods and faults")
    parser.add_argument("--fault-seconds", type=float, default=FAULT_S, help="a fault so often")
    return parser


if __name__ == "__main__":
    sys.exit(main())
