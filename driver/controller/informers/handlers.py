"""Event handlers: enqueue the keys that a change concerns. Handlers never act on an event."""

from dataclasses import replace

from driver import ids, names
from driver.controller.commit import write_pool
from driver.controller.informers import stores
from driver.kube import workqueue
from driver.resources import queues
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, slices
from driver.scheduling.gangs import index as gang_index

_SETTLE_S = 0.05


class EventHandlers:
    """Subscribes to the stores; call `attach` before the reflectors run.

    `on_demand`: nodes are provisioned, so taints may announce that a node is taken away.
    """

    def __init__(
        self, items: workqueue.WorkQueue[write_pool.WorkItem], *, on_demand: bool = False
    ) -> None:
        self._items = items
        self._on_demand = on_demand
        self._by_claim = stores.PodsByClaim()

    def attach(self, caches: stores.Stores) -> None:
        """Subscribe to every store."""
        self._by_claim = caches.pods_by_claim
        caches.pods.subscribe(self.on_pod)
        caches.claims.subscribe(self.on_claim)
        caches.nodes.subscribe(self.on_node)
        caches.slices.subscribe(self.on_slice)
        caches.taint_rules.subscribe(self.on_rule)
        caches.reservations.subscribe(self.on_reservation)
        caches.queues.subscribe(self.on_queue)
        for groups in (caches.native_pod_groups, caches.coscheduling):
            groups.subscribe(self.on_group)
        for store in (caches.classes, caches.volume_claims, caches.volumes, caches.namespaces):
            store.subscribe(self.on_cluster_change)
        for refining in (caches.storage_classes, caches.csi_nodes, caches.csi_drivers):
            refining.subscribe(self.on_cluster_change)
        for counted in (caches.capacities, caches.attachments):
            counted.subscribe(self.on_cluster_change)

    def on_pod(self, key: ids.Key, old: pods.Pod | None, new: pods.Pod | None) -> None:
        """Enqueue the pod, its gang and its claims, whose holds may be obsolete."""
        self._by_claim.update(old, new)
        if (old and old.claims) or (new and (new.claims or names.ALLOCATION_GATE in new.gates)):
            self._items.add(write_pool.WorkItem("pod", key))
        for gang in {gang_index.gang_key(pod) for pod in (old, new) if pod is not None}:
            if gang is not None:
                self._items.add(write_pool.WorkItem("gang", gang))
        for claim in {*stores.claim_keys(old), *stores.claim_keys(new)}:
            self._items.add(write_pool.WorkItem("claim", claim))
        if self._on_demand and any(_is_placeholder(pod) for pod in (old, new)):
            self._items.add_after(write_pool.PROVISIONING, _SETTLE_S)
        if _occupied_node(old) != _occupied_node(new):
            self._wake()

    def on_claim(self, key: ids.Key, old: claims.Claim | None, new: claims.Claim | None) -> None:
        """Enqueue the claim and the pods that name it; freed devices wake all pending pods.

        The mark of a release enqueues nobody: the release itself follows.
        """
        if _is_marked(old, new):
            return
        self._items.add(write_pool.WorkItem("claim", key))
        for pod in self._by_claim.pods(key):
            self._items.add(write_pool.WorkItem("pod", pod))
        freed = old is not None and old.allocation and (new is None or not new.allocation)
        if freed:
            self._wake()

    def on_node(self, key: ids.Key, old: nodes.Node | None, new: nodes.Node | None) -> None:
        """Enqueue the node's condition and faults, and wake pending pods."""
        if new is not None and (old is None or old.gpu_condition != new.gpu_condition):
            self._items.add_after(write_pool.WorkItem("node", key), _SETTLE_S)
        if self._on_demand and new is not None and (old is None or old.taints != new.taints):
            self._items.add_after(write_pool.WorkItem("faults", key), _SETTLE_S)
        self.on_cluster_change(key, old, new)

    def on_slice(self, key: ids.Key, old: slices.Slice | None, new: slices.Slice | None) -> None:
        """Enqueue the condition and faults of the slice's nodes, and wake pending pods."""
        named = (
            resource_slice.node
            for resource_slice in (old, new)
            if resource_slice is not None and resource_slice.node is not None
        )
        for node in {*named}:
            self._items.add_after(write_pool.WorkItem("node", ids.Key(node)), _SETTLE_S)
            if old != new:
                self._items.add_after(write_pool.WorkItem("faults", ids.Key(node)), _SETTLE_S)
        self.on_cluster_change(key, old, new)

    def on_rule(self, key: ids.Key, old: object, new: object) -> None:
        """Enqueue all nodes: a rule may apply to any device."""
        if old != new:
            self._items.add_after(write_pool.NODES, _SETTLE_S)
        self.on_cluster_change(key, old, new)

    def on_reservation(self, key: ids.Key, old: object, new: object) -> None:
        """Enqueue the Reservation, and wake pending pods: its devices may be usable."""
        self._items.add(write_pool.WorkItem("reservation", key))
        self.on_cluster_change(key, old, new)

    def on_queue(self, key: ids.Key, old: queues.Queue | None, new: queues.Queue | None) -> None:
        """Enqueue the queues' status, and wake pending pods: their order may change."""
        self._items.add_after(write_pool.QUEUES, _SETTLE_S)
        self.on_cluster_change(key, old, new)

    def on_group(self, key: ids.Key, _old: object, _new: object) -> None:
        """Enqueue the gang of a PodGroup."""
        self._items.add(write_pool.WorkItem("gang", key))

    def on_cluster_change(self, _key: ids.Key, old: object, new: object) -> None:
        """Wake pending pods when an object that affects fitting changed."""
        if old != new:
            self._wake()

    def _wake(self) -> None:
        self._items.add_after(write_pool.WAKE, _SETTLE_S)


def _is_placeholder(pod: pods.Pod | None) -> bool:
    return pod is not None and names.PLACEHOLDER_LABEL in pod.labels


def _occupied_node(pod: pods.Pod | None) -> ids.NodeName | None:
    """The node on which a pod takes room; None when it takes none."""
    return None if pod is None or pod.finished else pod.node


def _is_marked(old: claims.Claim | None, new: claims.Claim | None) -> bool:
    """Return whether the mark of a release is all that changed."""
    if old is None or new is None or old.released == new.released:
        return False
    return replace(old, version=new.version, released=new.released) == new
