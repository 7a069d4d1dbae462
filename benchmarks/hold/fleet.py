"""Nodes and claims of a fleet as API objects, and when the claims that wait are allocated."""

import contextlib
import threading
import time
from collections.abc import Collection
from concurrent import futures

from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture
from driver import errors
from driver.kube import client, gvr
from driver.kube.http import watch_stream

GPUS = 8
_WITHIN_S = 300.0
_POLL_S = 0.01


def occupy(kube: client.KubeClient, count: int, nodes: int) -> None:
    """So many claims that have a GPU each, with a pod that runs; the nodes in turn."""

    def make(number: int) -> None:
        name = f"there-{number}"
        node = fixtures.node_name(number % nodes)
        pod = fixtures.pod(f"pod-{name}", name)
        made = _create(kube, gvr.PODS, {**pod, "spec": {**pod["spec"], "nodeName": node}})
        _patch(kube, gvr.PODS, made, {"phase": "Running"})
        claim = _create(kube, gvr.RESOURCE_CLAIMS, fixtures.claim(name, fixtures.gpus()))
        device = ("gpu.ration.dev", node, f"gpu-{number // nodes}")
        status = fixtures.allocated(claim, device, node)["status"]
        meta = made["metadata"]
        user = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
        _patch(kube, gvr.RESOURCE_CLAIMS, claim, {**status, "reservedFor": [user]})

    with futures.ThreadPoolExecutor(fixture.THREADS) as pool:
        list(pool.map(make, range(count)))


class Allocated:
    """When claims of the namespace were first seen allocated; a thread of its own watches."""

    def __init__(self, kube: client.KubeClient) -> None:
        self.at: dict[str, float] = {}
        self._kube = kube
        self._closing = threading.Event()
        self._watch = self._open()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, names: Collection[str]) -> float:
        """The moment of the last of them. Raises RuntimeError when they are not in time."""
        end = time.monotonic() + _WITHIN_S
        while not all(name in self.at for name in names):
            if time.monotonic() > end or not self._thread.is_alive():
                there = sum(name in self.at for name in names)
                raise RuntimeError(f"{there} of {len(names)} claims were allocated")
            time.sleep(_POLL_S)
        return max(self.at[name] for name in names)

    def close(self) -> None:
        """Look no more."""
        self._closing.set()
        self._watch.interrupt()
        self._thread.join(10)

    def _open(self) -> watch_stream.Watch:
        """List, and watch from there: the server ends the watch of a reader that is behind."""
        found = self._kube.list(gvr.RESOURCE_CLAIMS, namespace=fixtures.NAMESPACE)
        for one in found.items:
            self._note(one)
        return self._kube.watch(
            gvr.RESOURCE_CLAIMS,
            namespace=fixtures.NAMESPACE,
            version=found.version,
            timeout_s=int(_WITHIN_S),
            read_timeout_s=_WITHIN_S,
        )

    def _run(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(errors.ApiError):  # broken off, at the end or by the server
                for event in self._watch:
                    self._note(event.object)
            if not self._closing.is_set():
                self._watch = self._open()

    def _note(self, claim: gvr.Object) -> None:
        if claim.get("status", {}).get("allocation"):
            self.at.setdefault(claim["metadata"]["name"], time.monotonic())


def _create(kube: client.KubeClient, kind: gvr.Resource, raw: fixtures.Raw) -> gvr.Object:
    return kube.create(kind, fixture.fresh(raw), fixtures.NAMESPACE)


def _patch(
    kube: client.KubeClient, kind: gvr.Resource, made: gvr.Object, status: fixtures.Raw
) -> None:
    name, body = made["metadata"]["name"], {"status": status}
    kube.patch(kind, name, body, namespace=fixtures.NAMESPACE, subresource="status")
