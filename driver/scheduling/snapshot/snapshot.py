"""ClusterView: what matters for placing pods, as one picture. Pure.

Deciding reads nothing else. A picture is kept up to date by `picture.Picture`, on the thread that
decides: it stands still while a decision is made (ADR 13).
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
"""What devices in use leave of each counter of a pool, in nano-units; below 0: overdrawn."""


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What the pods of a node take, those on their way to it included.

    `arriving` of them are placeholders: the node was asked for, and is not complete yet.
    """

    requests: Mapping[str, int] = field(default_factory=dict)
    ports: frozenset[pods.HostPort] = frozenset()
    pod_count: int = 0
    placeholders: int = 0


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Holder:
    """A claim that has a device, or a share of one, by one of its results; as long as it has it."""

    claim: ids.Key
    result: claims.Result
    allocation: claims.Allocation

    @property
    def namespace(self) -> str:
        """The claim's."""
        return self.claim.partition("/")[0]


class Snapshot(Protocol):
    """One consistent picture."""

    @property
    def driver(self) -> str:
        """Our driver's name."""
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
        """What pods take of the nodes that have any."""
        ...

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        ...

    @property
    def population(self) -> placed_pods.Population:
        """The pods of all nodes by kind, for what looks beyond a node."""
        ...

    @property
    def storage(self) -> storage_index.StorageIndex:
        """Volumes, and what they are made by."""
        ...

    @property
    def generation(self) -> int:
        """Another number whenever a pool, a rule or a class changed."""
        ...

    @property
    def pools(self) -> Mapping[PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        ...

    def holders(self, device: claims.DeviceId) -> Sequence[Holder]:
        """Who has a device; administrative access does not count."""
        ...

    def used_devices(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        ...

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.Share]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        ...

    def remaining_counters(self, of: dra_pools.Pool) -> CounterAmounts:
        """What is left of a pool's counters (KEP-4815)."""
        ...

    @property
    def revision(self) -> int:
        """Of now; `since` tells what changed after it."""
        ...

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes for which something changed since an earlier mark.

        None where that is not known any more: then anything may have changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class InFlight:
    """A decision that is being written: its pod, its node, and each claim's allocation."""

    pod: pods.Pod
    node: ids.NodeName
    allocations: Mapping[ids.Key, claims.Allocation]


def is_managed(view: Snapshot, device: claims.DeviceId) -> bool:
    """Whether a device is published by our driver for the controller to allocate (D2)."""
    found = published_device(view, device)
    return device.driver == view.driver and found is not None and found.tainted_for("controller")


def all_managed(view: Snapshot, found: Iterable[claims.DeviceId]) -> bool:
    """Whether each of these devices is the controller's to give, and not being handed over."""
    return all(
        is_managed(view, one) and not _handed_over(published_device(view, one)) for one in found
    )


def _handed_over(device: slices.Device | None) -> bool:
    return device is not None and any(taint.key == names.HANDOVER_TAINT for taint in device.taints)


def published_device(view: Snapshot, device: claims.DeviceId) -> slices.Device | None:
    """A device as its pool shows it; None where it does not."""
    found = view.pools.get((device.driver, device.pool))
    return found.devices.get(device.device) if found else None


def pinned_node(claim: claims.Claim) -> ids.NodeName | None:
    """The one node an allocation is for, when it is for one."""
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
    """The claims of a pod; None while one of them is not there yet."""
    result = []
    for entry in pod.claims:
        if entry.claim == "":
            continue
        claim = find(ids.Key(f"{pod.namespace}/{entry.claim}"))
        if claim is None:
            return None
        result.append(claim)
    return tuple(result)
