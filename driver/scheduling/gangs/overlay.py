"""Snapshot overlay with decisions that can be undone: the base is never modified. Pure."""

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
    """Snapshot with decisions. Its base must not change while it is used."""

    def __init__(self, base: snapshot.Snapshot) -> None:
        super().__init__(base)
        self._decisions: list[snapshot.InFlight] = []
        self._allocated = allocated_devices.AllocatedDevices()
        self._node_usage = node_usage.NodeUsageIndex()
        self._usage = dict(base.usage)
        self._remaining: dict[snapshot.PoolKey, snapshot.CounterAmounts] = {}
        self._placed = pods_overlay.PopulationOverlay(base.population)

    @property
    def population(self) -> placed_pods.Population:
        """Pods of all nodes by kind, including those of decisions."""
        return self._placed

    def apply(self, decision: snapshot.InFlight) -> None:
        """Apply a decision, to be undone by `undo`."""
        self._decisions.append(decision)
        self._placed.push(decision.pod, decision.node)
        self._node_usage.set_pod(decision.pod.key, decision.pod)
        self._node_usage.begin_write(decision.pod, decision.node)
        concerned = [
            device
            for key, allocation in decision.all_allocations.items()
            for device in self._allocated.begin_write(key, allocation)
        ]
        self._record_change(decision.node, concerned)

    def undo(self, count: int) -> None:
        """Undo the last decisions."""
        for _ in range(count):
            decision = self._decisions.pop()
            self._placed.pop()
            self._node_usage.end_write(decision.pod)
            self._node_usage.set_pod(decision.pod.key, None)
            released = [
                device
                for key in decision.all_allocations
                for device in self._allocated.end_write(key)
            ]
            self._record_change(decision.node, released)

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """Pod usage of each node that has pods."""
        return MappingProxyType(self._usage)

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """Return the pods of a node, including those assigned but not bound."""
        applied = self._node_usage.pods_on(node)
        base = self._base.pods_on(node)
        return {**base, **applied} if applied else base

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Return the holders of a device; administrative access does not count."""
        applied = self._allocated.holders(device)
        base = self._base.holders(device)
        return (
            tuple(sorted((*base, *applied), key=lambda holder: holder.claim)) if applied else base
        )

    def used_devices(self, pool: pools.Pool) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        applied = self._allocated.pool_devices((pool.driver, pool.name))
        return self._base.used_devices(pool) | applied if applied else self._base.used_devices(pool)

    def remaining_counters(self, pool: pools.Pool) -> snapshot.CounterAmounts:
        """Return what is left of a pool's counters (KEP-4815): a device is charged once."""
        key = (pool.driver, pool.name)
        applied = self._allocated.pool_devices(key)
        if not applied:
            return self._base.remaining_counters(pool)
        if key not in self._remaining:
            remaining = dict(self._base.remaining_counters(pool))
            for counter, amount in snapshot_overlay.consumed_counters(
                pool, applied - self._base.used_devices(pool)
            ):
                remaining[counter] -= amount
            self._remaining[key] = remaining
        return self._remaining[key]

    def _record_change(self, node: ids.NodeName, devices: Iterable[claims.DeviceId]) -> None:
        self._update_usage(node)
        self._changes.add([node])
        for key in {(device.driver, device.pool) for device in devices}:
            self._remaining.pop(key, None)
            if any(resource_slice.node != node for resource_slice in self._base.pools[key].slices):
                self._changes.invalidate()

    def _update_usage(self, node: ids.NodeName) -> None:
        applied, base = self._node_usage.usage.get(node), self._base.usage.get(node, _NO_USAGE)
        if applied is None:
            self._usage.pop(node, None)
            if node in self._base.usage:
                self._usage[node] = base
            return
        total = dict(base.requests)
        for resource, amount in applied.requests.items():
            total[resource] = total.get(resource, 0) + amount
        count = base.pod_count + applied.pod_count
        self._usage[node] = snapshot.NodeUsage(
            total, base.ports | applied.ports, count, base.placeholders
        )
