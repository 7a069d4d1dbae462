"""The publishing part of many plugins, each with a client and threads of its own, in one process.

It is the plugin's own code: the cache of the node's slices, the supply and the publisher. The GPUs
are read once from a simulated machine and are each node's own; what a plugin does besides at its
start needs no API server.
"""

import collections
import dataclasses
import random
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import prometheus_client
import urllib3

from benchmarks.allocator import fixtures
from driver import clock, ids, names
from driver.devices import model
from driver.kube import backoff, client, gvr
from driver.kube.events import recorder
from driver.kube.http import credentials, transport
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics
from driver.kubeletplugin.host import discovery
from driver.kubeletplugin.publish import node_allocator, pool_builder, publisher
from simulator import machine
from tests.fakes import nvml

_LOOKING = backoff.Pace(base_s=2.0, max_s=20.0)
_REDISCOVER_S = 300.0
_STACK = 1 << 19
"""Bytes of a thread's stack: a thousand of them are few megabytes."""


class Counted(transport.Transport):
    """What was asked, by kind; `writes` are the moments at which writes were sent."""

    def __init__(self, source: credentials.Credentials, book: "Book") -> None:
        super().__init__(source, "ration-herd")
        self._book = book

    def _send(self, session: credentials.Session, call: transport.Call) -> urllib3.BaseHTTPResponse:
        self._book.note(call.method, call.path, call.query)
        return super()._send(session, call)


class Book:
    """The requests of all plugins together; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.unfiltered = 0
        self.writes: list[float] = []

    def take(self) -> "Book":
        """Return what was noted so far in a book of its own, and begin anew."""
        taken = Book()
        with self._lock:
            taken.kinds, self.kinds = self.kinds, taken.kinds
            taken.writes, self.writes = self.writes, taken.writes
            taken.unfiltered, self.unfiltered = self.unfiltered, 0
        return taken

    def note(self, method: str, path: str, query: Mapping[str, str]) -> None:
        """One request is about to be sent."""
        collection = path.endswith(f"/{gvr.RESOURCE_SLICES.plural}")
        kind = method
        if method == "GET":
            kind = "GET" if not collection else "WATCH" if "watch" in query else "LIST"
        with self._lock:
            self.kinds[kind] += 1
            if kind in {"LIST", "WATCH"} and "spec.nodeName" not in query.get("fieldSelector", ""):
                self.unfiltered += 1
            if method != "GET":
                self.writes.append(time.monotonic())

    def most_writes_a_second(self) -> int:
        """In the busiest second that begins with a write."""
        with self._lock:
            ordered = sorted(self.writes)
        most, first = 0, 0
        for last, at in enumerate(ordered):
            while ordered[first] < at - 1.0:
                first += 1
            most = max(most, last - first + 1)
        return most


class _Silent:
    """Events that nobody reads."""

    def event(
        self,
        regarding: recorder.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: recorder.ObjectRef | None = None,
    ) -> None:
        """Nothing is told."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ground:
    """What the plugins have in common; `folder` is where they keep who allocates."""

    kubeconfig: Path
    folder: Path
    book: Book


class Plugin:
    """One node's, from its start to its end."""

    def __init__(self, ground: Ground, number: int, gpus: model.Inventory) -> None:
        name = fixtures.node_name(number)
        time_ = clock.SystemClock()
        counters = metrics.Metrics(prometheus_client.CollectorRegistry())
        teller = plugin_events.EventReporter(_Silent())
        wire = Counted(credentials.Credentials(ground.kubeconfig), ground.book)
        allocator = node_allocator.NodeAllocator(
            "controller", ground.folder / name, node_allocator.Deps(teller, counters, time_)
        )
        tools = publisher.Deps(client.KubeClient(wire), teller, counters, time_, allocator)
        looking = backoff.Backoff(_LOOKING, random.random)
        offered = pool_builder.PoolBuilder(
            pool_builder.Sources(lambda: gpus), _REDISCOVER_S, looking, time_
        )
        settings = publisher.Settings(names.DRIVER, ids.NodeName(name), jitter=random.random)
        self._publisher = publisher.Publisher(offered, settings, tools)
        self._stop = threading.Event()
        runs = (self._publisher.slices.run, self._publisher.run)
        self._threads = [threading.Thread(target=run, args=(self._stop,)) for run in runs]

    def start(self) -> None:
        """Its two threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Tell it to end; `join` waits."""
        self._stop.set()
        self._publisher.slices.interrupt()
        self._publisher.interrupt()

    def join(self) -> None:
        """Wait for its end."""
        for thread in self._threads:
            thread.join(30)

    def done(self) -> bool:
        """Whether its slices are there, as they should be and all of them."""
        stored = list(self._publisher.stored_slices())
        whole = bool(stored) and len(stored) == stored[0]["spec"]["pool"]["resourceSliceCount"]
        return whole and self._publisher.problem() is None and self._publisher.lag_s() == 0


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """Seconds until the last plugin was done, this process's CPU seconds, and what was asked."""

    took_s: float
    cpu_s: float
    book: Book


class Herd:
    """`count` plugins that start together, as often as one likes."""

    def __init__(self, kubeconfig: Path, count: int, product: str) -> None:
        threading.stack_size(_STACK)
        self._kubeconfig = kubeconfig
        self._folder = Path(tempfile.mkdtemp(prefix="herd"))
        self._gpus = [_gpus(product, fixtures.node_name(number)) for number in range(count)]

    def together(self, wipe: Callable[[], None] | None = None) -> list[Start]:
        """Start all at once, and wait for the last.

        With `wipe` slices are then deleted under the plugins, as kubelets do when they start: the
        second Start is from there until all are done again.
        """
        book = Book()
        ground = Ground(self._kubeconfig, self._folder, book)
        plugins = [Plugin(ground, number, gpus) for number, gpus in enumerate(self._gpus)]

        def start_all() -> None:
            for plugin in plugins:
                plugin.start()

        try:
            actions = [start_all] if wipe is None else [start_all, wipe]
            return [_measure(action, plugins, book) for action in actions]
        finally:
            for plugin in plugins:
                plugin.stop()
            for plugin in plugins:
                plugin.join()


def _measure(action: Callable[[], None], plugins: Sequence[Plugin], book: Book) -> Start:
    began, spent = time.monotonic(), time.process_time()
    action()
    _until(lambda: all(plugin.done() for plugin in plugins))
    return Start(time.monotonic() - began, time.process_time() - spent, book.take())


def _gpus(product: str, node: str) -> model.Inventory:
    return discovery.Discovery(nvml.FakeNvml(machine.build(product, seed=node))).refresh()


def _until(condition: Callable[[], bool], within_s: float = 300.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"what was waited for did not come in {within_s:.0f} s")
        time.sleep(0.05)
