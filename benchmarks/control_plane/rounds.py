"""Rounds of both sides in turn, on the same nodes: a burst of pods, then pods at a steady pace."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture
from driver.kube import client
from hack.cluster import api

_USUAL = 1_000
_WITHIN_S = 300.0
_SETTLE_S = 20.0
_LIMITS = ("--kube-api-qps=2000", "--kube-api-burst=4000")
QUICKER = {
    "kube-scheduler": _LIMITS,
    "kube-controller-manager": (*_LIMITS, "--controllers=*,-node-lifecycle-controller"),
}
"""What components run with meanwhile."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Asked:
    """How many nodes, pods of a burst, rounds of each side, and pods a second for how long.

    `kwok`: it plays the nodes' kubelets, so that they beat and pods run. `gate`: ours is measured
    behind the scheduling gate too.
    """

    nodes: int
    pods: int
    rounds: int
    pace: float
    pace_s: float
    kwok: bool
    gate: bool

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
    """What was measured of one side once.

    `rate`: pods bound a second in the burst; `..._ms`: CPU of a pod there. Of each pod at the pace
    the seconds from made to bound, and to Running with kwok.
    """

    rate: float
    scheduler_ms: float
    controller_ms: float
    bound_s: list[float]
    running_s: list[float]


class Bench:
    """The nodes are there, with plain devices, when a round of both sides begins and ends."""

    def __init__(self, cluster: api.Cluster, kube: client.KubeClient, asked: Asked) -> None:
        self._cluster = cluster
        self._kube = kube
        self._asked = asked

    def sides(self, number: int) -> list[Round]:
        """A round of theirs, one of ours, and one of ours with the gate."""
        with self._stopped():
            rounds = [self._round(f"theirs-{number}")]
        self._hand_over("controller")
        rounds.append(self._round(f"ours-{number}"))
        if self._asked.gate:
            with fixture.gated(self._kube):
                rounds.append(self._round(f"gated-{number}"))
        self._hand_over("scheduler")
        return rounds

    def _hand_over(self, allocator: str) -> None:
        fixture.hand_over(self._kube, self._asked.nodes, fixtures.whole(allocator))

    def _round(self, name: str) -> Round:
        """Both phases; every pod is taken away after each."""
        time.sleep(_SETTLE_S)
        pods = self._asked.pods
        seen = fixture.Seen(self._kube)
        try:
            before = self._cpu_ms()
            made = fixture.ask(self._kube, _names(f"{name}-burst", pods))
            seen.wait(made, _WITHIN_S)
            after = self._cpu_ms()
            rate = pods / (max(seen.bound[one] for one in made) - min(made.values()))
            fixture.clear(self._kube)
            paced = _names(f"{name}-paced", int(self._asked.pace * self._asked.pace_s))
            made = fixture.ask(self._kube, paced, self._asked.pace)
            seen.wait(made, _WITHIN_S, running=self._asked.kwok)
        finally:
            seen.close()
        fixture.clear(self._kube)
        found = Round(
            rate,
            (after[0] - before[0]) / pods,
            (after[1] - before[1]) / pods,
            [seen.bound[one] - at for one, at in made.items()],
            [seen.running[one] - at for one, at in made.items() if one in seen.running],
        )
        print(f"{name}: {_told(found)}", flush=True)
        return found

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
    made = [
        record.figure(
            f"{name}: pods bound",
            "pods/s",
            [one.rate for one in ours],
            [one.rate for one in theirs],
        ),
        record.figure(
            f"{name}: CPU of kube-scheduler",
            "ms/pod",
            [one.scheduler_ms for one in ours],
            [one.scheduler_ms for one in theirs],
        ),
        record.figure(
            f"{name}: CPU of our controllers", "ms/pod", [one.controller_ms for one in ours]
        ),
    ]
    for part, word in ((0.5, "p50"), (0.99, "p99")):
        made.append(
            record.figure(
                f"{name}: made to bound at {asked.pace:g} pods/s, {word}",
                "ms",
                [1000 * record.percentile(one.bound_s, part) for one in ours],
                [1000 * record.percentile(one.bound_s, part) for one in theirs],
            )
        )
        if asked.kwok:
            made.append(
                record.figure(
                    f"{name}: made to Running at {asked.pace:g} pods/s, {word}",
                    "ms",
                    [1000 * record.percentile(one.running_s, part) for one in ours],
                    [1000 * record.percentile(one.running_s, part) for one in theirs],
                )
            )
    return made


def _told(one: Round) -> str:
    p50, p99 = (record.percentile(one.bound_s, part) for part in (0.5, 0.99))
    return (
        f"{one.rate:.1f} pods/s, CPU a pod: kube-scheduler {one.scheduler_ms:.1f} ms, "
        f"our controllers {one.controller_ms:.1f} ms; at a pace {p50:.2f} s, p99 {p99:.2f} s"
    )


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def _cpu_ms(pid: int | None) -> float:
    """CPU a process has used; 0 of one that does not run."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS
