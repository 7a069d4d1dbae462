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
    storage_index,
)
from driver.scheduling.snapshot import snapshot as cluster


@dataclass(frozen=True, slots=True)
class Signs:
    """By what a node is known that takes nobody, where nodes are asked for.

    Placeholders are in the namespace `arriving`; taints of the keys `leaving` say that a node is
    about to be taken away.
    """

    arriving: str = ""
    leaving: frozenset[str] = frozenset()


NONE = Signs()
_NO_NODE = ids.NodeName("")
"""Marks a change that no node's own answer depends on."""


class _Shown:
    """What deciding reads (`view.ClusterView`)."""

    def __init__(self, driver: str, signs: Signs) -> None:
        self._driver = driver
        self._nodes: dict[ids.NodeName, nodes.Node] = {}
        self._classes: dict[str, device_classes.DeviceClass] = {}
        self._stock = pool_index.Stock()
        self._held = allocated_devices.Held()
        self._population = placed_pods.Placed(self._nodes)
        self._load = node_usage.Load(signs.arriving, self._population)
        self._stored = storage_index.Stored()
        self._shares: dict[ids.NodeName, tuple[dra_pools.Share, ...]] = {}
        self._left: dict[cluster.PoolKey, cluster.Left] = {}
        self._world = 0
        self._changes = changelog.Changes()

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
    def use(self) -> Mapping[ids.NodeName, cluster.NodeUse]:
        """What pods take of the nodes that have any."""
        return self._load.use

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        return self._load.on(node)

    def state_of(self, node: ids.NodeName, across_nodes: bool) -> object:  # noqa: FBT001
        """The Node and its bound pods, or the bindings of all: equal while neither changed."""
        if across_nodes:
            return self._nodes.get(node), self._load.bindings
        bound = (pod.uid for pod in self._load.on(node).values() if pod.node is not None)
        return self._nodes.get(node), frozenset(bound)

    @property
    def population(self) -> placed_pods.Population:
        """The pods of all nodes by kind, for what looks beyond a node."""
        return self._population

    @property
    def stored(self) -> storage_index.Stored:
        """Volumes, and what they are made by."""
        return self._stored

    @property
    def world(self) -> int:
        """Another number whenever a pool, a rule or a class changed."""
        return self._world

    @property
    def pools(self) -> Mapping[cluster.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return self._stock.all()

    def holders(self, device: claims.DeviceId) -> Sequence[cluster.Holder]:
        """Who has a device; administrative access does not count."""
        return self._held.of(device)

    def used(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        return self._held.in_pool((of.driver, of.name))

    def shares(self, node: ids.NodeName) -> Sequence[dra_pools.Share]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        found = self._shares.get(node)
        if found is None:
            found = self._shares[node] = self._stock.shares(self._nodes[node])
        return found

    def left(self, of: dra_pools.Pool) -> cluster.Left:
        """What is left of a pool's counters (KEP-4815)."""
        key = (of.driver, of.name)
        if key not in self._left:
            self._left[key] = self._held.left(of)
        return self._left[key]

    @property
    def mark(self) -> int:
        """Of now; `since` tells what changed after it."""
        return self._changes.mark

    def since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes for which something changed since an earlier mark."""
        return self._changes.since(mark)


class Picture(_Shown):
    """Fed by `put_*` (None: the object is gone) and by `fly`/`land` for decisions in flight."""

    def __init__(self, driver: str, signs: Signs = NONE) -> None:
        super().__init__(driver, signs)
        self._leaving = signs.leaving
        self._stirred: dict[ids.Key, None] = {}
        self.freed = 0
        """Another number whenever a claim lost its devices."""

    def put_node(self, name: ids.NodeName, node: nodes.Node | None) -> None:
        """A node came, changed or went."""
        if node is not None and self._leaving:
            goes_by = self._goes_by(node)
            node = replace(node, leaving=goes_by) if goes_by else node
        if node is not None and self._nodes.get(name) == node:
            return
        self._shares.pop(name, None)
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
        self._population.note_node(name, node)
        self._touch([name])

    def _goes_by(self, node: nodes.Node) -> str:
        found = (one for one in node.taints if one.effect in nodes.BLOCKING)
        return next((one.key for one in found if one.key in self._leaving), "")

    def put_class(self, name: str, one: device_classes.DeviceClass | None) -> None:
        """A DeviceClass came, changed or went."""
        self._world += 1
        if one is None:
            self._classes.pop(name, None)
        else:
            self._classes[name] = one
        self._changes.forget()

    def put_slice(self, name: str, one: slices.Slice | None) -> None:
        """A ResourceSlice came, changed or went."""
        before = self._stock.get(name)
        if one == before:
            return
        self._world += 1
        concerned = {(part.driver, part.pool) for part in (before, one) if part is not None}
        self._moved(concerned)
        self._stock.put(name, one)
        self._moved(concerned)

    def put_rule(self, name: str, rule: taint_rules.TaintRule | None) -> None:
        """A DeviceTaintRule came, changed or went."""
        self._world += 1
        self._stock.put_rule(name, rule)
        self._shares.clear()
        self._left.clear()
        self._changes.forget()

    def put_claim(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """A claim came, changed or went."""
        allocation = claim.allocation if claim else None
        self.freed += allocation is None and self._held.allocation(key) is not None
        self._charge(self._held.put(key, allocation))
        self._touch(self._load.put_claim(key, claim))
        self._stirred[key] = None

    def put_hold(self, key: ids.Key, allocation: claims.Allocation | None) -> None:
        """Devices are kept for somebody who has no claim yet; a key that no claim can have."""
        self._charge(self._held.put(key, allocation))

    def stirred(self) -> Sequence[ids.Key]:
        """The claims that something was said of since the last call."""
        found, self._stirred = self._stirred, {}
        return [*found]

    def allocation(self, claim: ids.Key) -> claims.Allocation | None:
        """What a claim has, by a decision in flight or else as it is written."""
        return self._held.allocation(claim)

    def put_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        self._touch(self._load.put_pod(key, pod))

    def put_namespace(self, name: str, space: namespaces.Namespace | None) -> None:
        """Take a Namespace as it is now; no node's own answer depends on it."""
        self._stow(self._population.put_namespace(name, None if space is None else space.labels))

    def put_bound(self, key: ids.Key, bound: volumes.VolumeClaim | None) -> None:
        """A PersistentVolumeClaim came, changed or went."""
        self._stow(self._stored.put_claim(key, bound))

    def put_volume(self, name: str, volume: volumes.Volume | None) -> None:
        """A PersistentVolume came, changed or went."""
        self._stow(self._stored.put_volume(name, volume))

    def put_storage_class(self, name: str, maker: storage.StorageClass | None) -> None:
        """A StorageClass came, changed or went."""
        self._stow(self._stored.put_class(name, maker))

    def put_csi_node(self, name: str, node: storage.CSINode | None) -> None:
        """A CSINode came, changed or went."""
        self._stow(self._stored.put_node(name, node))

    def put_csi_driver(self, name: str, driver: storage.CSIDriver | None) -> None:
        """A CSIDriver came, changed or went."""
        self._stow(self._stored.put_driver(name, driver))

    def put_capacity(self, key: ids.Key, capacity: storage.Capacity | None) -> None:
        """A CSIStorageCapacity came, changed or went."""
        self._stow(self._stored.put_capacity(key, capacity))

    def put_attachment(self, name: str, attachment: storage.Attachment | None) -> None:
        """A VolumeAttachment came, changed or went."""
        self._stow(self._stored.put_attachment(name, attachment))

    def _stow(self, changed: bool) -> None:  # noqa: FBT001 - of what was put
        """Pods with volumes look at the mark of what is stored; all others need not be asked."""
        if changed:
            self._changes.add([_NO_NODE])

    def fly(self, decision: cluster.InFlight) -> None:
        """A decision is being written: what it gives is given."""
        for key, allocation in decision.made.items():
            self._charge(self._held.fly(key, allocation))
            self._stirred[key] = None
        self._touch(self._load.fly(decision.pod, decision.node))

    def land(self, decision: cluster.InFlight) -> None:
        """The writing ended: what the caches say counts again."""
        for key in decision.made:
            self._charge(self._held.land(key))
            self._stirred[key] = None
        self._touch(self._load.land(decision.pod))

    def _charge(self, devices: Iterable[claims.DeviceId]) -> None:
        for key in {(device.driver, device.pool) for device in devices}:
            self._left.pop(key, None)
            self._touch(self._stock.places(key))

    def _moved(self, keys: Iterable[cluster.PoolKey]) -> None:
        for key in keys:
            self._left.pop(key, None)
            places = self._stock.places(key)
            for name in places:
                self._shares.pop(name, None)
            if pool_index.EVERYWHERE in places:
                self._shares.clear()
            self._touch(places)

    def _touch(self, names: Iterable[ids.NodeName]) -> None:
        found = [*names]
        if pool_index.EVERYWHERE in found:
            self._changes.forget()
        else:
            self._changes.add(found)


@dataclass(frozen=True, slots=True)
class Caches:
    """What the reflectors hold."""

    nodes: Mapping[ids.Key, nodes.Node]
    slices: Mapping[ids.Key, slices.Slice]
    classes: Mapping[ids.Key, device_classes.DeviceClass]
    claims: Mapping[ids.Key, claims.Claim]
    pods: Mapping[ids.Key, pods.Pod]
    bound_volumes: Mapping[ids.Key, volumes.VolumeClaim] = field(default_factory=dict)
    rules: Mapping[ids.Key, taint_rules.TaintRule] = field(default_factory=dict)
    persistent_volumes: Mapping[ids.Key, volumes.Volume] = field(default_factory=dict)
    spaces: Mapping[ids.Key, namespaces.Namespace] = field(default_factory=dict)
    storage_classes: Mapping[ids.Key, storage.StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[ids.Key, storage.CSINode] = field(default_factory=dict)
    csi_drivers: Mapping[ids.Key, storage.CSIDriver] = field(default_factory=dict)
    capacities: Mapping[ids.Key, storage.Capacity] = field(default_factory=dict)
    attachments: Mapping[ids.Key, storage.Attachment] = field(default_factory=dict)


def _put_named(picture: Picture, caches: Caches) -> None:
    puts: Sequence[tuple[Mapping[ids.Key, Any], Callable[[Any, Any], None]]] = (
        (caches.spaces, picture.put_namespace),
        (caches.bound_volumes, picture.put_bound),
        (caches.persistent_volumes, picture.put_volume),
        (caches.storage_classes, picture.put_storage_class),
        (caches.csi_nodes, picture.put_csi_node),
        (caches.csi_drivers, picture.put_csi_driver),
        (caches.capacities, picture.put_capacity),
        (caches.attachments, picture.put_attachment),
    )
    for cache, put in puts:
        for key, item in cache.items():
            put(key, item)


def build(driver: str, caches: Caches, in_flight: Iterable[cluster.InFlight] = ()) -> Picture:
    """The picture of all that caches hold, and of decisions in flight, made at once."""
    made = Picture(driver)
    for name, one in caches.slices.items():
        made.put_slice(name, one)
    for key, rule in caches.rules.items():
        made.put_rule(key, rule)
    for node in caches.nodes.values():
        made.put_node(node.name, node)
    _put_named(made, caches)
    for device_class in caches.classes.values():
        made.put_class(device_class.name, device_class)
    for key, claim in caches.claims.items():
        made.put_claim(key, claim)
    for key, pod in caches.pods.items():
        made.put_pod(key, pod)
    for decision in in_flight:
        made.fly(decision)
    return made
