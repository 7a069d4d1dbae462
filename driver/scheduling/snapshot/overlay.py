"""Snapshot overlays: they change part of a base snapshot. Pure.

The base is never modified, and must not change while the overlay is used.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from driver import ids
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes
from driver.resources.dra import pools as dra_pools
from driver.scheduling.snapshot import changelog, placed_pods, pods_overlay, snapshot, storage_index


class SnapshotOverlay:
    """Snapshot that delegates to its base."""

    def __init__(self, base: snapshot.Snapshot) -> None:
        self._base = base
        self._changes = changelog.ChangeLog()
        self._population: pods_overlay.PopulationOverlay | None = None

    @property
    def driver(self) -> str:
        """Our driver's name."""
        return self._base.driver

    @property
    def managed_drivers(self) -> AbstractSet[str]:
        """Drivers whose devices the controller may allocate, ours among them."""
        return self._base.managed_drivers

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return self._base.nodes

    @property
    def classes(self) -> Mapping[str, device_classes.DeviceClass]:
        """Every DeviceClass."""
        return self._base.classes

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """Pod usage of each node that has pods."""
        return self._base.usage

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """Return the pods of a node, including those assigned but not bound."""
        return self._base.pods_on(node)

    @property
    def population(self) -> placed_pods.Population:
        """Pods of all nodes by kind, for filters that look beyond a node."""
        if self._population is None:
            self._population = self._build_population()
        return self._population

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        return pods_overlay.PopulationOverlay(self._base.population)

    @property
    def storage(self) -> storage_index.StorageIndex:
        """Volumes, claims, classes and drivers."""
        return self._base.storage

    @property
    def generation(self) -> int:
        """Generation number; changes when a pool, DeviceTaintRule or DeviceClass changes."""
        return self._base.generation

    @property
    def pools(self) -> Mapping[snapshot.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return self._base.pools

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Return the holders of a device; administrative access does not count."""
        return self._base.holders(device)

    def used_devices(self, pool: dra_pools.Pool) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        return self._base.used_devices(pool)

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.NodePool]:
        """Return what a node reaches of each pool, preferred devices first."""
        return self._base.reachable_pools(node)

    def remaining_counters(self, pool: dra_pools.Pool) -> snapshot.CounterAmounts:
        """Return what is left of a pool's counters (KEP-4815): a device is charged once."""
        return self._base.remaining_counters(pool)

    @property
    def revision(self) -> int:
        """Current revision; see `changed_since`."""
        return self._changes.revision

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """Return the current revision and the nodes changed since `mark`; None: any may have."""
        return self._changes.changed_since(mark)


class WithoutHolders(SnapshotOverlay):
    """Snapshot without the devices of some holders, by their keys."""

    def __init__(self, base: snapshot.Snapshot, holders: Collection[ids.Key]) -> None:
        super().__init__(base)
        self._ignored = frozenset(holders)
        self._free: dict[snapshot.PoolKey, AbstractSet[str]] = {}
        self._used: dict[snapshot.PoolKey, AbstractSet[str]] = {}

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Return the holders of a device; administrative access does not count."""
        holders, ignored = self._base.holders(device), self._ignored
        for holder in holders:
            if holder.claim in ignored:
                return tuple(other for other in holders if other.claim not in ignored)
        return holders

    def used_devices(self, pool: dra_pools.Pool) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        key = (pool.driver, pool.name)
        if key not in self._used:
            free = self._freed_devices(pool)
            self._used[key] = (
                self._base.used_devices(pool) - free if free else self._base.used_devices(pool)
            )
        return self._used[key]

    def remaining_counters(self, pool: dra_pools.Pool) -> snapshot.CounterAmounts:
        """Return what is left of a pool's counters (KEP-4815)."""
        free = self._freed_devices(pool)
        if not free:
            return self._base.remaining_counters(pool)
        left = dict(self._base.remaining_counters(pool))
        for counter, amount in consumed_counters(pool, free):
            left[counter] += amount
        return left

    def _freed_devices(self, pool: dra_pools.Pool) -> AbstractSet[str]:
        """Return the devices of a pool that only the ignored holders have."""
        key = (pool.driver, pool.name)
        if key not in self._free:
            self._free[key] = {
                name
                for name in (self._base.used_devices(pool) if self._ignored else ())
                if not self.holders(claims.DeviceId(pool.driver, pool.name, name))
            }
        return self._free[key]


def consumed_counters(
    pool: dra_pools.Pool, device_names: Iterable[str]
) -> Iterable[tuple[dra_pools.Counter, int]]:
    """Yield the counters that devices, by name, draw on in their pool.

    A device that is in no slice draws nothing, as with kube-scheduler.
    """
    shown = (pool.devices[name] for name in device_names if name in pool.devices)
    return (
        draw
        for device in shown
        for draw in dra_pools.counter_draws(device)
        if draw[0] in pool.counters
    )
