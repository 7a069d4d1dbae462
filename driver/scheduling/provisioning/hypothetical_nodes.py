"""A view with nodes on top that are not there yet. Pure."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import pools as dra_pools
from driver.scheduling.provisioning import node_template
from driver.scheduling.snapshot import cluster_state, pods_overlay
from driver.scheduling.snapshot import overlay as snapshot_overlay
from driver.scheduling.snapshot import snapshot as cluster


class Imagined(snapshot_overlay.Layer):
    """A ClusterView with nodes of shapes, by name, beside those below."""

    def __init__(
        self, below: cluster.ClusterView, found: Mapping[ids.NodeName, node_template.Shape]
    ) -> None:
        super().__init__(below)
        self._ours = cluster_state.Picture(below.driver)
        for name, one in found.items():
            self._ours.put_node(name, one.node(name))
            for published in one.slices_of(name):
                self._ours.put_slice(published.name, published)
        self._keys = {(key, one) for key, one in self._ours.pools}
        self._nodes = {**below.nodes, **self._ours.nodes}

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return MappingProxyType(self._nodes)

    def _counted(self) -> pods_overlay.Layered:
        return pods_overlay.Layered(self._below.population, by_name=self._nodes)

    @property
    def world(self) -> int:
        """Another number than below: there are more pools."""
        return -1 - self._below.world

    @property
    def pools(self) -> Mapping[cluster.PoolKey, dra_pools.Pool]:
        """Every pool, its newest generation."""
        return ChainMap(dict(self._ours.pools), self._below.pools)  # type: ignore[arg-type]

    def shares(self, node: ids.NodeName) -> Sequence[dra_pools.Share]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        return self._of(node in self._ours.nodes).shares(node)

    def used(self, of: dra_pools.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        return self._of((of.driver, of.name) in self._keys).used(of)

    def left(self, of: dra_pools.Pool) -> cluster.Left:
        """What is left of a pool's counters (KEP-4815)."""
        return self._of((of.driver, of.name) in self._keys).left(of)

    def _of(self, ours: bool) -> cluster.ClusterView:  # noqa: FBT001 - which of the two
        return self._ours if ours else self._below
