"""Who finds a place once nodes that are not there yet are, in the order of queues. Pure."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from driver import ids
from driver.controller import view as cluster
from driver.controller.allocation import assemble, settings, shapes
from driver.controller.allocation.gangs import overlay, result, seating
from driver.controller.provisioning import imagined, shape, wishes
from driver.controller.queueing import amounts
from driver.controller.reservations import without

Nodes = Mapping[ids.NodeName, shape.Shape]
"""Nodes that are not there yet, by the names that they have until they are."""


@dataclass(slots=True)
class Filled:
    """By wish: its places, or why it has none. `gpus` are thousandths that all places have."""

    seats: dict[str, Sequence[result.Seat]] = field(default_factory=dict)
    missed: dict[str, result.Unseated] = field(default_factory=dict)
    limited: dict[str, str] = field(default_factory=dict)
    gpus: int = 0

    def on(self, node: ids.NodeName) -> list[tuple[str, result.Seat]]:
        """Who is on a node, with the wish, in the order of wishes."""
        return [
            (key, seat)
            for key, found in self.seats.items()
            for seat in found
            if seat.placement.node == node
        ]


class Filling:
    """Wishes are seated one after the other; each place counts for those that come later.

    A pod by itself is looked for on nodes that are not there yet, or were brought for it, alone: on
    the others there was none for it. Part of a gang may go there.
    """

    def __init__(
        self,
        below: cluster.ClusterView,
        found: Nodes,
        deciding: settings.Settings,
        limits: wishes.Limits,
    ) -> None:
        self._deciding = deciding
        self._limits = limits
        self._view = overlay.Overlay(imagined.Imagined(below, found))
        self._new = frozenset(found)
        self._none: dict[Hashable, result.Unseated] = {}
        self.filled = Filled()

    def with_more(self, found: Nodes, limits: wishes.Limits | None = None) -> "Filling":
        """The same with more nodes on top; who has a place has it there too."""
        other = Filling(self._view, found, self._deciding, limits or self._limits)
        other._new |= self._new
        other.filled = replace(
            self.filled,
            seats=dict(self.filled.seats),
            missed=dict(self.filled.missed),
            limited=dict(self.filled.limited),
        )
        return other

    def seated(self, wish: wishes.Wish) -> result.Seated | result.Unseated:
        """Places for a wish, which nobody takes."""
        return seating.place(wish.workloads, self._seen(wish), wish.near, self._deciding)

    def take(self, wish: wishes.Wish) -> bool:
        """Seat a wish; whether it has places now."""
        alike = shapes.of(wish.workloads[0]) if len(wish.workloads) == 1 else None
        answer = self._none.get(alike) or self.seated(wish)
        if isinstance(answer, result.Unseated):
            self.filled.missed[wish.key] = answer
            if alike is not None:
                self._none[alike] = answer
            return False
        taken = amounts.total(
            amounts.of_results(self._view, (pick.result for pick in seat.placement.picks))
            for seat in answer.seats
        )
        why = self._limits.take(wish.leaf, taken)
        if why:
            self.filled.limited[wish.key] = why
            return False
        for seat in answer.seats:
            made = assemble.allocations(self._view, seat.workload, seat.placement, stamped="")
            self._view.take(cluster.InFlight(seat.workload.pod, seat.placement.node, made))
        self.filled.seats[wish.key] = answer.seats
        self.filled.gpus += taken.gpus
        return True

    def take_all(self, found: Iterable[wishes.Wish]) -> Filled:
        """Seat as many as can be, in order."""
        for wish in found:
            self.take(wish)
        return self.filled

    def _seen(self, wish: wishes.Wish) -> cluster.ClusterView:
        only = None if len(wish.workloads) > 1 else self._new | wish.brought
        return without.Without(self._view, [wishes.kept_by(wish.key)], only)
