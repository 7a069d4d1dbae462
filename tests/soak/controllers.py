"""Soak the controllers: `python -m tests.soak.controllers`, or `make soak`'s second part.

Pods with claims of every kind come and go on nodes that are API objects: the API server,
kube-scheduler, the claims' controller and both of ours are real, and nobody runs the pods. What a
controller remembers of pods, claims and decisions is bounded; thousands of pods fill it, and no
more than that may it take. Exit code 0: every pod was bound and no process grew; 1: otherwise.
"""

import argparse
import contextlib
import functools
import itertools
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import record
from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture, rounds
from driver import clock, errors
from driver.kube import client, gvr
from hack.cluster import api
from tests.chaos import __main__ as chaos
from tests.chaos import asks, world
from tests.chaos.never import NEVER
from tests.soak import report, samples, verdict

PODS, RATE, SEED = 20_000, 12.0, 20261122
NODES, LANES = 24, 24
SAMPLES, SHORTEST_S = 240, 1.0
HOLD_S = 1.0
BOUND_S = 120.0
_PLACED = {"nodeSelector": fixture.LANE, "terminationGracePeriodSeconds": 0}


@dataclass(frozen=True, slots=True)
class Asked:
    """Options: pods in all, and a second; 0: as fast as it goes."""

    seed: int
    pods: int
    rate: float

    @property
    def sample_s(self) -> float:
        """Seconds between two samples."""
        return max(SHORTEST_S, self.pods / self.rate / SAMPLES) if self.rate else SHORTEST_S


@dataclass
class Ledger:
    """Pods that were bound and have gone, by form and face; `broken` says what went wrong."""

    gone: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def pods(self) -> int:
        """Number of pods that have gone."""
        return self.gone.total()


class Load:
    """Workloads one after the other in each of many lanes, at a rate of all together."""

    def __init__(
        self, kube: client.KubeClient, request: Asked, seen: fixture.Seen, time: clock.Clock
    ) -> None:
        self._kube = kube
        self._asked = request
        self._seen = seen
        self._time = time
        self._lock = threading.Lock()
        self._drawn = asks.asks(request.seed)
        self._planned = 0
        self._began = self._time.monotonic()
        self.book = Ledger()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self._time.monotonic() - self._began

    def lane(self) -> None:
        """Run workloads until there are enough, or something went wrong; a thread's target."""
        while not self.book.broken and (planned := self._next()) is not None:
            due_s, work = planned
            self._time.wait(NEVER, max(0.0, due_s - self.elapsed_s))
            try:
                self._live(work)
            except (errors.ApiError, RuntimeError) as e:
                self.book.broken.append(f"{work.name}, {work.form} {work.face}: {e}")
                return
            with self._lock:
                self.book.gone[f"{work.form} {work.face}"] += work.pods
                self.book.seconds = self.elapsed_s

    def _next(self) -> tuple[float, asks.Ask] | None:
        """Return the next workload and when it is due, in seconds from the start."""
        with self._lock:
            if self._planned >= self._asked.pods:
                return None
            work = next(work for work in self._drawn if work.form is not asks.Form.ADMIN)
            due_s = self._planned / self._asked.rate if self._asked.rate else 0.0
            self._planned += work.pods
            return due_s, work

    def _live(self, work: asks.Ask) -> None:
        kind, body = (
            (gvr.RESOURCE_CLAIMS, asks.claim(work))
            if work.claim
            else (gvr.RESOURCE_CLAIM_TEMPLATES, asks.template(work))
        )
        self._kube.create(kind, body, fixtures.NAMESPACE)
        for name in work.pod_names:
            self._kube.create(gvr.PODS, _pod(work, name), fixtures.NAMESPACE)
        self._seen.wait(work.pod_names, BOUND_S)
        self._time.wait(NEVER, HOLD_S)
        for name in work.pod_names:
            self._kube.delete(gvr.PODS, name, fixtures.NAMESPACE)
        self._kube.delete(kind, body["metadata"]["name"], fixtures.NAMESPACE)


def _pod(work: asks.Ask, name: str) -> dict[str, Any]:
    body = asks.pod(work, name)
    return {**body, "spec": {**body["spec"], **_PLACED}}


class Soak:
    """Lanes of a load, and samples of every controller meanwhile; `pids` are by role."""

    def __init__(self, pids: dict[str, int], load: Load, request: Asked) -> None:
        self._load = load
        self._asked = request
        self._time = clock.SystemClock()
        self.sampler = samples.Sampler(
            {role: functools.partial(int, pid) for role, pid in pids.items()}
        )

    def run(self) -> None:
        """Return when all pods have come and gone."""
        lanes = [threading.Thread(target=self._load.lane, daemon=True) for _ in range(LANES)]
        for lane in lanes:
            lane.start()
        for number in itertools.count(1):
            if not any(lane.is_alive() for lane in lanes):
                return
            self._time.wait(NEVER, self._asked.sample_s)
            self.sampler.look(self._load.elapsed_s, self.book.pods)
            if number % 10 == 0:
                chaos.say(self._progress())

    def _progress(self) -> str:
        done = f"{self._load.elapsed_s:6.0f} s  {self.book.pods:6d} of {self._asked.pods} pods"
        each = (f"{role}: {self.sampler.last(role)}" for role in self.sampler.taken)
        return "  ".join([done, *each])

    @property
    def book(self) -> Ledger:
        """The load's account."""
        return self._load.book


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, judge, record."""
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, chaos.end)
    request = Asked(chosen.seed, chosen.pods, chosen.rate)
    with chaos.cluster() as cluster, _fleet(cluster) as kube:
        seen, pids = fixture.Seen(kube), _pids(cluster, kube)
        soak = Soak(pids, Load(kube, request, seen, clock.SystemClock()), request)
        soak.run()
        seen.close()
        if (after := _pids(cluster, kube)) != pids:
            soak.book.broken.append(f"the controllers were {pids}, and are {after}")
        return _report(soak, request)


def _pids(cluster: api.Cluster, kube: client.KubeClient) -> dict[str, int]:
    """Return the pid of each controller: nothing here makes another one lead."""
    lease = kube.get(gvr.LEASES, "ration-controller", "ration-system")
    holder = str(lease["spec"]["holderIdentity"])
    roles = {
        verdict.LEADER if holder.startswith(name) else "standby controller": name
        for name in world.CONTROLLERS
    }
    return {role: cluster.pid(name) or 0 for role, name in sorted(roles.items())}


@contextlib.contextmanager
def _fleet(cluster: api.Cluster) -> Iterator[client.KubeClient]:
    """Nodes with every face, whose pods nobody runs; all of it goes with the cluster."""
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-soak")
    with contextlib.ExitStack() as ends:
        for component, flags in rounds.QUICKER.items():
            ends.enter_context(cluster.with_flags(component, *flags))
        fixture.make_namespace(kube)
        fixture.fill(kube, NODES, fixtures.every_face("controller"))
        yield kube


def _report(soak: Soak, request: Asked) -> int:
    """Say and record what became of it."""
    book, growths = soak.book, soak.sampler.growths()
    if not book.broken and book.pods < request.pods:
        book.broken.append(f"{book.pods} of {request.pods} pods came and went")
    chaos.say(f"{book.pods} pods in {book.seconds:.0f} s: {dict(book.gone)}")
    for message in [*(growth.text for growth in growths), *book.broken]:
        chaos.say(message)
    good = not book.broken and not verdict.any_grows(growths)
    if request.pods >= PODS:
        record.write(
            "soak_controllers",
            [
                record.figure("pods", "", [book.pods], seed=request.seed),
                record.figure("pods a second", "/s", [book.pods / book.seconds], seed=request.seed),
                record.figure("breaches", "", [len(book.broken)], seed=request.seed),
                *(report.figure(growth, request.seed) for growth in growths),
            ],
        )
    chaos.say("good" if good else "NOT GOOD")
    return 0 if good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.controllers", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--pods", type=int, default=PODS, help="how many in all")
    parser.add_argument(
        "--rate", type=float, default=RATE, help="pods a second; 0: as fast as it goes"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="draws the pods and their claims")
    return parser


if __name__ == "__main__":
    sys.exit(main())
