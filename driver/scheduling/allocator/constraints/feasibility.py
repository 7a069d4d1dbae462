"""Bounds that end a search branch without solutions early. Pure.

They check each request against free devices, each constraint alone, and devices and counters for
all requests together. The bounds are admissible: a rejected branch has no solution; an accepted one
may still fail.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import counter_bounds, counters, match_attribute


@dataclass(frozen=True, slots=True)
class Option:
    """`count` more devices of the candidates, from an index in their list on."""

    candidates: candidates.RequestCandidates
    count: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """Open part of a claim: one of the options is needed."""

    claim: int
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class _FreeOption:
    """An option, and the devices that could serve it now."""

    option: Option
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.option.candidates.subrequest.name


class FeasibilityBounds:
    """Bounds for one node's search."""

    def __init__(
        self,
        devices: Sequence[candidates.NodeDevice],
        constraints: Sequence[match_attribute.MatchAttribute],
        tracker: counters.CounterTracker,
    ) -> None:
        self._devices = devices
        self._constraints = constraints
        self._tracker = tracker
        self._counter_bounds = counter_bounds.CounterBounds(devices, tracker)

    def is_feasible(self, demands: Iterable[Demand]) -> bool:
        """Return whether no bound excludes that every demand is met."""
        free_options: list[tuple[Demand, list[_FreeOption]]] = []
        for demand in demands:
            options = [self._free_option(demand.claim, option) for option in demand.options]
            sufficient = [option for option in options if _is_enough(option, option.places)]
            if not sufficient:
                return False
            free_options.append((demand, sufficient))
        return (
            self._has_devices(free_options)
            and all(
                self._is_reconcilable(constraint, free_options) for constraint in self._constraints
            )
            and self._has_counters(free_options)
        )

    def _has_counters(self, free_options: Sequence[tuple[Demand, list[_FreeOption]]]) -> bool:
        """Return whether the shared counters cover what the requests draw together."""
        demands = [
            [(option.option.candidates, option.option.count) for option in options]
            for _, options in free_options
        ]
        certain = [
            options
            for options in demands
            if not any(_is_unbounded(request_candidates) for request_candidates, _ in options)
        ]
        return self._counter_bounds.is_satisfiable(certain)

    def _free_option(self, claim: int, option: Option) -> _FreeOption:
        options = option.candidates
        constraints = [
            constraint
            for constraint in self._constraints
            if constraint.covers(claim, options.subrequest.name)
        ]
        indexes = options.indexes[option.start :]
        if _is_unbounded(options) or len(indexes) < option.count:
            return _FreeOption(option, tuple(indexes))
        return _FreeOption(
            option,
            tuple(
                index
                for index in indexes
                if all(constraint.accepts(index) for constraint in constraints)
                and self._tracker.can_allocate(index, options, claim)
            ),
        )

    def _has_devices(self, free_options: Sequence[tuple[Demand, list[_FreeOption]]]) -> bool:
        """Return whether there are enough devices: an unshared device serves one request."""
        requested = 0
        union: set[int] = set()
        for _, options in free_options:
            option = options[0]
            if (
                len(options) > 1
                or _is_unbounded(option.option.candidates)
                or self._is_repeatable(option)
            ):
                continue
            requested += option.option.count
            union.update(option.places)
        return len(union) >= requested

    def _is_repeatable(self, option: _FreeOption) -> bool:
        if option.option.candidates.subrequest.request.admin_access:
            return True
        return any(self._devices[index].device.allow_multiple for index in option.places)

    def _is_reconcilable(
        self,
        constraint: match_attribute.MatchAttribute,
        free_options: Sequence[tuple[Demand, list[_FreeOption]]],
    ) -> bool:
        claim_options = [
            options for demand, options in free_options if demand.claim == constraint.claim
        ]
        bound = [
            options
            for options in claim_options
            if any(constraint.constraint.covers(option.name) for option in options)
        ]
        if not bound or any(
            _is_unbounded(option.option.candidates) for options in bound for option in options
        ):
            return True
        if constraint.constraint.distinct:
            return _can_differ(constraint, bound)
        values = {member for options in bound for member in _option_values(constraint, options)}
        return any(
            all(_can_agree(constraint, options, value) for options in bound) for value in values
        )


def _is_unbounded(options: candidates.RequestCandidates) -> bool:
    """Return whether the search has to meet the errors of these candidates itself."""
    return options.subrequest.request.all_devices or bool(options.selector_errors)


def _is_enough(option: _FreeOption, indexes: Sequence[int]) -> bool:
    return _is_unbounded(option.option.candidates) or len(indexes) >= option.option.count


def _option_values(
    constraint: match_attribute.MatchAttribute, options: Sequence[_FreeOption]
) -> Iterable[Hashable]:
    for option in options:
        for index in option.places:
            yield from constraint.values[index] or ()


def _can_agree(
    constraint: match_attribute.MatchAttribute, options: Sequence[_FreeOption], value: Hashable
) -> bool:
    """Return whether an option can be served by devices that have the value."""
    return any(
        not constraint.constraint.covers(option.name)
        or _is_enough(
            option, [index for index in option.places if value in (constraint.values[index] or ())]
        )
        for option in options
    )


def _can_differ(
    constraint: match_attribute.MatchAttribute, bound: Sequence[Sequence[_FreeOption]]
) -> bool:
    """Return whether there are enough values: every device needs one of its own."""
    alone = [options[0] for options in bound if len(options) == 1]
    needed = sum(option.option.count for option in alone)
    return needed <= len(
        {member for option in alone for member in _option_values(constraint, [option])}
    )
