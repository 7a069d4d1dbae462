"""Snapshot overlays without some pods, or without any. Pure; the base is not modified."""

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
    """Snapshot without some holders, and without the claims that no other pod has."""

    def __init__(
        self, base: snapshot.Snapshot, removed: Collection[explain_holders.DeviceHolder]
    ) -> None:
        super().__init__(base, explain_holders.freed_claims(removed))
        self._pods = {holder.key for holder in removed}
        self._nodes = {holder.node for holder in removed}
        self._removed = removed

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        removed = ((holder.pod, holder.node) for holder in self._removed)
        return pods_overlay.PopulationOverlay(self._base.population, removed)

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """Pod usage of each node that has pods."""
        return self._use

    @functools.cached_property
    def _use(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        usage = dict(self._base.usage)
        for name in self._nodes:
            node_pods = self.pods_on(name)
            if node_pods:
                arriving = self._base.usage.get(name, snapshot.NodeUsage()).placeholders
                usage[name] = replace(
                    node_usage.sum_usage(node_pods.values()), placeholders=arriving
                )
            else:
                usage.pop(name, None)
        return MappingProxyType(usage)

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """Return the pods of a node, including those assigned but not bound."""
        node_pods = self._base.pods_on(node)
        if node not in self._nodes:
            return node_pods
        return {key: pod for key, pod in node_pods.items() if key not in self._pods}


class EmptyClusterView(snapshot_overlay.SnapshotOverlay):
    """Snapshot without pods and allocations."""

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """Return nothing."""
        return {}

    def pods_on(self, _node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """Return nothing."""
        return {}

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        return pods_overlay.EmptyPopulation(self._base.population)

    def holders(self, _device: claims.DeviceId) -> Sequence[snapshot.Holder]:
        """Return nothing."""
        return ()

    def used_devices(self, _of: pools.Pool) -> AbstractSet[str]:
        """Return nothing."""
        return _NO_DEVICES

    def remaining_counters(self, pool: pools.Pool) -> snapshot.CounterAmounts:
        """Return all counters of the pool."""
        return pool.counters
