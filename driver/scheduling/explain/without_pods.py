"""A view as it would be without some pods, or without any. Pure; what is below is not touched."""

import functools
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import MappingProxyType

from driver import ids
from driver.resources.core import pods
from driver.resources.dra import claims, pools
from driver.scheduling.explain import holders as explain_holders
from driver.scheduling.snapshot import node_usage, pods_overlay, snapshot
from driver.scheduling.snapshot import overlay as snapshot_overlay

_NO_DEVICES: frozenset[str] = frozenset()


class WithoutPods(snapshot_overlay.WithoutHolders):
    """A ClusterView once some tenants are gone, and the claims that nobody else has."""

    def __init__(
        self, below: snapshot.Snapshot, leaving: Collection[explain_holders.DeviceHolder]
    ) -> None:
        super().__init__(below, explain_holders.freed_claims(leaving))
        self._pods = {one.key for one in leaving}
        self._nodes = {one.node for one in leaving}
        self._removed = leaving

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        gone = ((tenant.pod, tenant.node) for tenant in self._removed)
        return pods_overlay.PopulationOverlay(self._base.population, gone)

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """What pods take of the nodes that have any."""
        return self._use

    @functools.cached_property
    def _use(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        found = dict(self._base.usage)
        for name in self._nodes:
            there = self.pods_on(name)
            if there:
                arriving = self._base.usage.get(name, snapshot.NodeUsage()).placeholders
                found[name] = replace(node_usage.sum_usage(there.values()), placeholders=arriving)
            else:
                found.pop(name, None)
        return MappingProxyType(found)

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """The pods of a node, those on their way to it included."""
        there = self._base.pods_on(node)
        if node not in self._nodes:
            return there
        return {key: pod for key, pod in there.items() if key not in self._pods}


class EmptyClusterView(snapshot_overlay.SnapshotOverlay):
    """A ClusterView as it would be without any pod and any allocation."""

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """Nothing."""
        return {}

    def pods_on(self, _node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """None."""
        return {}

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        return pods_overlay.EmptyPopulation(self._base.population)

    def holders(self, _device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Nobody."""
        return ()

    def used_devices(self, _of: pools.Pool) -> AbstractSet[str]:
        """None."""
        return _NO_DEVICES

    def remaining_counters(self, of: pools.Pool) -> snapshot.CounterAmounts:
        """All of it."""
        return of.counters
