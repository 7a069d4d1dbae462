"""A view with nodes on top that are not there yet. Pure."""

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
    """A ClusterView with nodes of shapes, by name, beside those below."""

    def __init__(
        self, below: snapshot.Snapshot, found: Mapping[ids.NodeName, node_template.NodeTemplate]
    ) -> None:
        super().__init__(below)
        self._hypothetical = cluster_state.ClusterState(below.driver)
        for name, one in found.items():
            self._hypothetical.set_node(name, one.build_node(name))
            for published in one.build_slices(name):
                self._hypothetical.set_slice(published.name, published)
        self._pool_keys = {(key, one) for key, one in self._hypothetical.pools}
        self._nodes = {**below.nodes, **self._hypothetical.nodes}

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return MappingProxyType(self._nodes)

    def _build_population(self) -> pods_overlay.PopulationOverlay:
        return pods_overlay.PopulationOverlay(self._base.population, by_name=self._nodes)

    @property
    def generation(self) -> int:
        """Another number than below: there are more pools."""
        return -1 - self._base.generation

    @property
    def pools(self) -> Mapping[snapshot.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return ChainMap(dict(self._hypothetical.pools), self._base.pools)  # type: ignore[arg-type]

    def reachable_pools(self, node: ids.NodeName) -> Sequence[dra_pools.NodePool]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        return self._source(node in self._hypothetical.nodes).reachable_pools(node)

    def used_devices(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        return self._source((of.driver, of.name) in self._pool_keys).used_devices(of)

    def remaining_counters(self, of: dra_pools.Pool) -> snapshot.CounterAmounts:
        """What is left of a pool's counters (KEP-4815)."""
        return self._source((of.driver, of.name) in self._pool_keys).remaining_counters(of)

    def _source(self, ours: bool) -> snapshot.Snapshot:  # noqa: FBT001 - which of the two
        return self._hypothetical if ours else self._base
