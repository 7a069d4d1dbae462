"""Rounds of both sides in turn, on the same nodes: bursts of pods, then pods at a steady pace."""

import collections
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks import record
from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture
from benchmarks.node import process
from driver.kube import client
from hack.cluster import api

_USUAL = 1_000
_WITHIN_S = 300.0
_SETTLE_S = 2.0
_FEW = 250
"""Of fewer pods the 99th percentile is that of one or two that kube-scheduler let wait a second."""
_STRETCH = 5
"""Pods in succession that wait for one pause: of up to a second, at the usual pace."""
_CENTER = statistics.geometric_mean
"""Of three rounds: every one counts, where a median would be a single one's."""
_LIMITS = ("--kube-api-qps=2000", "--kube-api-burst=4000")
QUICKER = {
    "kube-scheduler": _LIMITS,
    "kube-controller-manager": (*_LIMITS, "--controllers=*,-node-lifecycle-controller"),
}
"""What components run with meanwhile."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Numbers of nodes, pods of a burst, bursts of a round, rounds; pods a second for how long.

    `kwok`: it plays the nodes' kubelets, so that they beat and pods run. `gate`: ours is measured
    behind the scheduling gate too. `keep`: nodes and namespace stay.
    """

    nodes: int
    pods: int
    bursts: int
    rounds: int
    pace: float
    pace_s: float
    kwok: bool
    gate: bool
    keep: bool = False

    @property
    def suite(self) -> str:
        """What its results are stored as."""
        size = "" if self.nodes == _USUAL else f"_{self.nodes}"
        played = "_kwok" if self.kwok else ""
        return f"control_plane{size}{played}"

    @property
    def where(self) -> str:
        """For the names of figures."""
        played = ", their kubelets played by kwok" if self.kwok else ""
        return f"{self.nodes:,} nodes{played}"


@dataclass(frozen=True, slots=True)
class Round:
    """Measurements of one side's round.

    `rate`: pods bound a second in its bursts; `..._ms`: CPU of a pod there. Of each pod at the
    pace the seconds from made to bound, and to Running with kwok.
    """

    rate: float
    scheduler_ms: float
    controller_ms: float
    bound_s: list[float]
    running_s: list[float]


class Bench:
    """The nodes are there, with plain devices, when the first round of both sides begins."""

    def __init__(self, cluster: api.Cluster, kube: client.KubeClient, asked: Asked) -> None:
        self._cluster = cluster
        self._kube = kube
        self._asked = asked
        self._allocator = "scheduler"

    def sides(self, number: int) -> list[Round]:
        """A round of theirs, one of ours, and one of ours with the gate.

        The side that ended one round begins the next: a machine that gets slower for minutes is
        then as much of every side, and the devices are published anew less often.
        """
        sides = [self._theirs, self._ours, *([self._gated] if self._asked.gate else [])]
        order = collections.deque(range(len(sides)))
        order.rotate(number)
        measured = {index: sides[index](number) for index in order}
        return [measured[index] for index in range(len(sides))]

    def _theirs(self, number: int) -> Round:
        with self._stopped():
            self._publish("scheduler")
            return self._round(f"theirs-{number}")

    def _ours(self, number: int) -> Round:
        self._publish("controller")
        return self._round(f"ours-{number}")

    def _gated(self, number: int) -> Round:
        self._publish("controller")
        with fixture.gated(self._kube):
            return self._round(f"gated-{number}")

    def _publish(self, allocator: str) -> None:
        """Publish the devices for an allocator, if they are for the other."""
        if allocator != self._allocator:
            fixture.hand_over(self._kube, self._asked.nodes, fixtures.whole(allocator))
            self._allocator = allocator

    def _round(self, name: str) -> Round:
        """Measure both phases; every pod is taken away after each."""
        time.sleep(_SETTLE_S)
        seen = fixture.Seen(self._kube)
        try:
            bursts = [
                self._burst(seen, f"{name}-burst-{turn}") for turn in range(self._asked.bursts)
            ]
            paced = _names(f"{name}-paced", int(self._asked.pace * self._asked.pace_s))
            created = fixture.ask(self._kube, paced, self._asked.pace)
            seen.wait(created, _WITHIN_S, running=self._asked.kwok)
        finally:
            seen.close()
        fixture.clear(self._kube)
        rates, scheduler_ms, controller_ms = zip(*bursts, strict=True)
        measured = Round(
            statistics.median(rates),
            statistics.median(scheduler_ms),
            statistics.median(controller_ms),
            [seen.bound[pod] - moment for pod, moment in created.items()],
            [seen.running[pod] - moment for pod, moment in created.items() if pod in seen.running],
        )
        print(f"{name}: {_summary(measured)}", flush=True)
        return measured

    def _burst(self, seen: fixture.Seen, prefix: str) -> tuple[float, float, float]:
        """Return the pods bound a second, and the CPU of kube-scheduler and ours of a pod."""
        pods = self._asked.pods
        earlier = self._cpu_ms()
        created = fixture.ask(self._kube, _names(prefix, pods))
        seen.wait(created, _WITHIN_S)
        scheduler_ms, controller_ms = (
            (now - then) / pods for now, then in zip(self._cpu_ms(), earlier, strict=True)
        )
        rate = pods / (max(seen.bound[pod] for pod in created) - min(created.values()))
        fixture.clear(self._kube)
        return rate, scheduler_ms, controller_ms

    def _cpu_ms(self) -> tuple[float, float]:
        ours = sum(_cpu_ms(self._cluster.pid(name)) for name in self._cluster.controllers())
        return _cpu_ms(self._cluster.pid("kube-scheduler")), ours

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        """Our controllers do not run."""
        for name in self._cluster.controllers():
            self._cluster.stop(name)
        try:
            yield
        finally:
            for name in self._cluster.controllers():
                self._cluster.start(name)


def figures(
    asked: Asked, ours: list[Round], theirs: list[Round], how: str = ""
) -> list[record.Figure]:
    """What is recorded of our side beside theirs."""
    name = f"whole control plane, {asked.where}{how}"
    measured = [
        record.figure(
            f"{name}: pods bound",
            "pods/s",
            [side.rate for side in ours],
            [side.rate for side in theirs],
            center=_CENTER,
        ),
        record.figure(
            f"{name}: CPU of kube-scheduler and our controllers",
            "ms/pod",
            [side.scheduler_ms + side.controller_ms for side in ours],
            [side.scheduler_ms for side in theirs],
            center=_CENTER,
        ),
        record.figure(
            f"{name}: CPU of our controllers",
            "ms/pod",
            [side.controller_ms for side in ours],
            center=_CENTER,
        ),
    ]
    pace = f"at {asked.pace:g} pods/s"
    bound = [[side.bound_s for side in sides] for sides in (ours, theirs)]
    measured += _waits(f"{name}: made to bound {pace}", *bound)
    if asked.kwok:
        running = [[side.running_s for side in sides] for sides in (ours, theirs)]
        measured += _waits(f"{name}: made to Running {pace}", *running)
    return measured


def _waits(
    name: str, ours: list[list[float]], theirs: list[list[float]]
) -> Iterator[record.Figure]:
    """Return the rounds' medians and tails of the seconds that pods waited, in ms."""
    sides = [[[1000 * wait_s for wait_s in waits] for waits in rounds] for rounds in (ours, theirs)]
    medians = [[statistics.median(waits) for waits in rounds] for rounds in sides]
    yield record.figure(f"{name}, p50", "ms", *medians, center=_CENTER)
    quantile = 0.95 if sum(map(len, ours)) < _FEW else 0.99
    tails = [record.tails(rounds, _STRETCH, quantile) for rounds in sides]
    yield record.figure(f"{name}, p{100 * quantile:.0f}", "ms", *tails, center=_CENTER)


def _summary(side: Round) -> str:
    p50, p99 = (record.percentile(side.bound_s, part) for part in (0.5, 0.99))
    return (
        f"{side.rate:.1f} pods/s, CPU a pod: kube-scheduler {side.scheduler_ms:.1f} ms, "
        f"our controllers {side.controller_ms:.1f} ms; at a pace {p50:.2f} s, p99 {p99:.2f} s"
    )


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def _cpu_ms(pid: int | None) -> float:
    """Return the processor time of a process; 0 of one that does not run."""
    return 0.0 if pid is None else process.cpu_ms(pid)
