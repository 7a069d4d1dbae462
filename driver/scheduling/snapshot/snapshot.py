"""Snapshot: the read interface of the cluster state that scheduling decides by. Pure.

Scheduling reads nothing else. `cluster_state.ClusterState` implements it and is updated on the
deciding thread, so a snapshot does not change during a decision (ADR 13).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from driver import ids, names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices
from driver.resources.dra import pools as dra_pools
from driver.scheduling.snapshot import placed_pods, storage_index

PoolKey = tuple[str, str]
"""Driver and pool."""
CounterAmounts = Mapping[dra_pools.Counter, int]
"""Remainder of each counter of a pool, in nano-units; below 0: overdrawn."""


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """Usage of a node by its pods, including those assigned but not bound.

    `placeholders` counts pods of the provisioner: the node was requested and is not complete yet.
    """

    requests: Mapping[str, int] = field(default_factory=dict)
    ports: frozenset[pods.HostPort] = frozenset()
    pod_count: int = 0
    placeholders: int = 0


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Holder:
    """A claim that holds a device, or a share of one, by one of its results."""

    claim: ids.Key
    result: claims.Result
    allocation: claims.Allocation

    @property
    def namespace(self) -> str:
        """Namespace of the claim."""
        return self.claim.partition("/")[0]


class Snapshot(Protocol):
    """One consistent view of the cluster."""

    @property
    def driver(self) -> str:
        """Our driver's name."""
        ...

    @property
    def managed_drivers(self) -> AbstractSet[str]:
        """Drivers whose devices the controller may allocate, ours among them."""
        ...

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        ...

    @property
    def classes(self) -> Mapping[str, device_classes.DeviceClass]:
        """Every DeviceClass."""
        ...

    @property
    def usage(self) -> Mapping[ids.NodeName, NodeUsage]:
        """Pod usage of each node that has pods."""
        ...

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """Return the pods of a node, including those assigned but not bound."""
        ...

    @property
    def population(self) -> placed_pods.Population:
        """Pods of all nodes by kind, for filters that look beyond a node."""
        ...

    @property
    def storage(self) -> storage_index.StorageIndex:
        """Volumes, claims, classes and drivers."""
        ...

    @property
    def generation(self) -> int:
        """Generation number; changes when a pool, DeviceTaintRule or DeviceClass changes."""
        ...

    @property
    def pools(self) -> Mapping[PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        ...

    def holders(self, device: claims.DeviceId) -> Sequence[Holder]:
        """Return the holders of a device; administrative access does not count."""
        ...

    def used_devices(self, pool: dra_pools.Pool) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        ...

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.NodePool]:
        """Return what a node reaches of each pool, preferred devices first."""
        ...

    def remaining_counters(self, pool: dra_pools.Pool) -> CounterAmounts:
        """Return what is left of a pool's counters (KEP-4815)."""
        ...

    @property
    def revision(self) -> int:
        """Current revision; see `changed_since`."""
        ...

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """Return the current revision and the nodes changed since an earlier one.

        None if that is not known any more: any node may have changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class InFlight:
    """A decision that is being written: its pod, its node, and each claim's allocation.

    `scheduler_allocations` are those that kube-scheduler is expected to make for the pod there.
    """

    pod: pods.Pod
    node: ids.NodeName
    allocations: Mapping[ids.Key, claims.Allocation]
    scheduler_allocations: Mapping[ids.Key, claims.Allocation] = field(
        default_factory=dict, kw_only=True
    )

    @property
    def all_allocations(self) -> Mapping[ids.Key, claims.Allocation]:
        """The allocations of both, by claim."""
        return {**self.allocations, **self.scheduler_allocations}


def is_managed(view: Snapshot, device: claims.DeviceId) -> bool:
    """Return whether the device, of whatever driver, is the controller's to allocate (D2)."""
    published = published_device(view, device)
    return published is not None and published.is_tainted_for("controller")


def has_managed_device(pool: dra_pools.Pool) -> bool:
    """Return whether a device of the pool is the controller's to allocate (D2)."""
    return pool.cached(_has_managed_device)


def _has_managed_device(pool: dra_pools.Pool) -> bool:
    return any(
        device.is_tainted_for("controller")
        for resource_slice in pool.slices
        for device in resource_slice.devices
    )


def all_managed(view: Snapshot, device_ids: Iterable[claims.DeviceId]) -> bool:
    """Return whether the controller allocates each device and none is being handed over."""
    return all(
        is_managed(view, device_id) and not _handed_over(published_device(view, device_id))
        for device_id in device_ids
    )


def _handed_over(device: slices.Device | None) -> bool:
    return device is not None and any(taint.key == names.HANDOVER_TAINT for taint in device.taints)


def published_device(view: Snapshot, device: claims.DeviceId) -> slices.Device | None:
    """Return a device as its pool shows it; None if it does not."""
    pool = view.pools.get((device.driver, device.pool))
    return pool.devices.get(device.device) if pool else None


def pinned_node(claim: claims.Claim) -> ids.NodeName | None:
    """Return the node that an allocation is limited to; None if it is not limited to one."""
    selector = claim.allocation.selector if claim.allocation else None
    if selector is None or len(selector.terms) != 1:
        return None
    term = selector.terms[0]
    if term.labels or len(term.fields) != 1 or len(term.fields[0].values) != 1:
        return None
    return ids.NodeName(term.fields[0].values[0])


def pod_claims(
    pod: pods.Pod, find: Callable[[ids.Key], claims.Claim | None]
) -> tuple[claims.Claim, ...] | None:
    """Return the claims of a pod, each once; None while one of them does not exist."""
    if any(entry.claim is None for entry in pod.claims):
        return None
    result = []
    for key in pod.claim_keys:
        claim = find(key)
        if claim is None:
            return None
        result.append(claim)
    return tuple(result)
