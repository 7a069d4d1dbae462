"""Number of a demand's members that fit one node of a template, or why they do not. Pure."""

from collections.abc import Hashable
from dataclasses import dataclass

from driver import ids
from driver.scheduling.allocator import messages as of_one
from driver.scheduling.allocator import settings
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.gangs import tentative
from driver.scheduling.provisioning import demand, hypothetical_nodes, node_template
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

_Signature = tuple[Hashable, ...]
_PROBE = ids.NodeName("\0probe")
"""No node has such a name."""


@dataclass(frozen=True, slots=True)
class FitCount:
    """Per group of equal members: their number, and how many of them one node takes.

    `rejection` says why it takes none of some group; "" if it takes some of each.
    """

    groups: tuple[tuple[int, int], ...] = ()
    rejection: str = ""

    @property
    def node_count(self) -> int:
        """Number of nodes that suffice if nothing but capacity matters."""
        return sum(-(-members // each) for members, each in self.groups)


class FitCounter:
    """Caches counts: equal demands have equal counts on an empty node."""

    def __init__(self, view: snapshot.Snapshot, allocator_settings: settings.Settings) -> None:
        self._view = view
        self._deciding = allocator_settings
        self._counts: dict[tuple[str, _Signature], FitCount] = {}

    def count(
        self, template: node_template.NodeTemplate, node_demand: demand.NodeDemand
    ) -> FitCount:
        """Return the count for an empty node of a template."""
        signatures = tuple(
            workload_signature.workload_signature(work) for work in node_demand.workloads
        )
        key = template.name, signatures
        if key not in self._counts:
            self._counts[key] = self._compute(template, node_demand)
        return self._counts[key]

    def _compute(
        self, template: node_template.NodeTemplate, node_demand: demand.NodeDemand
    ) -> FitCount:
        nodes_view = hypothetical_nodes.HypotheticalNodes(self._view, {_PROBE: template})
        probe_view = reservation_overlay.WithoutReservations(nodes_view, (), (_PROBE,))
        state = tentative.TentativeState(probe_view, node_demand.workloads, self._deciding)
        blocker = state.blocker()
        if blocker is not None:
            return FitCount(rejection=of_one.unschedulable(blocker))
        groups = []
        for members in state.groups(range(len(node_demand.workloads))):
            fill = state.node_fill(members, _PROBE)
            if not fill.count:
                refused = fill.rejection
                return FitCount(
                    rejection=of_one.node_rejection(refused) if refused else "has no device for it"
                )
            groups.append((len(members), fill.count))
        return FitCount(tuple(groups))
