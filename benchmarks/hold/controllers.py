"""Controllers as processes: how many decisions a second, how soon the first, and a standby."""

import contextlib
import functools
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture
from benchmarks.hold import fleet, ground
from benchmarks.node import process
from tests.fakes import packaged

ROOT = Path(__file__).parents[2]
RATE_NODES, BURST, TURNS, ROUNDS = 500, 300, 2, 2
FULL_NODES, THERE, STARTS = 1_000, 5_000, 3
TAKEOVERS = 3
REST_S, STANDBY_S = 10.0, 15.0


@dataclass(frozen=True, slots=True)
class Bench:
    """A fleet before an API server; `kubeconfig` is the controllers'."""

    api: ground.Ground
    kubeconfig: Path
    seen: fleet.Allocated

    @contextlib.contextmanager
    def controller(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """A process that may lead, as in the image; it gives up the Lease at the exit."""
        command = [
            *(sys.executable, "-m", "driver.controller", f"--kubeconfig={self.kubeconfig}"),
            *(f"--identity={name}", "--web-address=127.0.0.1:0", "--log-level=warning"),
        ]
        with (self.api.logs / f"{name}.log").open("wb") as log:
            around = packaged.environment()
            leader = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=around)
        try:
            yield leader
        finally:
            ground.end(leader)

    def ask(self, *names: str) -> float:
        """Pods with a claim of one GPU each; the moment of the first."""
        return min(fixture.ask(self.api.kube, names).values())


def measure() -> list[record.Figure]:
    """On a fleet that is empty, then on one with claims, each before an API server of its own."""
    with _bench(RATE_NODES) as bench:
        rates = record.parts(functools.partial(_rates, bench))
    with _bench(FULL_NODES, THERE) as bench:
        others = functools.partial(_starts, bench), functools.partial(_pair, bench)
        return [*rates, *record.parts(*others)]


@contextlib.contextmanager
def _bench(nodes: int, claims: int = 0) -> Iterator[Bench]:
    with ground.served() as api:
        ground.namespace(api.kube, fixtures.NAMESPACE)
        fixture.fill(api.kube, nodes, fixtures.whole("controller"))
        fleet.occupy(api.kube, claims, nodes)
        seen = fleet.Allocated(api.kube)
        try:
            yield Bench(api, api.controller(), seen)
        finally:
            seen.close()


def _rates(bench: Bench) -> list[record.Figure]:
    """A client makes pods meanwhile, or they are there before the process starts; and again."""
    busy: list[float] = []
    alone: list[float] = []
    around_busy, around_alone = record.Calibrations([]), record.Calibrations([])
    for turn in range(TURNS):
        with bench.controller(f"leader-{turn}"):
            bench.ask(f"warm-{turn}")
            bench.seen.wait([f"warm-{turn}"])
            time.sleep(REST_S)  # a new leader says something of every node first
            rounds = around_busy.between(range(ROUNDS))
            busy += [_busy(bench, f"burst-{turn}-{number}") for number in rounds]
        rounds = around_alone.between(range(ROUNDS))
        alone += [_alone(bench, f"there-{turn}-{number}") for number in rounds]
    name = f"decisions at {RATE_NODES} nodes x {fleet.GPUS} GPUs"
    beside = record.figure(f"{name}, while a client makes the pods", "/s", busy)
    return [around_alone.add_to(record.figure(name, "/s", alone)), around_busy.add_to(beside)]


def _busy(bench: Bench, prefix: str) -> float:
    """Decisions a second of a leader, from the first pod that is made."""
    names = [f"{prefix}-{number}" for number in range(BURST)]
    began = bench.ask(*names)
    return BURST / (bench.seen.wait(names) - began)


def _alone(bench: Bench, prefix: str) -> float:
    """Decisions a second of a controller that finds all pods when it starts."""
    names = [f"{prefix}-{number}" for number in range(BURST)]
    bench.ask(*names)
    with bench.controller(prefix):
        last = bench.seen.wait(names)
    first = min(bench.seen.at[name] for name in names)
    return (BURST - 1) / (last - first)


def _starts(bench: Bench) -> list[record.Figure]:
    """A pod waits; a process is started, reads all there is, leads and decides."""
    taken = []
    for number in range(STARTS):
        name = f"first-{number}"
        bench.ask(name)
        began = time.monotonic()
        with bench.controller(f"start-{number}"):
            taken.append(bench.seen.wait([name]) - began)
    name = f"full resync of {THERE:,} claims: a controller's start to its first decision"
    return [record.figure(name, "s", taken)]


def _pair(bench: Bench) -> list[record.Figure]:
    """A leader with a standby beside it; the leader ends, and a pod waits for the other."""
    sizes: list[tuple[float, float]] = []
    taken: list[float] = []
    ends = [contextlib.ExitStack() for _ in range(TAKEOVERS + 1)]
    with contextlib.ExitStack() as every:
        for end in ends:
            every.enter_context(end)
        leader = ends[0].enter_context(bench.controller("pair-0"))
        bench.ask("led")
        bench.seen.wait(["led"])
        for number in range(1, TAKEOVERS + 1):
            standby = ends[number].enter_context(bench.controller(f"pair-{number}"))
            time.sleep(STANDBY_S)
            sizes.append((process.rss(standby.pid), process.rss(leader.pid)))
            began = time.monotonic()
            ends[number - 1].close()
            name = f"taken-over-{number}"
            bench.ask(name)
            taken.append(bench.seen.wait([name]) - began)
            leader = standby
    names = (
        "RSS of a standby controller",
        f"RSS of a leader, {THERE:,} claims on {FULL_NODES:,} nodes",
    )
    return [
        *itertools.starmap(
            lambda name, sample: record.figure(name, "MiB", sample),
            zip(names, zip(*sizes, strict=True), strict=True),
        ),
        record.figure("a leader's end to its standby's first decision", "s", taken),
    ]
