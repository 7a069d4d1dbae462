"""A view with decisions on top that can be taken back: what is below is never touched. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from driver import ids
from driver.resources.core import pods
from driver.resources.dra import claims, pools
from driver.scheduling.snapshot import (
    allocated_devices,
    node_usage,
    placed_pods,
    pods_overlay,
    snapshot,
)
from driver.scheduling.snapshot import overlay as snapshot_overlay

_NO_USAGE = snapshot.NodeUsage()


class DecisionOverlay(snapshot_overlay.SnapshotOverlay):
    """A ClusterView. What is below must stand still as long as this is used."""

    def __init__(self, below: snapshot.Snapshot) -> None:
        super().__init__(below)
        self._decisions: list[snapshot.InFlight] = []
        self._allocated = allocated_devices.AllocatedDevices()
        self._node_usage = node_usage.NodeUsageIndex()
        self._usage = dict(below.usage)
        self._remaining: dict[snapshot.PoolKey, snapshot.CounterAmounts] = {}
        self._placed = pods_overlay.PopulationOverlay(below.population)

    @property
    def population(self) -> placed_pods.Population:
        """The pods of all nodes by kind, those of decisions on top included."""
        return self._placed

    def apply(self, decision: snapshot.InFlight) -> None:
        """Let a decision count: the last one, for `undo`."""
        self._decisions.append(decision)
        self._placed.push(decision.pod, decision.node)
        self._node_usage.set_pod(decision.pod.key, decision.pod)
        self._node_usage.begin_write(decision.pod, decision.node)
        concerned = [
            device
            for key, one in decision.allocations.items()
            for device in self._allocated.begin_write(key, one)
        ]
        self._record_change(decision.node, concerned)

    def undo(self, count: int) -> None:
        """Take the last decisions back."""
        for _ in range(count):
            decision = self._decisions.pop()
            self._placed.pop()
            self._node_usage.end_write(decision.pod)
            self._node_usage.set_pod(decision.pod.key, None)
            concerned = [
                device for key in decision.allocations for device in self._allocated.end_write(key)
            ]
            self._record_change(decision.node, concerned)

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """What pods take of the nodes that have any."""
        return MappingProxyType(self._usage)

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        ours = self._node_usage.pods_on(node)
        below = self._base.pods_on(node)
        return {**below, **ours} if ours else below

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Who has a device; administrative access does not count."""
        found = self._allocated.holders(device)
        below = self._base.holders(device)
        return tuple(sorted((*below, *found), key=lambda one: one.claim)) if found else below

    def used_devices(self, of: pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        found = self._allocated.pool_devices((of.driver, of.name))
        return self._base.used_devices(of) | found if found else self._base.used_devices(of)

    def remaining_counters(self, of: pools.Pool) -> snapshot.CounterAmounts:
        """What is left of a pool's counters (KEP-4815): a device in use is charged once."""
        key = (of.driver, of.name)
        ours = self._allocated.pool_devices(key)
        if not ours:
            return self._base.remaining_counters(of)
        if key not in self._remaining:
            left = dict(self._base.remaining_counters(of))
            for counter, amount in snapshot_overlay.consumed_counters(
                of, ours - self._base.used_devices(of)
            ):
                left[counter] -= amount
            self._remaining[key] = left
        return self._remaining[key]

    def _record_change(self, node: ids.NodeName, devices: Iterable[claims.DeviceId]) -> None:
        self._update_usage(node)
        self._changes.add([node])
        for key in {(device.driver, device.pool) for device in devices}:
            self._remaining.pop(key, None)
            if any(one.node != node for one in self._base.pools[key].slices):
                self._changes.invalidate()

    def _update_usage(self, node: ids.NodeName) -> None:
        ours, below = self._node_usage.usage.get(node), self._base.usage.get(node, _NO_USAGE)
        if ours is None:
            self._usage.pop(node, None)
            if node in self._base.usage:
                self._usage[node] = below
            return
        total = dict(below.requests)
        for resource, amount in ours.requests.items():
            total[resource] = total.get(resource, 0) + amount
        count = below.pod_count + ours.pod_count
        self._usage[node] = snapshot.NodeUsage(
            total, below.ports | ours.ports, count, below.placeholders
        )
