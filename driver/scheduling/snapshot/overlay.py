"""What lies on a view and changes some of what it says; all else is as below. Pure.

What is below is never touched, and must stand still as long as this is used.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from driver import ids
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes
from driver.resources.dra import pools as dra_pools
from driver.scheduling.snapshot import changelog, placed_pods, pods_overlay, storage_index
from driver.scheduling.snapshot import snapshot as cluster


class Layer:
    """A ClusterView that says what the one below says."""

    def __init__(self, below: cluster.ClusterView) -> None:
        self._below = below
        self._changes = changelog.Changes()
        self._lens: pods_overlay.Layered | None = None

    @property
    def driver(self) -> str:
        """Our driver's name."""
        return self._below.driver

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return self._below.nodes

    @property
    def classes(self) -> Mapping[str, device_classes.DeviceClass]:
        """Every DeviceClass."""
        return self._below.classes

    @property
    def use(self) -> Mapping[ids.NodeName, cluster.NodeUse]:
        """What pods take of the nodes that have any."""
        return self._below.use

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        return self._below.pods_on(node)

    @property
    def population(self) -> placed_pods.Population:
        """The pods of all nodes by kind, for what looks beyond a node."""
        if self._lens is None:
            self._lens = self._counted()
        return self._lens

    def _counted(self) -> pods_overlay.Layered:
        return pods_overlay.Layered(self._below.population)

    @property
    def stored(self) -> storage_index.Stored:
        """Volumes, and what they are made by."""
        return self._below.stored

    @property
    def world(self) -> int:
        """Another number whenever a pool, a rule or a class changed."""
        return self._below.world

    @property
    def pools(self) -> Mapping[cluster.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return self._below.pools

    def holders(self, device: claims.DeviceId) -> Sequence[cluster.Holder]:
        """Who has a device; administrative access does not count."""
        return self._below.holders(device)

    def used(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        return self._below.used(of)

    def shares(self, node: ids.NodeName) -> Sequence[dra_pools.Share]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        return self._below.shares(node)

    def left(self, of: dra_pools.Pool) -> cluster.Left:
        """What is left of a pool's counters (KEP-4815): a device in use is charged once."""
        return self._below.left(of)

    @property
    def mark(self) -> int:
        """Of now; `since` tells what changed after it."""
        return self._changes.mark

    def since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes for which something changed since an earlier mark."""
        return self._changes.since(mark)


class Ignoring(Layer):
    """A ClusterView without what some holders have, by their keys."""

    def __init__(self, below: cluster.ClusterView, holders: Collection[ids.Key]) -> None:
        super().__init__(below)
        self._gone = frozenset(holders)
        self._free: dict[cluster.PoolKey, AbstractSet[str]] = {}
        self._used: dict[cluster.PoolKey, AbstractSet[str]] = {}

    def holders(self, device: claims.DeviceId) -> Sequence[cluster.Holder]:
        """Who has a device; administrative access does not count."""
        found, gone = self._below.holders(device), self._gone
        for holder in found:
            if holder.claim in gone:
                return tuple(one for one in found if one.claim not in gone)
        return found

    def used(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        key = (of.driver, of.name)
        if key not in self._used:
            free = self._freed(of)
            self._used[key] = self._below.used(of) - free if free else self._below.used(of)
        return self._used[key]

    def left(self, of: dra_pools.Pool) -> cluster.Left:
        """What is left of a pool's counters (KEP-4815)."""
        free = self._freed(of)
        if not free:
            return self._below.left(of)
        left = dict(self._below.left(of))
        for counter, amount in drawn(of, free):
            left[counter] += amount
        return left

    def _freed(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that only those have."""
        key = (of.driver, of.name)
        if key not in self._free:
            self._free[key] = {
                name
                for name in (self._below.used(of) if self._gone else ())
                if not self.holders(claims.DeviceId(of.driver, of.name, name))
            }
        return self._free[key]


def drawn(of: dra_pools.Pool, found: Iterable[str]) -> Iterable[tuple[dra_pools.Counter, int]]:
    """What devices, by name, draw on the counters that their pool has.

    One that no slice shows draws nothing, as with kube-scheduler.
    """
    shown = (of.devices[name] for name in found if name in of.devices)
    return (one for device in shown for one in dra_pools.drawn(device) if one[0] in of.counters)
