"""Nodes that are API objects only, on the cluster that is up, and pods that ask.

No kubelet runs on them: a pod that is bound stays bound, unless kwok plays it.
"""

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent import futures
from typing import Any, TypeVar

from benchmarks.allocator import fixtures
from driver import errors, names
from driver.kube import client, gvr
from driver.kube.http import watch_stream
from hack.cluster import kwok as kwok_nodes

Raw = dict[str, Any]
T = TypeVar("T")
THREADS = 16
LANE = {"ration.dev/lane": "static"}
_POLL_S = 0.5
_WATCH_S = 600
_ASSIGNED = ("uid", "resourceVersion")


def fill(kube: client.KubeClient, count: int, slices: str, *, kwok: bool = False) -> None:
    """Make the nodes, ready and with their devices; `slices`: a template of `fixtures`."""
    annotation, _, value = kwok_nodes.ANNOTATION.partition("=")

    def make(number: int) -> None:
        node = fresh(fixtures.node(number))
        node["metadata"]["labels"] |= LANE
        if kwok:
            node["metadata"]["annotations"] = {annotation: value}
        kube.create(gvr.NODES, node)
        # Admission takes every new node for one that is not ready, and nobody here looks again.
        kube.patch(gvr.NODES, fixtures.node_name(number), {"spec": {"taints": None}})
        for one in json.loads(fixtures.filled(slices, number)):
            kube.create(gvr.RESOURCE_SLICES, fresh(one))

    _spread(make, range(count))


def nodes(kube: client.KubeClient, count: int) -> None:
    """Make nodes without devices."""

    def make(number: int) -> None:
        node = fresh(fixtures.node(number))
        node["metadata"]["labels"] |= LANE
        kube.create(gvr.NODES, node)

    _spread(make, range(count))


def hand_over(kube: client.KubeClient, count: int, slices: str) -> None:
    """Publish other devices on the same nodes."""
    published = {raw["metadata"]["name"]: raw for raw in kube.list(gvr.RESOURCE_SLICES).items}

    def put(number: int) -> None:
        for new in json.loads(fixtures.filled(slices, number)):
            old = published[new["metadata"]["name"]]
            pool = {**old["spec"]["pool"], "generation": old["spec"]["pool"]["generation"] + 1}
            spec = {**new["spec"], "pool": pool}
            kube.replace(gvr.RESOURCE_SLICES, old["metadata"]["name"], {**old, "spec": spec})

    _spread(put, range(count))


def empty(kube: client.KubeClient, count: int) -> None:
    """Take nodes and devices away; what is gone already stays gone."""
    fleet = {fixtures.node_name(number) for number in range(count)}
    slices = kube.list(gvr.RESOURCE_SLICES).items
    leaving = [
        (gvr.RESOURCE_SLICES, raw["metadata"]["name"])
        for raw in slices
        if raw["spec"].get("nodeName") in fleet
    ]

    def remove(object_: tuple[gvr.Resource, str]) -> None:
        with contextlib.suppress(errors.NotFound):
            kube.delete(*object_)

    _spread(remove, [*leaving, *((gvr.NODES, node) for node in sorted(fleet))])


class Seen:
    """When pods of the namespace were bound, and Running, as a watch tells; a thread of its own."""

    def __init__(self, kube: client.KubeClient) -> None:
        self.bound: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self._kube = kube
        self._closing = threading.Event()
        self._failed: queue.SimpleQueue[Exception] = queue.SimpleQueue()
        self._watch = self._open()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, pods: Collection[str], within_s: float, *, running: bool = False) -> None:
        """Until they are all bound, or Running. Raises RuntimeError when they are not in time."""
        end = time.monotonic() + within_s
        there = self.running if running else self.bound
        while not all(one in there for one in pods):
            if time.monotonic() > end:
                found = sum(one in there for one in pods)
                raise RuntimeError(f"{found} of {len(pods)} pods came in {within_s} s")
            if not self._failed.empty():
                raise RuntimeError("pods cannot be watched") from self._failed.get()
            time.sleep(_POLL_S / 10)

    def close(self) -> None:
        """Look no more."""
        self._closing.set()
        self._watch.interrupt()
        self._thread.join(10)

    def _open(self) -> watch_stream.Watch:
        """List, and watch from there: the server ends the watch of a reader that is behind."""
        found = self._kube.list(gvr.PODS, namespace=fixtures.NAMESPACE)
        for one in found.items:
            self._note(one)
        return self._kube.watch(
            gvr.PODS,
            namespace=fixtures.NAMESPACE,
            version=found.version,
            timeout_s=_WATCH_S,
            read_timeout_s=_WATCH_S,
        )

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                for event in self._watch:
                    self._note(event.object)
                self._watch = self._open()
        except Exception as e:  # noqa: BLE001 - told by `wait`
            self._failed.put(e)

    def _note(self, pod: Raw) -> None:
        name = pod["metadata"].get("name", "")
        if pod.get("spec", {}).get("nodeName"):
            self.bound.setdefault(name, time.monotonic())
        if pod.get("status", {}).get("phase") == "Running":
            self.running.setdefault(name, time.monotonic())


def ask(kube: client.KubeClient, names: Sequence[str], pace: float = 0.0) -> dict[str, float]:
    """Create a pod with a claim of one GPU for each name, by many threads.

    `pace`: so many a second; 0: as fast as it goes. Returns when each pod was asked for.
    """
    began = time.monotonic()
    made: dict[str, float] = {}

    def create(number: int) -> None:
        name = names[number]
        if pace:
            time.sleep(max(0.0, began + number / pace - time.monotonic()))
        claim = fresh(fixtures.claim(name, fixtures.gpus()))
        kube.create(gvr.RESOURCE_CLAIMS, claim, fixtures.NAMESPACE)
        pod = fresh(fixtures.pod(f"pod-{name}", name))
        pod["spec"] |= {"nodeSelector": LANE, "terminationGracePeriodSeconds": 0}
        made[f"pod-{name}"] = time.monotonic()
        kube.create(gvr.PODS, pod, fixtures.NAMESPACE)

    _spread(create, range(len(names)))
    return made


@contextlib.contextmanager
def namespace(kube: client.KubeClient) -> Iterator[None]:
    """The namespace of the pods; its end takes all of them away, and waits for it."""
    make_namespace(kube)
    try:
        yield
    finally:
        clear(kube)
        kube.delete(gvr.NAMESPACES, fixtures.NAMESPACE)
        _until(lambda: not _is_there(kube))


def make_namespace(kube: client.KubeClient) -> None:
    """Make the namespace of the pods, and wait until pods can be made there."""
    kube.create(gvr.NAMESPACES, {"metadata": {"name": fixtures.NAMESPACE}})
    accounts = gvr.Resource("", "v1", "serviceaccounts", namespaced=True)
    _until(lambda: bool(kube.list(accounts, namespace=fixtures.NAMESPACE).items))


@contextlib.contextmanager
def gated(kube: client.KubeClient) -> Iterator[None]:
    """Meanwhile the namespace's pods are made with our scheduling gate."""

    def label(value: str | None) -> None:
        body = {"metadata": {"labels": {names.GATE_LABEL: value}}}
        kube.patch(gvr.NAMESPACES, fixtures.NAMESPACE, body)

    label("true")
    try:
        yield
    finally:
        label(None)


def clear(kube: client.KubeClient) -> None:
    """Delete every pod and claim, and wait until their devices are free."""
    for kind in (gvr.PODS, gvr.RESOURCE_CLAIMS):
        found = kube.list(kind, namespace=fixtures.NAMESPACE).items

        def remove(name: str, kind: gvr.Resource = kind) -> None:
            with contextlib.suppress(errors.NotFound):
                kube.delete(kind, name, fixtures.NAMESPACE)

        _spread(remove, [one["metadata"]["name"] for one in found])
    _until(lambda: not kube.list(gvr.RESOURCE_CLAIMS, namespace=fixtures.NAMESPACE).items)


def _is_there(kube: client.KubeClient) -> bool:
    try:
        kube.get(gvr.NAMESPACES, fixtures.NAMESPACE)
    except errors.NotFound:
        return False
    return True


def _until(condition: Callable[[], bool], within_s: float = 180) -> None:
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"what was waited for did not come in {within_s} s")
        time.sleep(_POLL_S)


def _spread(act: Callable[[T], None], over: Iterable[T]) -> None:
    with futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(act, over))


def fresh(raw: Raw) -> Raw:
    """An object as one creates it: without what the server assigns."""
    meta = {key: value for key, value in raw["metadata"].items() if key not in _ASSIGNED}
    return {**raw, "metadata": meta}
