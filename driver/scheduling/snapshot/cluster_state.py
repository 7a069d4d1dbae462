"""Incrementally maintained cluster state: a change recomputes nothing that it does not touch.

Owned by one thread; between two changes it is a `snapshot.Snapshot`. The state does not depend on
the order of changes.
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
    """Markers of nodes that take no pods, with the provisioner enabled.

    Placeholder pods are in `placeholder_namespace`; a taint with a key of `removal_taints`
    announces that the node is about to be removed.
    """

    placeholder_namespace: str = ""
    removal_taints: frozenset[str] = frozenset()


NO_MARKERS = NodeMarkers()
_NO_NODE = ids.NodeName("")
"""Marks a change that no node's own result depends on."""


class _ReadOnlyState:
    """Read interface (`snapshot.Snapshot`)."""

    def __init__(self, driver: str, signs: NodeMarkers, other_drivers: frozenset[str]) -> None:
        self._driver = driver
        self._managed_drivers = other_drivers | {driver}
        self._nodes: dict[ids.NodeName, nodes.Node] = {}
        self._classes: dict[str, device_classes.DeviceClass] = {}
        self._pool_index = pool_index.PoolIndex()
        self._allocated = allocated_devices.AllocatedDevices()
        self._population = placed_pods.PlacedPods(self._nodes)
        self._usage = node_usage.NodeUsageIndex(signs.placeholder_namespace, self._population)
        self._storage = storage_index.StorageIndex()
        self._reachable: dict[ids.NodeName, tuple[dra_pools.NodePool, ...]] = {}
        self._remaining: dict[snapshot.PoolKey, snapshot.CounterAmounts] = {}
        self._generation = 0
        self._changes = changelog.ChangeLog()

    @property
    def driver(self) -> str:
        """Our driver's name."""
        return self._driver

    @property
    def managed_drivers(self) -> AbstractSet[str]:
        """Drivers whose devices the controller may allocate, ours among them."""
        return self._managed_drivers

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
        """Pod usage of each node that has pods."""
        return self._usage.usage

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """Return the pods of a node, including those assigned but not bound."""
        return self._usage.pods_on(node)

    def node_state(self, node: ids.NodeName, across_nodes: bool) -> object:  # noqa: FBT001
        """Return the Node and its bound pods, or all bindings: equal while neither changed."""
        if across_nodes:
            return self._nodes.get(node), self._usage.bindings
        bound = (pod.uid for pod in self._usage.pods_on(node).values() if pod.node is not None)
        return self._nodes.get(node), frozenset(bound)

    @property
    def population(self) -> placed_pods.Population:
        """Pods of all nodes by kind, for filters that look beyond a node."""
        return self._population

    @property
    def storage(self) -> storage_index.StorageIndex:
        """Volumes, claims, classes and drivers."""
        return self._storage

    @property
    def generation(self) -> int:
        """Generation number; changes when a pool, DeviceTaintRule or DeviceClass changes."""
        return self._generation

    @property
    def pools(self) -> Mapping[snapshot.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return self._pool_index.all_pools()

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Return the holders of a device; administrative access does not count."""
        return self._allocated.holders(device)

    def used_devices(self, pool: dra_pools.Pool) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        return self._allocated.pool_devices((pool.driver, pool.name))

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.NodePool]:
        """Return what a node reaches of each pool, preferred devices first."""
        shares = self._reachable.get(node)
        if shares is None:
            shares = self._reachable[node] = self._pool_index.reachable_pools(self._nodes[node])
        return shares

    def remaining_counters(self, pool: dra_pools.Pool) -> snapshot.CounterAmounts:
        """Return what is left of a pool's counters (KEP-4815)."""
        key = (pool.driver, pool.name)
        if key not in self._remaining:
            self._remaining[key] = self._allocated.remaining_counters(pool)
        return self._remaining[key]

    @property
    def revision(self) -> int:
        """Current revision; see `changed_since`."""
        return self._changes.revision

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """Return the current revision and the nodes changed since `mark`; None: any may have."""
        return self._changes.changed_since(mark)


class ClusterState(_ReadOnlyState):
    """Cluster state, fed by `set_*` (None: deleted) and by `begin_write`/`end_write`."""

    def __init__(
        self,
        driver: str,
        signs: NodeMarkers = NO_MARKERS,
        other_drivers: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(driver, signs, other_drivers)
        self._removal_taints = signs.removal_taints
        self._changed_claims: dict[ids.Key, None] = {}
        self.release_count = 0
        """Another number whenever a claim lost its devices."""

    def set_node(self, name: ids.NodeName, node: nodes.Node | None) -> None:
        """Set or delete a Node."""
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
        blocking = (taint for taint in node.taints if taint.effect in nodes.BLOCKING)
        return next((taint.key for taint in blocking if taint.key in self._removal_taints), "")

    def set_device_class(self, name: str, device_class: device_classes.DeviceClass | None) -> None:
        """Set or delete a DeviceClass."""
        self._generation += 1
        if device_class is None:
            self._classes.pop(name, None)
        else:
            self._classes[name] = device_class
        self._changes.invalidate()

    def set_slice(self, name: str, new: slices.Slice | None) -> None:
        """Set or delete a ResourceSlice."""
        previous = self._pool_index.get_slice(name)
        if new == previous:
            return
        self._generation += 1
        concerned = {(part.driver, part.pool) for part in (previous, new) if part is not None}
        self._invalidate_pools(concerned)
        self._pool_index.set_slice(name, new)
        self._invalidate_pools(concerned)

    def set_taint_rule(self, name: str, rule: taint_rules.TaintRule | None) -> None:
        """Set or delete a DeviceTaintRule."""
        previous = self._pool_index.get_taint_rule(name)
        if rule == previous:
            return
        self._generation += 1
        self._pool_index.set_taint_rule(name, rule)
        concerned = (self._pool_index.tainted_pools(entry) for entry in (previous, rule))
        self._invalidate_pools(set().union(*concerned))

    def set_claim(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """Set or delete a ResourceClaim."""
        allocation = claim.allocation if claim else None
        self.release_count += allocation is None and self._allocated.allocation(key) is not None
        self._invalidate_devices(self._allocated.set_claim(key, allocation))
        self._record_changes(self._usage.set_claim(key, claim))
        self._changed_claims[key] = None

    def set_reserved_devices(self, key: ids.Key, allocation: claims.Allocation | None) -> None:
        """Set or delete devices reserved under a key that no claim can have."""
        self._invalidate_devices(self._allocated.set_claim(key, allocation))

    def drain_changed_claims(self) -> Sequence[ids.Key]:
        """Return and clear the claims that changed since the last call."""
        changed, self._changed_claims = self._changed_claims, {}
        return [*changed]

    def allocation(self, claim: ids.Key) -> claims.Allocation | None:
        """Return a claim's allocation: the one being written, or else the cached one."""
        return self._allocated.allocation(claim)

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """Set or delete a Pod."""
        self._record_changes(self._usage.set_pod(key, pod))

    def set_namespace(self, name: str, space: namespaces.Namespace | None) -> None:
        """Set or delete a Namespace; no node's own result depends on it."""
        self._record_storage_change(
            self._population.set_namespace(name, None if space is None else space.labels)
        )

    def set_volume_claim(self, key: ids.Key, bound: volumes.VolumeClaim | None) -> None:
        """Set or delete a PersistentVolumeClaim."""
        self._record_storage_change(self._storage.set_claim(key, bound))

    def set_volume(self, name: str, volume: volumes.Volume | None) -> None:
        """Set or delete a PersistentVolume."""
        self._record_storage_change(self._storage.set_volume(name, volume))

    def set_storage_class(self, name: str, maker: storage.StorageClass | None) -> None:
        """Set or delete a StorageClass."""
        self._record_storage_change(self._storage.set_class(name, maker))

    def set_csi_node(self, name: str, node: storage.CSINode | None) -> None:
        """Set or delete a CSINode."""
        self._record_storage_change(self._storage.set_node(name, node))

    def set_csi_driver(self, name: str, driver: storage.CSIDriver | None) -> None:
        """Set or delete a CSIDriver."""
        self._record_storage_change(self._storage.set_driver(name, driver))

    def set_storage_capacity(self, key: ids.Key, capacity: storage.Capacity | None) -> None:
        """Set or delete a CSIStorageCapacity."""
        self._record_storage_change(self._storage.set_capacity(key, capacity))

    def set_attachment(self, name: str, attachment: storage.Attachment | None) -> None:
        """Set or delete a VolumeAttachment."""
        self._record_storage_change(self._storage.set_attachment(name, attachment))

    def _record_storage_change(self, changed: bool) -> None:  # noqa: FBT001 - of what was put
        """Raise the revision for pods with volumes, whose keys hold the storage revision."""
        if changed:
            self._changes.add([_NO_NODE])

    def begin_write(self, decision: snapshot.InFlight) -> None:
        """Count a decision that is being written."""
        for key, allocation in decision.allocations.items():
            self._invalidate_devices(self._allocated.begin_write(key, allocation))
            self._changed_claims[key] = None
        if decision.scheduler_allocations:
            claim = next(iter(decision.allocations))
            self._invalidate_devices(self._allocated.expect(decision.scheduler_allocations, claim))
        self._record_changes(self._usage.begin_write(decision.pod, decision.node))

    def end_write(self, decision: snapshot.InFlight) -> None:
        """Count the cached objects again: the write ended."""
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
        changed = [*names]
        if pool_index.ALL_NODES in changed:
            self._changes.invalidate()
        else:
            self._changes.add(changed)


@dataclass(frozen=True, slots=True)
class CachedObjects:
    """Contents of the informers' stores."""

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
    driver: str,
    caches: CachedObjects,
    in_flight: Iterable[snapshot.InFlight] = (),
    other_drivers: frozenset[str] = frozenset(),
) -> ClusterState:
    """Build the state of all cached objects and of decisions in flight."""
    state = ClusterState(driver, other_drivers=other_drivers)
    for name, resource_slice in caches.slices.items():
        state.set_slice(name, resource_slice)
    for key, rule in caches.rules.items():
        state.set_taint_rule(key, rule)
    for node in caches.nodes.values():
        state.set_node(node.name, node)
    _set_named(state, caches)
    for device_class in caches.classes.values():
        state.set_device_class(device_class.name, device_class)
    for key, claim in caches.claims.items():
        state.set_claim(key, claim)
    for key, pod in caches.pods.items():
        state.set_pod(key, pod)
    for decision in in_flight:
        state.begin_write(decision)
    return state
