"""A view without what some Reservations hold: as their holders see it. Pure."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.snapshot import overlay as snapshot_overlay
from driver.scheduling.snapshot import snapshot


class WithoutReservations(snapshot_overlay.WithoutHolders):
    """A ClusterView without some holders; with `only`, of these nodes alone."""

    def __init__(
        self,
        below: snapshot.Snapshot,
        holders: Collection[ids.Key],
        only: Collection[ids.NodeName] | None = None,
    ) -> None:
        super().__init__(below, holders)
        self._node_names = None if only is None else frozenset(only)

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node, or those alone."""
        if self._node_names is None:
            return self._base.nodes
        found = {name: one for name, one in self._base.nodes.items() if name in self._node_names}
        return MappingProxyType(found)
