"""Applies changes of the stores to the snapshot.

Handlers run on the reflectors' and writers' threads and only record keys. The thread that owns
the snapshot reads the values from the stores, so an older value never follows a newer one.
"""

import threading
from collections.abc import Callable
from typing import Any

from driver import ids
from driver.controller.informers import stores
from driver.kube import store
from driver.resources.core import pods
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.snapshot import cluster_state

Put = tuple[store.Store[Any], Callable[[Any, Any], None]]
"""Where the values of a kind are, and where they go."""


class SnapshotUpdater:
    """Call `register` before the reflectors run, and `apply` before every decision."""

    def __init__(
        self, caches: stores.Stores, shown: cluster_state.ClusterState, gangs: gang_index.GangIndex
    ) -> None:
        def put_pod(key: ids.Key, pod: pods.Pod | None) -> None:
            shown.set_pod(key, pod)
            gangs.set_pod(key, pod)

        self._lock = threading.Lock()
        self._changed: dict[tuple[str, ids.Key], None] = {}
        self._puts: dict[str, Put] = {
            "node": (caches.nodes, shown.set_node),
            "slice": (caches.slices, shown.set_slice),
            "class": (caches.classes, shown.set_device_class),
            "rule": (caches.taint_rules, shown.set_taint_rule),
            "claim": (caches.claims, shown.set_claim),
            "pod": (caches.pods, put_pod),
            "bound": (caches.volume_claims, shown.set_volume_claim),
            "volume": (caches.volumes, shown.set_volume),
            "storage class": (caches.storage_classes, shown.set_storage_class),
            "csi node": (caches.csi_nodes, shown.set_csi_node),
            "csi driver": (caches.csi_drivers, shown.set_csi_driver),
            "capacity": (caches.capacities, shown.set_storage_capacity),
            "attachment": (caches.attachments, shown.set_attachment),
            "namespace": (caches.namespaces, shown.set_namespace),
        }
        for kind, (source, _) in self._puts.items():
            self._follow(kind, source)

    def register(self, kind: str, to: Put) -> None:
        """Follow another kind, too; before the reflectors run."""
        self._puts[kind] = to
        self._follow(kind, to[0])

    def _follow(self, kind: str, source: store.Store[Any]) -> None:
        for key in source.snapshot():
            self.mark_changed(kind, key)
        source.subscribe(lambda key, _old, _new: self.mark_changed(kind, key))

    def mark_changed(self, kind: str, key: ids.Key) -> None:
        """Record a changed key; `apply` reads its value."""
        with self._lock:
            self._changed[kind, key] = None

    def apply(self) -> None:
        """Apply all recorded changes to the snapshot."""
        with self._lock:
            changed, self._changed = self._changed, {}
        for kind, key in changed:
            source, put = self._puts[kind]
            put(key, source.get(key))
