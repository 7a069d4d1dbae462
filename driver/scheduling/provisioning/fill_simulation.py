"""Who finds a place once nodes that are not there yet are, in the order of queues. Pure."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.allocator import allocation_result, dra_allocator, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.gangs import overlay, tentative
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.provisioning import demand, hypothetical_nodes, node_template
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import overlay as snapshot_overlay
from driver.scheduling.snapshot import snapshot

Nodes = Mapping[ids.NodeName, node_template.NodeTemplate]
"""Nodes that are not there yet, by the names that they have until they are."""


@dataclass(slots=True)
class FillResult:
    """By wish: its places, or that it has none. `gpus` are thousandths that all places have."""

    placements: dict[str, Sequence[gang_types.MemberPlacement]] = field(default_factory=dict)
    unplaced: set[str] = field(default_factory=set)
    limited: dict[str, str] = field(default_factory=dict)
    gpus: int = 0

    def node_members(self, node: ids.NodeName) -> list[tuple[str, gang_types.MemberPlacement]]:
        """Who is on a node, with the wish, in the order of wishes."""
        return [
            (key, seat)
            for key, found in self.placements.items()
            for seat in found
            if seat.placement.node == node
        ]


class _NewNodesView(snapshot_overlay.SnapshotOverlay):
    """A view of nodes that are not there yet alone."""

    def __init__(self, below: snapshot.Snapshot, names: frozenset[ids.NodeName]) -> None:
        super().__init__(below)
        self._names = names

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return {name: self._base.nodes[name] for name in self._names}

    @property
    def revision(self) -> int:
        """Of now; `since` tells what changed after it."""
        return self._base.revision

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes for which something changed since an earlier mark."""
        return self._base.changed_since(mark)


class FillSimulation:
    """Wishes are seated one after the other; each place counts for those that come later.

    A pod by itself is looked for on nodes that are not there yet, or were brought for it, alone: on
    the others there was none for it. Part of a gang may go there.
    """

    def __init__(
        self,
        below: snapshot.Snapshot,
        found: Nodes,
        deciding: settings.Settings,
        limits: demand.Limits,
        known: tentative.FillCache | None = None,
    ) -> None:
        self._deciding = deciding
        self._limits = limits
        self._fill_cache = known or tentative.FillCache()
        self._view = overlay.DecisionOverlay(hypothetical_nodes.HypotheticalNodes(below, found))
        self._names = frozenset(found)
        self._new_nodes = _NewNodesView(self._view, self._names)
        self._allocator = dra_allocator.Allocator(deciding)
        self._unplaceable: set[Hashable] = set()
        self.result = FillResult()

    def with_nodes(self, found: Nodes, limits: demand.Limits | None = None) -> "FillSimulation":
        """The same with more nodes on top; who has a place has it there too.

        Who has none yet, had none on the nodes that are there: it is looked for on these alone.
        """
        other = FillSimulation(
            self._view, found, self._deciding, limits or self._limits, self._fill_cache
        )
        other.result = replace(
            self.result,
            placements=dict(self.result.placements),
            unplaced=set(self.result.unplaced),
            limited=dict(self.result.limited),
        )
        return other

    def find_places(self, wish: demand.NodeDemand) -> Sequence[gang_types.MemberPlacement]:
        """Places for a wish, which nobody takes; none where not all of it has one."""
        if len(wish.workloads) == 1 and not wish.provisioned_nodes:
            (work,) = wish.workloads
            placed = self._allocator.decide(self._new_nodes, work) if self._names else None
            return (
                (gang_types.MemberPlacement(work, placed),)
                if isinstance(placed, allocator_types.Placement)
                else ()
            )
        seen = self._demand_view(wish)
        answer = gang_placement.place_gang(
            wish.workloads, seen, wish.topology_request, self._deciding, self._fill_cache
        )
        return answer.members if isinstance(answer, gang_types.GangPlacement) else ()

    def place(self, wish: demand.NodeDemand) -> bool:
        """Seat a wish; whether it has places now."""
        alike = (
            workload_signature.workload_signature(wish.workloads[0])
            if len(wish.workloads) == 1
            else None
        )
        seats = self.find_places(wish) if alike is None or alike not in self._unplaceable else ()
        if not seats:
            self.result.unplaced.add(wish.key)
            if alike is not None and not wish.provisioned_nodes:
                self._unplaceable.add(alike)
            return False
        taken = queue_resources.sum_amounts(
            queue_resources.results_amounts(
                self._view, (pick.result for pick in seat.placement.assignments)
            )
            for seat in seats
        )
        why = self._limits.reserve(wish.queue, taken)
        if why:
            self.result.limited[wish.key] = why
            return False
        for seat in seats:
            made = allocation_result.build_allocations(
                self._view, seat.workload, seat.placement, timestamp=""
            )
            self._view.apply(snapshot.InFlight(seat.workload.pod, seat.placement.node, made))
        self.result.placements[wish.key] = seats
        self.result.gpus += taken.gpus
        return True

    def place_all(self, found: Iterable[demand.NodeDemand]) -> FillResult:
        """Seat as many as can be, in order."""
        for wish in found:
            self.place(wish)
        return self.result

    def _demand_view(self, wish: demand.NodeDemand) -> snapshot.Snapshot:
        mine = [demand.provisioned_key(wish.key)] if wish.has_kept_devices else ()
        if len(wish.workloads) > 1:
            return reservation_overlay.WithoutReservations(self._view, mine) if mine else self._view
        return reservation_overlay.WithoutReservations(
            self._view, mine, self._names | wish.provisioned_nodes
        )
