"""How many members of a wish one node of a shape takes, and what it lacks for others. Pure."""

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
    """Of each group of alike members: how many there are, and how many of them one node takes.

    `refusal` says why it takes none of some group; "" where it takes some of each.
    """

    groups: tuple[tuple[int, int], ...] = ()
    rejection: str = ""

    @property
    def node_count(self) -> int:
        """So many nodes do, where nothing but their number matters."""
        return sum(-(-members // each) for members, each in self.groups)


class FitCounter:
    """Remembers: wishes that are alike are alike to an empty node."""

    def __init__(self, view: snapshot.Snapshot, deciding: settings.Settings) -> None:
        self._view = view
        self._deciding = deciding
        self._counts: dict[tuple[str, _Signature], FitCount] = {}

    def count(self, one: node_template.NodeTemplate, wish: demand.NodeDemand) -> FitCount:
        """Of an empty node of a shape."""
        alike = tuple(workload_signature.workload_signature(work) for work in wish.workloads)
        key = one.name, alike
        if key not in self._counts:
            self._counts[key] = self._compute(one, wish)
        return self._counts[key]

    def _compute(self, one: node_template.NodeTemplate, wish: demand.NodeDemand) -> FitCount:
        below = hypothetical_nodes.HypotheticalNodes(self._view, {_PROBE: one})
        alone = reservation_overlay.WithoutReservations(below, (), (_PROBE,))
        tried = tentative.TentativeState(alone, wish.workloads, self._deciding)
        blocker = tried.blocker()
        if blocker is not None:
            return FitCount(rejection=of_one.unschedulable(blocker))
        found = []
        for members in tried.groups(range(len(wish.workloads))):
            filled = tried.node_fill(members, _PROBE)
            if not filled.count:
                refused = filled.rejection
                return FitCount(
                    rejection=of_one.node_rejection(refused) if refused else "has no device for it"
                )
            found.append((len(members), filled.count))
        return FitCount(tuple(found))
