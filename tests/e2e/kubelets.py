"""Plays the kubelets of simulated nodes: pods run a moment, end or are deleted, and are let go.

As a real one does, it starts a pod only once each of its claims is allocated and reserved for it,
and a pod that is to be deleted goes when the kubelet says so, with grace 0.
"""

import collections
import heapq
import itertools
import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from driver import clock, errors, ids
from driver.kube import client, gvr, reflector, store

Raw = dict[str, Any]
_AGAIN_S = 0.5
_PATIENCE_S = 5.0
"""How long a bound pod waits for its claims before it is given up."""


class Kubelets:
    """Kubelets that run every pod of the namespace on a node; `seen` are pods by their end."""

    def __init__(self, kube: client.KubeClient, namespace: str, seed: int) -> None:
        self._kube = kube
        self._namespace = namespace
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self.pods: store.Store[Raw] = store.Store()
        source = reflector.ListWatch(kube, gvr.PODS, namespace=namespace)
        self._reflector = reflector.Reflector(source, self.pods, dict, clock.SystemClock())
        self.pods.subscribe(self._changed)
        self.seen: collections.Counter[str] = collections.Counter()
        self.ran: set[str] = set()
        self._stop = threading.Event()
        self._due: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._ticket = itertools.count()
        self._lock = threading.Lock()
        self._bound: set[str] = set()
        self._leaving: set[str] = set()
        self._threads = [
            threading.Thread(target=run, daemon=True)
            for run in (self._follow, self._ripen, *([self._work] * 4))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        assert self._reflector.synced.wait(10)

    def stop(self) -> None:
        self._stop.set()
        self._reflector.interrupt()
        for thread in self._threads:
            thread.join(5)

    def _follow(self) -> None:
        self._reflector.run(self._stop)

    def _changed(self, _key: ids.Key, _old: Raw | None, pod: Raw | None) -> None:
        if pod is None or not pod["spec"].get("nodeName"):
            return
        meta = pod["metadata"]
        if meta.get("deletionTimestamp"):
            if meta["uid"] not in self._leaving:
                self._leaving.add(meta["uid"])
                self._after(self._between(0.0, 0.3), lambda: self._let_go(pod))
        elif meta["uid"] not in self._bound:
            self._bound.add(meta["uid"])
            patience = time.monotonic() + _PATIENCE_S
            self._after(self._between(0.0, 0.3), lambda: self._begin(pod, patience))

    def _begin(self, pod: Raw, patience: float) -> None:
        if not self._is_prepared(pod):
            if time.monotonic() < patience:
                self._after(_AGAIN_S, lambda: self._begin(pod, patience))
                return
            self.seen["given up: claim not allocated"] += 1
            self._delete(pod, grace_s=1)
            return
        self._status(pod, "Running")
        self.ran.add(pod["metadata"]["name"])
        self._after(self._between(0.3, 3.0), lambda: self._end(pod))

    def _is_prepared(self, pod: Raw) -> bool:
        """Return whether every claim is allocated and reserved for the pod: the kubelet's check."""
        uid = pod["metadata"]["uid"]
        named = {entry["name"]: entry for entry in pod["spec"].get("resourceClaims", ())}
        created = pod.get("status", {}).get("resourceClaimStatuses", ())
        result = {entry["name"]: entry.get("resourceClaimName") for entry in created}
        for name, item in named.items():
            claim = self._claim(item.get("resourceClaimName") or result.get(name))
            status = (claim or {}).get("status", {})
            reserved = {entry["uid"] for entry in status.get("reservedFor", ())}
            if not status.get("allocation") or uid not in reserved:
                return False
        return True

    def _claim(self, name: str | None) -> Raw | None:
        try:
            return self._kube.get(gvr.RESOURCE_CLAIMS, name or "", self._namespace)
        except errors.NotFound:
            return None

    def _end(self, pod: Raw) -> None:
        if self._random.random() < 0.7:
            self._status(pod, "Succeeded")
            self.seen["succeeded"] += 1
        else:
            self._delete(pod, grace_s=1)
            self.seen["deleted"] += 1

    def _let_go(self, pod: Raw) -> None:
        self._delete(pod, grace_s=0)
        self.seen["let go"] += 1

    def _status(self, pod: Raw, phase: str) -> None:
        ready = {"type": "Ready", "status": str(phase == "Running")}
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"phase": phase}}
        body["status"]["conditions"] = [ready]
        self._kube.patch(
            gvr.PODS,
            pod["metadata"]["name"],
            body,
            namespace=self._namespace,
            subresource="status",
            kind=client.PatchType.STRATEGIC,
        )

    def _delete(self, pod: Raw, grace_s: int) -> None:
        meta = pod["metadata"]
        remove_pod(self._kube, meta["name"], self._namespace, meta["uid"], grace_s)

    def _between(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        with self._lock:
            heapq.heappush(self._later, (time.monotonic() + seconds, next(self._ticket), act))

    def _ripen(self) -> None:
        while not self._stop.wait(0.02):
            with self._lock:
                while self._later and self._later[0][0] <= time.monotonic():
                    self._due.put(heapq.heappop(self._later)[2])

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                act = self._due.get(timeout=0.2)
            except queue.Empty:
                continue
            try:
                act()
            except (errors.NotFound, errors.Conflict):
                continue  # the pod is gone, or another of that name
            except errors.ApiError:
                self._after(_AGAIN_S, act)


def remove_pod(kube: client.KubeClient, name: str, namespace: str, uid: str, grace_s: int) -> None:
    """Delete a pod with a grace period; one that is gone is no matter.

    By eviction, the one delete of our client that takes a grace period.
    """
    options = {"gracePeriodSeconds": grace_s, "preconditions": {"uid": uid}}
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": options,
    }
    try:
        kube.create(gvr.PODS, body, namespace, subresource="eviction", name=name)
    except (errors.NotFound, errors.Conflict):
        return
