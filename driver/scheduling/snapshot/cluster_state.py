"""The picture of the cluster, kept by changes: what a change does not touch is not looked at again.

One thread owns it; it is a `view.ClusterView` between two changes. Whatever the order of changes,
the picture of the same objects is the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from driver import ids
from driver.resources.core import namespaces, nodes, pods, storage, volumes
from driver.resources.dra import claims, device_classes, slices, taint_rules
from driver.resources.dra import pools as dra_pools
from driver.scheduling.snapshot import (
    allocated_devices,
    changelog,
    node_usage,
    placed_pods,
    pool_index,
    snapshot,
    storage_index,
)


@dataclass(frozen=True, slots=True)
class NodeMarkers:
    """By what a node is known that takes nobody, where nodes are asked for.

    Placeholders are in the namespace `arriving`; taints of the keys `leaving` say that a node is
    about to be taken away.
    """

    placeholder_namespace: str = ""
    removal_taints: frozenset[str] = frozenset()


NO_MARKERS = NodeMarkers()
_NO_NODE = ids.NodeName("")
"""Marks a change that no node's own answer depends on."""


class _ReadOnlyState:
    """What deciding reads (`view.ClusterView`)."""

    def __init__(self, driver: str, signs: NodeMarkers) -> None:
        self._driver = driver
        self._nodes: dict[ids.NodeName, nodes.Node] = {}
        self._classes: dict[str, device_classes.DeviceClass] = {}
        self._pool_index = pool_index.PoolIndex()
        self._allocated = allocated_devices.AllocatedDevices()
        self._population = placed_pods.PlacedPods(self._nodes)
        self._usage = node_usage.NodeUsageIndex(signs.placeholder_namespace, self._population)
        self._storage = storage_index.StorageIndex()
        self._reachable: dict[ids.NodeName, tuple[dra_pools.Share, ...]] = {}
        self._remaining: dict[snapshot.PoolKey, snapshot.CounterAmounts] = {}
        self._generation = 0
        self._changes = changelog.ChangeLog()

    @property
    def driver(self) -> str:
        """Our driver's name."""
        return self._driver

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return MappingProxyType(self._nodes)

    @property
    def classes(self) -> Mapping[str, device_classes.DeviceClass]:
        """Every DeviceClass."""
        return MappingProxyType(self._classes)

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """What pods take of the nodes that have any."""
        return self._usage.usage

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        return self._usage.pods_on(node)

    def node_state(self, node: ids.NodeName, across_nodes: bool) -> object:  # noqa: FBT001
        """The Node and its bound pods, or the bindings of all: equal while neither changed."""
        if across_nodes:
            return self._nodes.get(node), self._usage.bindings
        bound = (pod.uid for pod in self._usage.pods_on(node).values() if pod.node is not None)
        return self._nodes.get(node), frozenset(bound)

    @property
    def population(self) -> placed_pods.Population:
        """The pods of all nodes by kind, for what looks beyond a node."""
        return self._population

    @property
    def storage(self) -> storage_index.StorageIndex:
        """Volumes, and what they are made by."""
        return self._storage

    @property
    def generation(self) -> int:
        """Another number whenever a pool, a rule or a class changed."""
        return self._generation

    @property
    def pools(self) -> Mapping[snapshot.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return self._pool_index.all_pools()

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Who has a device; administrative access does not count."""
        return self._allocated.holders(device)

    def used_devices(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        return self._allocated.pool_devices((of.driver, of.name))

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.Share]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        found = self._reachable.get(node)
        if found is None:
            found = self._reachable[node] = self._pool_index.reachable_pools(self._nodes[node])
        return found

    def remaining_counters(self, of: dra_pools.Pool) -> snapshot.CounterAmounts:
        """What is left of a pool's counters (KEP-4815)."""
        key = (of.driver, of.name)
        if key not in self._remaining:
            self._remaining[key] = self._allocated.remaining_counters(of)
        return self._remaining[key]

    @property
    def revision(self) -> int:
        """Of now; `since` tells what changed after it."""
        return self._changes.revision

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes for which something changed since an earlier mark."""
        return self._changes.changed_since(mark)


class ClusterState(_ReadOnlyState):
    """Fed by `put_*` (None: the object is gone) and by `fly`/`land` for decisions in flight."""

    def __init__(self, driver: str, signs: NodeMarkers = NO_MARKERS) -> None:
        super().__init__(driver, signs)
        self._removal_taints = signs.removal_taints
        self._changed_claims: dict[ids.Key, None] = {}
        self.release_count = 0
        """Another number whenever a claim lost its devices."""

    def set_node(self, name: ids.NodeName, node: nodes.Node | None) -> None:
        """A node came, changed or went."""
        if node is not None and self._removal_taints:
            goes_by = self._removal_taint(node)
            node = replace(node, leaving=goes_by) if goes_by else node
        if node is not None and self._nodes.get(name) == node:
            return
        self._reachable.pop(name, None)
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
        self._population.set_node(name, node)
        self._record_changes([name])

    def _removal_taint(self, node: nodes.Node) -> str:
        found = (one for one in node.taints if one.effect in nodes.BLOCKING)
        return next((one.key for one in found if one.key in self._removal_taints), "")

    def set_device_class(self, name: str, one: device_classes.DeviceClass | None) -> None:
        """A DeviceClass came, changed or went."""
        self._generation += 1
        if one is None:
            self._classes.pop(name, None)
        else:
            self._classes[name] = one
        self._changes.invalidate()

    def set_slice(self, name: str, one: slices.Slice | None) -> None:
        """A ResourceSlice came, changed or went."""
        before = self._pool_index.get_slice(name)
        if one == before:
            return
        self._generation += 1
        concerned = {(part.driver, part.pool) for part in (before, one) if part is not None}
        self._invalidate_pools(concerned)
        self._pool_index.set_slice(name, one)
        self._invalidate_pools(concerned)

    def set_taint_rule(self, name: str, rule: taint_rules.TaintRule | None) -> None:
        """A DeviceTaintRule came, changed or went."""
        self._generation += 1
        self._pool_index.set_taint_rule(name, rule)
        self._reachable.clear()
        self._remaining.clear()
        self._changes.invalidate()

    def set_claim(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """A claim came, changed or went."""
        allocation = claim.allocation if claim else None
        self.release_count += allocation is None and self._allocated.allocation(key) is not None
        self._invalidate_devices(self._allocated.set_claim(key, allocation))
        self._record_changes(self._usage.set_claim(key, claim))
        self._changed_claims[key] = None

    def set_reserved_devices(self, key: ids.Key, allocation: claims.Allocation | None) -> None:
        """Devices are kept for somebody who has no claim yet; a key that no claim can have."""
        self._invalidate_devices(self._allocated.set_claim(key, allocation))

    def drain_changed_claims(self) -> Sequence[ids.Key]:
        """The claims that something was said of since the last call."""
        found, self._changed_claims = self._changed_claims, {}
        return [*found]

    def allocation(self, claim: ids.Key) -> claims.Allocation | None:
        """What a claim has, by a decision in flight or else as it is written."""
        return self._allocated.allocation(claim)

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        self._record_changes(self._usage.set_pod(key, pod))

    def set_namespace(self, name: str, space: namespaces.Namespace | None) -> None:
        """Take a Namespace as it is now; no node's own answer depends on it."""
        self._record_storage_change(
            self._population.set_namespace(name, None if space is None else space.labels)
        )

    def set_volume_claim(self, key: ids.Key, bound: volumes.VolumeClaim | None) -> None:
        """A PersistentVolumeClaim came, changed or went."""
        self._record_storage_change(self._storage.set_claim(key, bound))

    def set_volume(self, name: str, volume: volumes.Volume | None) -> None:
        """A PersistentVolume came, changed or went."""
        self._record_storage_change(self._storage.set_volume(name, volume))

    def set_storage_class(self, name: str, maker: storage.StorageClass | None) -> None:
        """A StorageClass came, changed or went."""
        self._record_storage_change(self._storage.set_class(name, maker))

    def set_csi_node(self, name: str, node: storage.CSINode | None) -> None:
        """A CSINode came, changed or went."""
        self._record_storage_change(self._storage.set_node(name, node))

    def set_csi_driver(self, name: str, driver: storage.CSIDriver | None) -> None:
        """A CSIDriver came, changed or went."""
        self._record_storage_change(self._storage.set_driver(name, driver))

    def set_storage_capacity(self, key: ids.Key, capacity: storage.Capacity | None) -> None:
        """A CSIStorageCapacity came, changed or went."""
        self._record_storage_change(self._storage.set_capacity(key, capacity))

    def set_attachment(self, name: str, attachment: storage.Attachment | None) -> None:
        """A VolumeAttachment came, changed or went."""
        self._record_storage_change(self._storage.set_attachment(name, attachment))

    def _record_storage_change(self, changed: bool) -> None:  # noqa: FBT001 - of what was put
        """Pods with volumes look at the mark of what is stored; all others need not be asked."""
        if changed:
            self._changes.add([_NO_NODE])

    def begin_write(self, decision: snapshot.InFlight) -> None:
        """A decision is being written: what it gives is given."""
        for key, allocation in decision.allocations.items():
            self._invalidate_devices(self._allocated.begin_write(key, allocation))
            self._changed_claims[key] = None
        self._record_changes(self._usage.begin_write(decision.pod, decision.node))

    def end_write(self, decision: snapshot.InFlight) -> None:
        """The writing ended: what the caches say counts again."""
        for key in decision.allocations:
            self._invalidate_devices(self._allocated.end_write(key))
            self._changed_claims[key] = None
        self._record_changes(self._usage.end_write(decision.pod))

    def _invalidate_devices(self, devices: Iterable[claims.DeviceId]) -> None:
        for key in {(device.driver, device.pool) for device in devices}:
            self._remaining.pop(key, None)
            self._record_changes(self._pool_index.pool_nodes(key))

    def _invalidate_pools(self, keys: Iterable[snapshot.PoolKey]) -> None:
        for key in keys:
            self._remaining.pop(key, None)
            places = self._pool_index.pool_nodes(key)
            for name in places:
                self._reachable.pop(name, None)
            if pool_index.ALL_NODES in places:
                self._reachable.clear()
            self._record_changes(places)

    def _record_changes(self, names: Iterable[ids.NodeName]) -> None:
        found = [*names]
        if pool_index.ALL_NODES in found:
            self._changes.invalidate()
        else:
            self._changes.add(found)


@dataclass(frozen=True, slots=True)
class CachedObjects:
    """What the reflectors hold."""

    nodes: Mapping[ids.Key, nodes.Node]
    slices: Mapping[ids.Key, slices.Slice]
    classes: Mapping[ids.Key, device_classes.DeviceClass]
    claims: Mapping[ids.Key, claims.Claim]
    pods: Mapping[ids.Key, pods.Pod]
    volume_claims: Mapping[ids.Key, volumes.VolumeClaim] = field(default_factory=dict)
    rules: Mapping[ids.Key, taint_rules.TaintRule] = field(default_factory=dict)
    persistent_volumes: Mapping[ids.Key, volumes.Volume] = field(default_factory=dict)
    namespace_objects: Mapping[ids.Key, namespaces.Namespace] = field(default_factory=dict)
    storage_classes: Mapping[ids.Key, storage.StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[ids.Key, storage.CSINode] = field(default_factory=dict)
    csi_drivers: Mapping[ids.Key, storage.CSIDriver] = field(default_factory=dict)
    capacities: Mapping[ids.Key, storage.Capacity] = field(default_factory=dict)
    attachments: Mapping[ids.Key, storage.Attachment] = field(default_factory=dict)


def _set_named(picture: ClusterState, caches: CachedObjects) -> None:
    puts: Sequence[tuple[Mapping[ids.Key, Any], Callable[[Any, Any], None]]] = (
        (caches.namespace_objects, picture.set_namespace),
        (caches.volume_claims, picture.set_volume_claim),
        (caches.persistent_volumes, picture.set_volume),
        (caches.storage_classes, picture.set_storage_class),
        (caches.csi_nodes, picture.set_csi_node),
        (caches.csi_drivers, picture.set_csi_driver),
        (caches.capacities, picture.set_storage_capacity),
        (caches.attachments, picture.set_attachment),
    )
    for cache, put in puts:
        for key, item in cache.items():
            put(key, item)


def build(
    driver: str, caches: CachedObjects, in_flight: Iterable[snapshot.InFlight] = ()
) -> ClusterState:
    """The picture of all that caches hold, and of decisions in flight, made at once."""
    made = ClusterState(driver)
    for name, one in caches.slices.items():
        made.set_slice(name, one)
    for key, rule in caches.rules.items():
        made.set_taint_rule(key, rule)
    for node in caches.nodes.values():
        made.set_node(node.name, node)
    _set_named(made, caches)
    for device_class in caches.classes.values():
        made.set_device_class(device_class.name, device_class)
    for key, claim in caches.claims.items():
        made.set_claim(key, claim)
    for key, pod in caches.pods.items():
        made.set_pod(key, pod)
    for decision in in_flight:
        made.begin_write(decision)
    return made
