"""What lies on a view and changes some of what it says; all else is as below. Pure.

What is below is never touched, and must stand still as long as this is used.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from driver import ids
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes
from driver.resources.dra import pools as dra_pools
from driver.scheduling.snapshot import changelog, placed_pods, pods_overlay, snapshot, storage_index


class SnapshotOverlay:
    """A ClusterView that says what the one below says."""

    def __init__(self, below: snapshot.Snapshot) -> None:
        self._base = below
        self._changes = changelog.ChangeLog()
        self._population: pods_overlay.PopulationOverlay | None = None

    @property
    def driver(self) -> str:
        """Our driver's name."""
        return self._base.driver

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
        """What pods take of the nodes that have any."""
        return self._base.usage

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        return self._base.pods_on(node)

    @property
    def population(self) -> placed_pods.Population:
        """The pods of all nodes by kind, for what looks beyond a node."""
        if self._population is None:
            self._population = self._build_population()
        return self._population

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        return pods_overlay.PopulationOverlay(self._base.population)

    @property
    def storage(self) -> storage_index.StorageIndex:
        """Volumes, and what they are made by."""
        return self._base.storage

    @property
    def generation(self) -> int:
        """Another number whenever a pool, a rule or a class changed."""
        return self._base.generation

    @property
    def pools(self) -> Mapping[snapshot.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return self._base.pools

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Who has a device; administrative access does not count."""
        return self._base.holders(device)

    def used_devices(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        return self._base.used_devices(of)

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.Share]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        return self._base.reachable_pools(node)

    def remaining_counters(self, of: dra_pools.Pool) -> snapshot.CounterAmounts:
        """What is left of a pool's counters (KEP-4815): a device in use is charged once."""
        return self._base.remaining_counters(of)

    @property
    def revision(self) -> int:
        """Of now; `since` tells what changed after it."""
        return self._changes.revision

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes for which something changed since an earlier mark."""
        return self._changes.changed_since(mark)


class WithoutHolders(SnapshotOverlay):
    """A ClusterView without what some holders have, by their keys."""

    def __init__(self, below: snapshot.Snapshot, holders: Collection[ids.Key]) -> None:
        super().__init__(below)
        self._ignored = frozenset(holders)
        self._free: dict[snapshot.PoolKey, AbstractSet[str]] = {}
        self._used: dict[snapshot.PoolKey, AbstractSet[str]] = {}

    def holders(self, device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Who has a device; administrative access does not count."""
        found, gone = self._base.holders(device), self._ignored
        for holder in found:
            if holder.claim in gone:
                return tuple(one for one in found if one.claim not in gone)
        return found

    def used_devices(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        key = (of.driver, of.name)
        if key not in self._used:
            free = self._freed_devices(of)
            self._used[key] = (
                self._base.used_devices(of) - free if free else self._base.used_devices(of)
            )
        return self._used[key]

    def remaining_counters(self, of: dra_pools.Pool) -> snapshot.CounterAmounts:
        """What is left of a pool's counters (KEP-4815)."""
        free = self._freed_devices(of)
        if not free:
            return self._base.remaining_counters(of)
        left = dict(self._base.remaining_counters(of))
        for counter, amount in consumed_counters(of, free):
            left[counter] += amount
        return left

    def _freed_devices(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that only those have."""
        key = (of.driver, of.name)
        if key not in self._free:
            self._free[key] = {
                name
                for name in (self._base.used_devices(of) if self._ignored else ())
                if not self.holders(claims.DeviceId(of.driver, of.name, name))
            }
        return self._free[key]


def consumed_counters(
    of: dra_pools.Pool, found: Iterable[str]
) -> Iterable[tuple[dra_pools.Counter, int]]:
    """What devices, by name, draw on the counters that their pool has.

    One that no slice shows draws nothing, as with kube-scheduler.
    """
    shown = (of.devices[name] for name in found if name in of.devices)
    return (one for device in shown for one in dra_pools.drawn(device) if one[0] in of.counters)
