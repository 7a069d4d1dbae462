"""End to end: the controller's process against an API server in memory whose writes take 2 ms.

A claim's time runs from its creation to the write that allocates it, as the server saw both.
"""

import contextlib
import gc
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import record
from benchmarks.allocator import fixtures
from driver.kube import gvr
from tests.fakes.apiserver import faults, server, storage

NODES = 1_000
WRITE_S = 0.002
BURST = 1_000
PACED_S = 5.0
_STRETCH = 12
"""Claims in succession that wait for one pause: of up to 0.1 s."""
AFTER_REST = 10
"""Claims after a rest that take longer: they have a figure of their own."""
ROUNDS = 2
"""Of a controller; more than four would ask for more GPUs than there are."""
_PATIENCE_S = 120.0
_QUIET_S = 1.5
_CLAIMS = ("resource.k8s.io", "resourceclaims")
ROOT = Path(__file__).parents[2]


class _Watched:
    """When each claim was created and allocated, by name, in seconds of one clock."""

    def __init__(self, api: server.ApiServer) -> None:
        self._api = api
        self.created: dict[str, float] = {}
        self.allocated: dict[str, float] = {}
        self._seen = api.storage.version
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def ask(self, name: str) -> None:
        """Create a claim and its pod."""
        pod = fixtures.pod(f"pod-{name}", name)
        self._api.put(gvr.PODS, pod)
        self.created[name] = time.perf_counter()
        self._api.put(gvr.RESOURCE_CLAIMS, fixtures.claim(name, fixtures.gpus()))

    def wait(self, names: list[str]) -> None:
        """Until all of them are allocated."""
        end = time.monotonic() + _PATIENCE_S
        while any(name not in self.allocated for name in names):
            if time.monotonic() > end:
                missing = sum(name not in self.allocated for name in names)
                raise RuntimeError(f"{missing} of {len(names)} claims were not allocated")
            time.sleep(0.01)

    def rest(self) -> None:
        """Until nothing was written for a while: a new controller tells every node's condition."""
        earlier = -1
        while earlier != (now := sum(request.method == "PATCH" for request in self._api.requests)):
            earlier = now
            time.sleep(_QUIET_S)

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        written: storage.Storage = self._api.storage
        while not self._stop.is_set():
            with written.changed:
                changes, upto = written.since(_CLAIMS, self._seen), written.version
                if not changes:
                    written.changed.wait(0.05)
            now = time.perf_counter()
            self._seen = upto
            for change in changes:
                if change.new and change.new.get("status", {}).get("allocation"):
                    self.allocated.setdefault(change.new["metadata"]["name"], now)


class Sample:
    """Claims a second when all come at once, and how long one takes at half of that rate.

    Of several controllers, to be started minutes apart: who else has the machine for a minute, and
    what one process has of its own, is then in one of them. The rate is half of the same round's:
    claims that come at a fixed rate wait by more times than a slow machine is slower. How long a
    claim takes is of the half of the rounds in which the machine was fastest.
    """

    def __init__(self) -> None:
        self._rates: list[float] = []
        self._calibrations = record.Calibrations([])
        self._paced: list[tuple[record.Calibrations, list[float]]] = []
        self._after_rest: list[float] = []

    def add(self) -> None:
        """Measure a new controller."""
        with _controller() as watched:
            first = [f"warm-{number}" for number in range(20)]
            for name in first:
                watched.ask(name)
            watched.wait(first)
            for number in range(ROUNDS):
                watched.rest()
                self._calibrations.take()
                rate = _burst(watched, f"burst-{number}")
                self._rates.append(rate)
                self._calibrations.take()
                watched.rest()
                calibrations = record.Calibrations()
                waits = _paced(watched, f"paced-{number}", rate / 2)
                calibrations.take()
                self._after_rest.append(waits[0])
                self._paced.append((calibrations, waits[AFTER_REST:]))

    def figures(self) -> list[record.Figure]:
        """Return the medians, at the pace over the quieter half of the rounds, else over all."""
        name = f"end to end, {NODES:,} nodes, writes of 2 ms"
        paced = f"{name}: at half a burst's rate"
        at_once = record.figure(f"{name}: {BURST:,} claims at once", "claims/s", self._rates)
        around, waits = record.quieter_half(self._paced)
        p50 = record.figure(f"{paced}, p50", "ms", [*itertools.chain(*waits)])
        p99 = record.tail(f"{paced}, p99", "ms", waits, stretch=_STRETCH)
        rested = record.figure(f"{name}: the first claim after a rest", "ms", self._after_rest)
        return [self._calibrations.add_to(at_once), *map(around.add_to, (p50, p99)), rested]


def _burst(watched: _Watched, prefix: str) -> float:
    names = [f"{prefix}-{number}" for number in range(BURST)]
    for name in names:
        watched.ask(name)
    watched.wait(names)
    ended = max(watched.allocated[name] for name in names)
    return BURST / (ended - watched.created[names[0]])


def _paced(watched: _Watched, prefix: str, rate: float) -> list[float]:
    """Milliseconds from creation to allocation, of claims that come evenly, `rate` a second."""
    names = [f"{prefix}-{number}" for number in range(int(PACED_S * rate))]
    begun = time.perf_counter()
    for position, name in enumerate(names):
        time.sleep(max(0.0, begun + position / rate - time.perf_counter()))
        watched.ask(name)
    watched.wait(names)
    return [(watched.allocated[name] - watched.created[name]) * 1000 for name in names]


@contextlib.contextmanager
def _controller() -> Iterator[_Watched]:
    with server.ApiServer() as api, tempfile.TemporaryDirectory() as scratch:
        _fill(api)
        api.faults.add(faults.Delay(WRITE_S), faults.writes)
        kubeconfig = api.kubeconfig(Path(scratch))
        command = [
            *(sys.executable, "-m", "driver.controller"),
            *(f"--kubeconfig={kubeconfig}", "--metrics-address=127.0.0.1:0", "--log-level=warning"),
            "--web-address=",
        ]
        process = subprocess.Popen(command, cwd=ROOT)
        watched = _Watched(api)
        # The server is this process: its own looks for garbage, 0.2 s each, are not the controller.
        gc.disable()
        try:
            yield watched
        finally:
            gc.enable()
            watched.stop()
            process.terminate()
            process.wait()


def _fill(api: server.ApiServer) -> None:
    for device_class in fixtures.classes():
        api.put(gvr.DEVICE_CLASSES, device_class)
    template = fixtures.whole("controller")
    for number in range(NODES):
        api.put(gvr.NODES, fixtures.node(number))
        for raw in json.loads(fixtures.filled(template, number)):
            api.put(gvr.RESOURCE_SLICES, raw)
