"""Whether what is left can still be had: bounds that end a hopeless branch at once. Pure.

They look at each request with what is free now, at each constraint alone, and at devices and
counters for all requests together. They may hope in vain; they never despair in vain.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import counter_bounds, counters, match_attribute


@dataclass(frozen=True, slots=True)
class Option:
    """`count` more devices of an offer, from a place in its list on."""

    offer: candidates.Offer
    count: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """What is still to be had for a claim: one of the options."""

    claim: int
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class _Chance:
    """An option, and the devices that could answer it now."""

    option: Option
    places: tuple[int, ...]

    @property
    def way(self) -> str:
        return self.option.offer.way.name


class Prospects:
    """Of one node's search."""

    def __init__(
        self,
        spots: Sequence[candidates.Spot],
        bonds: Sequence[match_attribute.Bond],
        taken: counters.Tally,
    ) -> None:
        self._spots = spots
        self._bonds = bonds
        self._tally = taken
        self._supplies = counter_bounds.Supplies(spots, taken)

    def hopeful(self, demands: Iterable[Demand]) -> bool:
        """Whether no bound rules out that every demand is met."""
        chances: list[tuple[Demand, list[_Chance]]] = []
        for demand in demands:
            found = [self._chance(demand.claim, option) for option in demand.options]
            there = [one for one in found if _enough(one, one.places)]
            if not there:
                return False
            chances.append((demand, there))
        return (
            self._enough_devices(chances)
            and all(self._reconcilable(bond, chances) for bond in self._bonds)
            and self._supplied(chances)
        )

    def _supplied(self, chances: Sequence[tuple[Demand, list[_Chance]]]) -> bool:
        """Counters are common to requests: what they draw together has to be there."""
        found = [[(one.option.offer, one.option.count) for one in there] for _, there in chances]
        certain = [
            options for options in found if not any(_unbounded(offer) for offer, _ in options)
        ]
        return self._supplies.suffice(certain)

    def _chance(self, claim: int, option: Option) -> _Chance:
        offer = option.offer
        bonds = [bond for bond in self._bonds if bond.covers(claim, offer.way.name)]
        places = offer.places[option.start :]
        if _unbounded(offer):
            return _Chance(option, tuple(places))
        return _Chance(
            option,
            tuple(
                place
                for place in places
                if all(bond.accepts(place) for bond in bonds)
                and self._tally.could(place, offer, claim)
            ),
        )

    def _enough_devices(self, chances: Sequence[tuple[Demand, list[_Chance]]]) -> bool:
        """Devices that are not shared go to one request each."""
        wanted = 0
        union: set[int] = set()
        for _, found in chances:
            one = found[0]
            if len(found) > 1 or _unbounded(one.option.offer) or self._repeatable(one):
                continue
            wanted += one.option.count
            union.update(one.places)
        return len(union) >= wanted

    def _repeatable(self, one: _Chance) -> bool:
        if one.option.offer.way.request.admin_access:
            return True
        return any(self._spots[place].device.allow_multiple for place in one.places)

    def _reconcilable(
        self, bond: match_attribute.Bond, chances: Sequence[tuple[Demand, list[_Chance]]]
    ) -> bool:
        mine = [found for demand, found in chances if demand.claim == bond.claim]
        bound = [found for found in mine if any(bond.rule.covers(one.way) for one in found)]
        if not bound or any(_unbounded(one.option.offer) for found in bound for one in found):
            return True
        if bond.rule.distinct:
            return _different(bond, bound)
        values = {member for found in bound for member in _members(bond, found)}
        return any(all(_agrees(bond, found, value) for found in bound) for value in values)


def _unbounded(offer: candidates.Offer) -> bool:
    """Where a failure is an error, it is for the search to meet it."""
    return offer.way.request.everything or bool(offer.failing)


def _enough(one: _Chance, places: Sequence[int]) -> bool:
    return _unbounded(one.option.offer) or len(places) >= one.option.count


def _members(bond: match_attribute.Bond, found: Sequence[_Chance]) -> Iterable[Hashable]:
    for one in found:
        for place in one.places:
            yield from bond.values[place] or ()


def _agrees(bond: match_attribute.Bond, found: Sequence[_Chance], value: Hashable) -> bool:
    """Whether an option can be had of devices that have the value, as far as the bond goes."""
    return any(
        not bond.rule.covers(one.way)
        or _enough(one, [place for place in one.places if value in (bond.values[place] or ())])
        for one in found
    )


def _different(bond: match_attribute.Bond, bound: Sequence[Sequence[_Chance]]) -> bool:
    """Every device needs an element of its own."""
    alone = [found[0] for found in bound if len(found) == 1]
    needed = sum(one.option.count for one in alone)
    return needed <= len({member for one in alone for member in _members(bond, [one])})
