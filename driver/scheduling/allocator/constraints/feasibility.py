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

    candidates: candidates.RequestCandidates
    count: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """What is still to be had for a claim: one of the options."""

    claim: int
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class _FreeOption:
    """An option, and the devices that could answer it now."""

    option: Option
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.option.candidates.subrequest.name


class FeasibilityBounds:
    """Of one node's search."""

    def __init__(
        self,
        spots: Sequence[candidates.NodeDevice],
        bonds: Sequence[match_attribute.MatchAttribute],
        taken: counters.CounterTracker,
    ) -> None:
        self._devices = spots
        self._constraints = bonds
        self._tracker = taken
        self._counter_bounds = counter_bounds.CounterBounds(spots, taken)

    def is_feasible(self, demands: Iterable[Demand]) -> bool:
        """Whether no bound rules out that every demand is met."""
        chances: list[tuple[Demand, list[_FreeOption]]] = []
        for demand in demands:
            found = [self._free_option(demand.claim, option) for option in demand.options]
            there = [one for one in found if _is_enough(one, one.places)]
            if not there:
                return False
            chances.append((demand, there))
        return (
            self._has_devices(chances)
            and all(self._is_reconcilable(bond, chances) for bond in self._constraints)
            and self._has_counters(chances)
        )

    def _has_counters(self, chances: Sequence[tuple[Demand, list[_FreeOption]]]) -> bool:
        """Counters are common to requests: what they draw together has to be there."""
        found = [
            [(one.option.candidates, one.option.count) for one in there] for _, there in chances
        ]
        certain = [
            options for options in found if not any(_is_unbounded(offer) for offer, _ in options)
        ]
        return self._counter_bounds.is_satisfiable(certain)

    def _free_option(self, claim: int, option: Option) -> _FreeOption:
        offer = option.candidates
        bonds = [bond for bond in self._constraints if bond.covers(claim, offer.subrequest.name)]
        places = offer.indexes[option.start :]
        if _is_unbounded(offer):
            return _FreeOption(option, tuple(places))
        return _FreeOption(
            option,
            tuple(
                place
                for place in places
                if all(bond.accepts(place) for bond in bonds)
                and self._tracker.can_allocate(place, offer, claim)
            ),
        )

    def _has_devices(self, chances: Sequence[tuple[Demand, list[_FreeOption]]]) -> bool:
        """Devices that are not shared go to one request each."""
        wanted = 0
        union: set[int] = set()
        for _, found in chances:
            one = found[0]
            if len(found) > 1 or _is_unbounded(one.option.candidates) or self._is_repeatable(one):
                continue
            wanted += one.option.count
            union.update(one.places)
        return len(union) >= wanted

    def _is_repeatable(self, one: _FreeOption) -> bool:
        if one.option.candidates.subrequest.request.admin_access:
            return True
        return any(self._devices[place].device.allow_multiple for place in one.places)

    def _is_reconcilable(
        self,
        bond: match_attribute.MatchAttribute,
        chances: Sequence[tuple[Demand, list[_FreeOption]]],
    ) -> bool:
        mine = [found for demand, found in chances if demand.claim == bond.claim]
        bound = [found for found in mine if any(bond.constraint.covers(one.name) for one in found)]
        if not bound or any(
            _is_unbounded(one.option.candidates) for found in bound for one in found
        ):
            return True
        if bond.constraint.distinct:
            return _can_differ(bond, bound)
        values = {member for found in bound for member in _option_values(bond, found)}
        return any(all(_can_agree(bond, found, value) for found in bound) for value in values)


def _is_unbounded(offer: candidates.RequestCandidates) -> bool:
    """Where a failure is an error, it is for the search to meet it."""
    return offer.subrequest.request.everything or bool(offer.selector_errors)


def _is_enough(one: _FreeOption, places: Sequence[int]) -> bool:
    return _is_unbounded(one.option.candidates) or len(places) >= one.option.count


def _option_values(
    bond: match_attribute.MatchAttribute, found: Sequence[_FreeOption]
) -> Iterable[Hashable]:
    for one in found:
        for place in one.places:
            yield from bond.values[place] or ()


def _can_agree(
    bond: match_attribute.MatchAttribute, found: Sequence[_FreeOption], value: Hashable
) -> bool:
    """Whether an option can be had of devices that have the value, as far as the bond goes."""
    return any(
        not bond.constraint.covers(one.name)
        or _is_enough(one, [place for place in one.places if value in (bond.values[place] or ())])
        for one in found
    )


def _can_differ(
    bond: match_attribute.MatchAttribute, bound: Sequence[Sequence[_FreeOption]]
) -> bool:
    """Every device needs an element of its own."""
    alone = [found[0] for found in bound if len(found) == 1]
    needed = sum(one.option.count for one in alone)
    return needed <= len({member for one in alone for member in _option_values(bond, [one])})
