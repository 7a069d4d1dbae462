"""A view as it would be without some pods, or without any. Pure; what is below is not touched."""

import functools
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from driver import ids
from driver.controller import layer, load
from driver.controller import view as cluster
from driver.controller.allocation.whatif import tenants
from driver.resources import claims, pods, pool

_NOBODY: frozenset[str] = frozenset()


class Absence(layer.Layer):
    """A ClusterView once some tenants are gone, and the claims that nobody else has."""

    def __init__(self, below: cluster.ClusterView, leaving: Collection[tenants.Tenant]) -> None:
        super().__init__(below)
        self._claims = tenants.freed(leaving)
        self._pods = {one.key for one in leaving}
        self._nodes = {one.node for one in leaving}
        self._free: dict[cluster.PoolKey, AbstractSet[str]] = {}
        self._kept: dict[cluster.PoolKey, AbstractSet[str]] = {}

    @property
    def use(self) -> Mapping[ids.NodeName, cluster.NodeUse]:
        """What pods take of the nodes that have any."""
        return self._use

    @functools.cached_property
    def _use(self) -> Mapping[ids.NodeName, cluster.NodeUse]:
        found = dict(self._below.use)
        for name in self._nodes:
            there = self.pods_on(name)
            if there:
                found[name] = load.weigh(there.values())
            else:
                found.pop(name, None)
        return MappingProxyType(found)

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        there = self._below.pods_on(node)
        if node not in self._nodes:
            return there
        return {key: pod for key, pod in there.items() if key not in self._pods}

    def holders(self, device: claims.DeviceId) -> Sequence[cluster.Holder]:
        """Who has a device; administrative access does not count."""
        found, gone = self._below.holders(device), self._claims
        for holder in found:
            if holder.claim in gone:
                return tuple(one for one in found if one.claim not in gone)
        return found

    def used(self, of: pool.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        key = (of.driver, of.name)
        if key not in self._kept:
            free = self._freed(of)
            self._kept[key] = self._below.used(of) - free if free else self._below.used(of)
        return self._kept[key]

    def left(self, of: pool.Pool) -> cluster.Left:
        """What is left of a pool's counters (KEP-4815)."""
        free = self._freed(of)
        if not free:
            return self._below.left(of)
        left = dict(self._below.left(of))
        for counter, amount in layer.drawn(of, free):
            left[counter] += amount
        return left

    def _freed(self, of: pool.Pool) -> AbstractSet[str]:
        """The devices of a pool that only claims have that go."""
        key = (of.driver, of.name)
        if key not in self._free:
            self._free[key] = {
                name
                for name in (self._below.used(of) if self._claims else _NOBODY)
                if not self.holders(claims.DeviceId(of.driver, of.name, name))
            }
        return self._free[key]


class Bare(layer.Layer):
    """A ClusterView as it would be without any pod and any allocation."""

    @property
    def use(self) -> Mapping[ids.NodeName, cluster.NodeUse]:
        """Nothing."""
        return {}

    def pods_on(self, _node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """None."""
        return {}

    def holders(self, _device: claims.DeviceId) -> Sequence[cluster.Holder]:
        """Nobody."""
        return ()

    def used(self, _of: pool.Pool) -> AbstractSet[str]:
        """None."""
        return _NOBODY

    def left(self, of: pool.Pool) -> cluster.Left:
        """All of it."""
        return of.counters
