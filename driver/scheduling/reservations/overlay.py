"""Snapshot overlay without some Reservations' devices, as their holders see it. Pure."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.snapshot import overlay as snapshot_overlay
from driver.scheduling.snapshot import snapshot


class WithoutReservations(snapshot_overlay.WithoutHolders):
    """Snapshot without some holders; with `node_names`, of these nodes alone."""

    def __init__(
        self,
        base: snapshot.Snapshot,
        holders: Collection[ids.Key],
        node_names: Collection[ids.NodeName] | None = None,
    ) -> None:
        super().__init__(base, holders)
        self._node_names = None if node_names is None else frozenset(node_names)

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node, or the selected ones."""
        if self._node_names is None:
            return self._base.nodes
        shown = {name: node for name, node in self._base.nodes.items() if name in self._node_names}
        return MappingProxyType(shown)
