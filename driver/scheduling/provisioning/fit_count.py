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

_Alike = tuple[Hashable, ...]
_PROBE = ids.NodeName("\0probe")
"""No node has such a name."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of each group of alike members: how many there are, and how many of them one node takes.

    `refusal` says why it takes none of some group; "" where it takes some of each.
    """

    groups: tuple[tuple[int, int], ...] = ()
    refusal: str = ""

    @property
    def nodes(self) -> int:
        """So many nodes do, where nothing but their number matters."""
        return sum(-(-members // each) for members, each in self.groups)


class Sizes:
    """Remembers: wishes that are alike are alike to an empty node."""

    def __init__(self, view: snapshot.Snapshot, deciding: settings.Settings) -> None:
        self._view = view
        self._deciding = deciding
        self._known: dict[tuple[str, _Alike], Size] = {}

    def of(self, one: node_template.Shape, wish: demand.Wish) -> Size:
        """Of an empty node of a shape."""
        alike = tuple(workload_signature.workload_signature(work) for work in wish.workloads)
        key = one.name, alike
        if key not in self._known:
            self._known[key] = self._sized(one, wish)
        return self._known[key]

    def _sized(self, one: node_template.Shape, wish: demand.Wish) -> Size:
        below = hypothetical_nodes.Imagined(self._view, {_PROBE: one})
        alone = reservation_overlay.Without(below, (), (_PROBE,))
        tried = tentative.Trial(alone, wish.workloads, self._deciding)
        blocker = tried.blocker()
        if blocker is not None:
            return Size(refusal=of_one.unschedulable(blocker))
        found = []
        for members in tried.groups(range(len(wish.workloads))):
            filled = tried.filling(members, _PROBE)
            if not filled.count:
                refused = filled.refusal
                return Size(
                    refusal=of_one.node_rejection(refused) if refused else "has no device for it"
                )
            found.append((len(members), filled.count))
        return Size(tuple(found))
