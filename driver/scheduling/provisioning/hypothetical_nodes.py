"""Snapshot overlay with hypothetical nodes. Pure."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import pools as dra_pools
from driver.scheduling.provisioning import node_template
from driver.scheduling.snapshot import cluster_state, pods_overlay, snapshot
from driver.scheduling.snapshot import overlay as snapshot_overlay


class HypotheticalNodes(snapshot_overlay.SnapshotOverlay):
    """Snapshot with nodes of templates, by name, beside those of the base."""

    def __init__(
        self, base: snapshot.Snapshot, templates: Mapping[ids.NodeName, node_template.NodeTemplate]
    ) -> None:
        super().__init__(base)
        self._hypothetical = cluster_state.ClusterState(base.driver)
        for name, template in templates.items():
            self._hypothetical.set_node(name, template.build_node(name))
            for published in template.build_slices(name):
                self._hypothetical.set_slice(published.name, published)
        self._pool_keys = {(key, template) for key, template in self._hypothetical.pools}
        self._nodes = {**base.nodes, **self._hypothetical.nodes}

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return MappingProxyType(self._nodes)

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        return pods_overlay.PopulationOverlay(self._base.population, by_name=self._nodes)

    @property
    def generation(self) -> int:
        """A number other than the base's: there are more pools."""
        return -1 - self._base.generation

    @property
    def pools(self) -> Mapping[snapshot.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return ChainMap(dict(self._hypothetical.pools), self._base.pools)  # type: ignore[arg-type]

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.NodePool]:
        """Return what a node reaches of each pool, preferred devices first."""
        return self._source(node in self._hypothetical.nodes).reachable_pools(node)

    def used_devices(self, pool: dra_pools.Pool) -> AbstractSet[str]:
        """Return the names of the allocated devices of a pool."""
        return self._source((pool.driver, pool.name) in self._pool_keys).used_devices(pool)

    def remaining_counters(self, pool: dra_pools.Pool) -> snapshot.CounterAmounts:
        """Return what is left of a pool's counters (KEP-4815)."""
        return self._source((pool.driver, pool.name) in self._pool_keys).remaining_counters(pool)

    def _source(self, hypothetical: bool) -> snapshot.Snapshot:  # noqa: FBT001 - which of the two
        return self._hypothetical if hypothetical else self._base
