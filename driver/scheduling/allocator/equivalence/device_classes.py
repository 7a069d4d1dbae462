"""Which devices of a node are alike: what one of them cannot solve, the others cannot either. Pure.

Devices that draw on common counters form a group (the faces of a GPU). Two groups are alike when
their members are, one by one: open to the same requests, of the same values for every constraint,
with the same counters and capacities left. Two devices are alike when they stand at the same
place in groups that are alike and of which the solution has taken nothing yet: exchanging the two
groups turns one solution into another.
"""

from collections.abc import Hashable, Sequence

from driver.resources.dra import pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import base as constraint_base
from driver.scheduling.allocator.constraints import counters


class DeviceEquivalence:
    """Computed when it is first asked for."""

    def __init__(
        self,
        spots: Sequence[candidates.NodeDevice],
        made: Sequence[Sequence[candidates.RequestCandidates]],
        ties: Sequence[constraint_base.Constraint],
        taken: counters.CounterTracker,
    ) -> None:
        self._devices = spots
        self._candidates = [offer for ways in made for offer in ways]
        self._constraints = ties
        self._tracker = taken
        self._groups: list[tuple[int, ...]] = []
        self._kinds: list[Hashable] = []

    def equivalence_class(self, place: int) -> Hashable | None:
        """What devices that are alike have in common; None for one that is like no other now."""
        if not self._kinds:
            self._compute()
        if any(self._tracker.is_used(member) for member in self._groups[place]):
            return None
        return self._kinds[place]

    def _compute(self) -> None:
        members = self._group_devices()
        self._groups = [()] * len(self._devices)
        self._kinds = [None] * len(self._devices)
        numbers: dict[Hashable, int] = {}
        open_to = [frozenset(offer.indexes) for offer in self._candidates]
        for group in members:
            look = tuple(self._device_signature(place, group, open_to) for place in group)
            number = numbers.setdefault(look, len(numbers))
            for position, place in enumerate(group):
                self._groups[place] = group
                self._kinds[place] = number, position

    def _group_devices(self) -> list[tuple[int, ...]]:
        """Places by group: devices that draw on one counter set are together."""
        group_of: dict[Hashable, list[int]] = {}
        for place, spot in enumerate(self._devices):
            sets: list[Hashable] = [(id(spot.pool), use.set) for use in spot.device.consumes]
            merged = [place]
            for key in sets or [place]:
                merged = sorted({*merged, *group_of.get(key, ())})
            for member in merged:
                for use in self._devices[member].device.consumes:
                    group_of[id(self._devices[member].pool), use.set] = merged
            if not sets:
                group_of[place] = merged
        return sorted({tuple(group) for group in group_of.values()})

    def _device_signature(
        self, place: int, group: Sequence[int], open_to: Sequence[frozenset[int]]
    ) -> Hashable:
        spot = self._devices[place]
        asks = tuple(
            (place in found, place in offer.selector_errors, _consumption(offer, place))
            for offer, found in zip(self._candidates, open_to, strict=True)
        )
        values = tuple(tie.signature(place) for tie in self._constraints)
        room = tuple(
            (name, capacity.value.nanos - candidates.held_capacity(spot, name))
            for name, capacity in spot.device.capacity.items()
            if spot.device.allow_multiple
        )
        return asks, values, room, bool(spot.holders), self._counter_signature(place, group)

    def _counter_signature(self, place: int, group: Sequence[int]) -> Hashable:
        """What a device draws and what is left of that, counter sets told by their first user."""
        spot = self._devices[place]
        if not spot.device.consumes:
            return ()
        first: dict[str, int] = {}
        for member in group:
            for use in self._devices[member].device.consumes:
                first.setdefault(use.set, len(first))
        left = self._tracker.remaining(place)
        return tuple(
            (first[of], name, amount, left.get((of, name)))
            for (of, name), amount in pools.drawn(spot.device)
        )


def _consumption(offer: candidates.RequestCandidates, place: int) -> Hashable:
    return tuple((name, one.nanos) for name, one in offer.consumption.get(place, {}).items())
