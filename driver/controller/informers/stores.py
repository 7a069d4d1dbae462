"""The controller's caches as one value, and who uses which claim."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from driver import ids
from driver.kube import store
from driver.resources import disruption_budgets, pod_groups, queues, reservations
from driver.resources.core import namespaces, nodes, pods, storage, volumes
from driver.resources.dra import claims, device_classes, slices, taint_rules
from driver.scheduling.snapshot import allocation_hold


@dataclass(frozen=True, slots=True)
class Stores:
    """One store a kind; reflectors fill them."""

    nodes: store.Store[nodes.Node]
    slices: store.Store[slices.Slice]
    classes: store.Store[device_classes.DeviceClass]
    claims: store.Store[claims.Claim]
    pods: store.Store[pods.Pod]
    volume_claims: store.Store[volumes.VolumeClaim]
    volumes: store.Store[volumes.Volume]
    storage_classes: store.Store[storage.StorageClass]
    csi_nodes: store.Store[storage.CSINode]
    csi_drivers: store.Store[storage.CSIDriver]
    capacities: store.Store[storage.Capacity]
    attachments: store.Store[storage.Attachment]
    namespaces: store.Store[namespaces.Namespace]
    taint_rules: store.Store[taint_rules.TaintRule]
    native_pod_groups: store.Store[pod_groups.PodGroup]
    coscheduling: store.Store[pod_groups.PodGroup]
    queues: store.Store[queues.Queue]
    reservations: store.Store[reservations.Reservation]
    budgets: store.Store[disruption_budgets.Budget]
    pods_by_claim: "PodsByClaim"

    def find_pod_group(self, key: ids.Key) -> pod_groups.PodGroup | None:
        """Return the PodGroup of a key: Kubernetes' own, else the coscheduling plugin's."""
        return self.native_pod_groups.get(key) or self.coscheduling.get(key)

    def observe_pod(self, obj: Mapping[str, Any]) -> None:
        """Apply the server's answer to an own write before the watch delivers it."""
        self.pods.observe(dict(obj))

    def observe_claim(self, obj: Mapping[str, Any]) -> None:
        """Apply the server's answer to an own write before the watch delivers it."""
        self.claims.observe(dict(obj))


def empty() -> Stores:
    """Stores that reflectors have yet to fill."""
    return Stores(
        nodes=store.Store(),
        slices=store.Store(),
        classes=store.Store(),
        claims=store.Store(),
        pods=store.Store(),
        volume_claims=store.Store(),
        volumes=store.Store(),
        storage_classes=store.Store(),
        csi_nodes=store.Store(),
        csi_drivers=store.Store(),
        capacities=store.Store(),
        attachments=store.Store(),
        namespaces=store.Store(),
        taint_rules=store.Store(),
        native_pod_groups=store.Store(),
        coscheduling=store.Store(),
        queues=store.Store(),
        reservations=store.Store(),
        budgets=store.Store(),
        pods_by_claim=PodsByClaim(),
    )


def pod_claims(caches: Stores, pod: pods.Pod) -> tuple[claims.Claim, ...]:
    """Return the existing claims that a pod names."""
    maybe_claims = (caches.claims.get(key) for key in pod.claim_keys)
    return tuple(claim for claim in maybe_claims if claim is not None)


def claim_users(caches: Stores, claim: ids.Key) -> Iterator[pods.Pod]:
    """Yield the live pods that reserved a claim or hold it, each once."""
    held = caches.claims.get(claim)
    yield from consumer_pods(caches, held) if held is not None else ()


def consumer_pods(caches: Stores, claim: claims.Claim) -> Iterator[pods.Pod]:
    """Yield the live pods of a claim's entries, each once; of a PodGroup, those that name it."""
    users: dict[ids.PodUid, pods.Pod] = {}
    for entry in claim.consumers:
        pod = allocation_hold.consumer_pod(claim, entry, caches.pods.get)
        if pod is not None:
            users[pod.uid] = pod
    if allocation_hold.is_reserved_for_group(claim):
        named = (caches.pods.get(key) for key in caches.pods_by_claim.pods(claim.key))
        users |= {
            pod.uid: pod
            for pod in named
            if pod is not None and not pod.finished and allocation_hold.is_reserved_by(claim, pod)
        }
    yield from users.values()


class NodeSlices:
    """A driver's slices by node, grouped once for each snapshot. For one thread."""

    def __init__(self, caches: Stores, driver: str) -> None:
        self._caches = caches
        self._driver = driver
        self._grouped: Mapping[ids.Key, slices.Slice] | None = None
        self._by_node: dict[ids.NodeName, list[slices.Slice]] = {}

    def get(self, node: ids.NodeName) -> tuple[slices.Slice, ...]:
        """Return the slices of a node's own pool, with the taints that rules add."""
        current = self._caches.slices.snapshot()
        if current is not self._grouped:
            self._grouped, self._by_node = current, {}
            for entry in current.values():
                if entry.node is not None and entry.driver == self._driver:
                    self._by_node.setdefault(entry.node, []).append(entry)
        rules = self._caches.taint_rules.snapshot().values()
        return tuple(taint_rules.apply_rules(self._by_node.get(node, ()), rules))


class PodsByClaim:
    """Index of pods by claim, updated by the pod store's changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[ids.Key, set[ids.Key]] = {}

    def update(self, old: pods.Pod | None, new: pods.Pod | None) -> None:
        """Apply a pod's change."""
        with self._lock:
            for key in claim_keys(old):
                rest = self._pods.pop(key, set()) - {old.key if old else ids.Key("")}
                if rest:
                    self._pods[key] = rest
            for key in claim_keys(new):
                self._pods.setdefault(key, set()).add(new.key if new else ids.Key(""))

    def pods(self, claim: ids.Key) -> tuple[ids.Key, ...]:
        """Return the keys of the pods that name a claim, sorted."""
        with self._lock:
            return tuple(sorted(self._pods.get(claim, ())))


def claim_keys(pod: pods.Pod | None) -> tuple[ids.Key, ...]:
    """Return the keys of the claims that a pod names, as far as they are known."""
    return pod.claim_keys if pod else ()
