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

Nodes = Mapping[ids.NodeName, node_template.Shape]
"""Nodes that are not there yet, by the names that they have until they are."""


@dataclass(slots=True)
class Filled:
    """By wish: its places, or that it has none. `gpus` are thousandths that all places have."""

    seats: dict[str, Sequence[gang_types.Seat]] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)
    limited: dict[str, str] = field(default_factory=dict)
    gpus: int = 0

    def on(self, node: ids.NodeName) -> list[tuple[str, gang_types.Seat]]:
        """Who is on a node, with the wish, in the order of wishes."""
        return [
            (key, seat)
            for key, found in self.seats.items()
            for seat in found
            if seat.placement.node == node
        ]


class _New(snapshot_overlay.SnapshotOverlay):
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


class Filling:
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
        known: tentative.Known | None = None,
    ) -> None:
        self._deciding = deciding
        self._limits = limits
        self._known = known or tentative.Known()
        self._view = overlay.Overlay(hypothetical_nodes.Imagined(below, found))
        self._names = frozenset(found)
        self._new = _New(self._view, self._names)
        self._allocator = dra_allocator.Allocator(deciding)
        self._none: set[Hashable] = set()
        self.filled = Filled()

    def with_more(self, found: Nodes, limits: demand.Limits | None = None) -> "Filling":
        """The same with more nodes on top; who has a place has it there too.

        Who has none yet, had none on the nodes that are there: it is looked for on these alone.
        """
        other = Filling(self._view, found, self._deciding, limits or self._limits, self._known)
        other.filled = replace(
            self.filled,
            seats=dict(self.filled.seats),
            missed=set(self.filled.missed),
            limited=dict(self.filled.limited),
        )
        return other

    def seated(self, wish: demand.Wish) -> Sequence[gang_types.Seat]:
        """Places for a wish, which nobody takes; none where not all of it has one."""
        if len(wish.workloads) == 1 and not wish.brought:
            (work,) = wish.workloads
            placed = self._allocator.decide(self._new, work) if self._names else None
            return (
                (gang_types.Seat(work, placed),)
                if isinstance(placed, allocator_types.Placement)
                else ()
            )
        seen = self._seen(wish)
        answer = gang_placement.place(wish.workloads, seen, wish.near, self._deciding, self._known)
        return answer.seats if isinstance(answer, gang_types.Seated) else ()

    def take(self, wish: demand.Wish) -> bool:
        """Seat a wish; whether it has places now."""
        alike = (
            workload_signature.workload_signature(wish.workloads[0])
            if len(wish.workloads) == 1
            else None
        )
        seats = self.seated(wish) if alike is None or alike not in self._none else ()
        if not seats:
            self.filled.missed.add(wish.key)
            if alike is not None and not wish.brought:
                self._none.add(alike)
            return False
        taken = queue_resources.total(
            queue_resources.of_results(
                self._view, (pick.result for pick in seat.placement.assignments)
            )
            for seat in seats
        )
        why = self._limits.take(wish.leaf, taken)
        if why:
            self.filled.limited[wish.key] = why
            return False
        for seat in seats:
            made = allocation_result.build_allocations(
                self._view, seat.workload, seat.placement, stamped=""
            )
            self._view.take(snapshot.InFlight(seat.workload.pod, seat.placement.node, made))
        self.filled.seats[wish.key] = seats
        self.filled.gpus += taken.gpus
        return True

    def take_all(self, found: Iterable[demand.Wish]) -> Filled:
        """Seat as many as can be, in order."""
        for wish in found:
            self.take(wish)
        return self.filled

    def _seen(self, wish: demand.Wish) -> snapshot.Snapshot:
        mine = [demand.kept_by(wish.key)] if wish.kept else ()
        if len(wish.workloads) > 1:
            return reservation_overlay.Without(self._view, mine) if mine else self._view
        return reservation_overlay.Without(self._view, mine, self._names | wish.brought)
