"""Number of pods of one shape per node, so that they are near each other. Pure.

Of all options that hold all of them the best is taken: the fewest domains of the coarsest level,
then of each finer one, then the fewest nodes; of equal options the one that leaves the least room
in the domains that it enters, then the first by name. A domain or node that the gang is in already
costs nothing. Exact for the figures it is given: a cost is a sum over what is entered, and the
cheapest options to hold ever more pods are combined from domain to domain.
"""

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, Optional

from driver import ids
from driver.scheduling.allocator.results import node_result
from driver.scheduling.gangs import topology

_DIGIT_BITS = 40
"""Bits for each part of a cost, the most important first: enough for any sum."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Number of pods that a node takes, and the rank of the first (lower is better)."""

    count: int
    rank_key: node_result.RankKey


class _Option(NamedTuple):
    """Option to hold some pods: a combination of two, or a domain's own nodes."""

    cost: int
    capacity: int
    first: Optional["_Option"] = None
    second: Optional["_Option"] = None
    domain: topology.Domain | None = None


_EMPTY = _Option(0, 0)


@dataclass(frozen=True, slots=True)
class Plan:
    """Number of pods per node, and the cost: lower is nearer."""

    cost: int
    counts: Mapping[ids.NodeName, int]


class Packing:
    """Packing of `count` pods, `depth` levels deep; the gang is on `occupied` nodes already."""

    def __init__(
        self,
        slots: Mapping[ids.NodeName, Slots],
        occupied: AbstractSet[ids.NodeName],
        count: int,
        depth: int,
    ) -> None:
        self._slots = {name: node_slots for name, node_slots in slots.items() if node_slots.count}
        self._entered = occupied
        self._count = count
        self._depth = depth

    def plan(self, domain: topology.Domain) -> Plan | None:
        """Return the best plan inside a domain; None if it has too few slots."""
        options = self._options(domain, self._bound(domain) if domain.subdomains else None)
        best = next((option for option in options if option.capacity >= self._count), None)
        return None if best is None else Plan(best.cost, self._counts(best))

    def capacity(self, domain: topology.Domain) -> int:
        """Return the number of slots."""
        return sum(self._slots[name].count for name in domain.nodes if name in self._slots)

    def _level_cost(self, level: int) -> int:
        """Return the cost of one more domain of a level; nodes come after the last one."""
        return 1 << _DIGIT_BITS * (2 * self._depth - level)

    def _entry_cost(self, domain: topology.Domain) -> int:
        """Return the cost of entering a domain."""
        if not self._entered.isdisjoint(domain.nodes):
            return 0
        level = len(domain.path) - 1
        left = self.capacity(domain) << _DIGIT_BITS * (self._depth - 1 - level)
        return self._level_cost(level) + left

    def _bound(self, domain: topology.Domain) -> "_Bound":
        """Return a bound that every option of the best plan keeps."""
        fresh = sorted(
            (
                self.capacity(subdomain)
                for subdomain in domain.subdomains
                if self._entry_cost(subdomain)
            ),
            reverse=True,
        )
        free = sum(
            self.capacity(subdomain)
            for subdomain in domain.subdomains
            if not self._entry_cost(subdomain)
        )
        most = [*itertools.accumulate(fresh, initial=free)]
        fewest = next((index for index, held in enumerate(most) if held >= self._count), len(fresh))
        return _Bound(
            self._count, most[: fewest + 1], _DIGIT_BITS * (2 * self._depth - len(domain.path))
        )

    def _options(self, domain: topology.Domain, bound: "_Bound | None" = None) -> list[_Option]:
        """Return the cheapest options to hold ever more, up to all; the first costs nothing."""
        if not domain.subdomains:
            return self._node_options(domain)
        options = [_EMPTY]
        for subdomain in domain.subdomains:
            entering = self._entry_cost(subdomain)
            subdomain_options = [option for option in self._options(subdomain) if option.capacity]
            for option in [*options]:
                if option.capacity < self._count:
                    options += _combine(option, subdomain_options, entering, bound)
            options = _pareto(options, self._count)
        return options

    def _node_options(self, domain: topology.Domain) -> list[_Option]:
        """Return the options of a domain's nodes, largest first: no other choice holds more."""
        ordered = self._ordered_nodes(domain)
        held = sum(self._slots[name].count for name in ordered if name in self._entered)
        options = [_Option(0, held, domain=domain)]
        for name in ordered:
            if held >= self._count:
                break
            if name not in self._entered:
                held += self._slots[name].count
                options.append(
                    _Option(options[-1].cost + self._level_cost(self._depth), held, domain=domain)
                )
        return options

    def _ordered_nodes(self, domain: topology.Domain) -> list[ids.NodeName]:
        """Return nodes the gang is on first, then the largest, the best, the first by name."""
        names = [name for name in domain.nodes if name in self._slots]
        return sorted(
            names,
            key=lambda name: (
                name not in self._entered,
                -self._slots[name].count,
                self._slots[name].rank_key,
                name,
            ),
        )

    def _counts(self, best: _Option) -> dict[ids.NodeName, int]:
        parts = [*_leaf_options(best)]
        spare = sum(part.capacity for part in parts) - self._count
        counts: dict[ids.NodeName, int] = {}
        for part in reversed(parts):
            fewer = min(spare, part.capacity)
            spare -= fewer
            if part.domain is not None:
                counts |= self._fill_domain(part.domain, part.capacity - fewer)
        return counts

    def _fill_domain(self, domain: topology.Domain, pending: int) -> dict[ids.NodeName, int]:
        """Distribute pods to a domain's nodes; the last goes where the least room is left."""
        counts: dict[ids.NodeName, int] = {}
        left = self._ordered_nodes(domain)
        while pending:
            name = left[0]
            if self._slots[name].count >= pending and name not in self._entered:
                name = self._tightest_node(left, pending)
            counts[name] = min(self._slots[name].count, pending)
            pending -= counts[name]
            left.remove(name)
        return counts

    def _tightest_node(self, ordered: Sequence[ids.NodeName], pending: int) -> ids.NodeName:
        """Return the smallest node that holds all of the rest; of equals the best one."""
        last = bisect.bisect_right(ordered, -pending, key=lambda name: -self._slots[name].count)
        size = self._slots[ordered[last - 1]].count
        return next(name for name in ordered if self._slots[name].count == size)


@dataclass(frozen=True, slots=True)
class _Bound:
    """Bound by the fewest domains that can hold all, of which each has to hold its part.

    `capacities` is what can be held by entering none, one, two and so on of them; `shift` is the
    position of their number in a cost.
    """

    count: int
    capacities: Sequence[int]
    shift: int

    def allows(self, cost: int, holds: int) -> bool:
        """Return whether an option may be part of the best one."""
        more = len(self.capacities) - 1 - (cost >> self.shift)
        return more >= 0 and holds + self.capacities[more] >= self.count


def _combine(
    option: _Option, added_options: Sequence[_Option], entering: int, bound: _Bound | None
) -> Iterator[_Option]:
    """Yield options that add a domain, whose options hold more and cost more, one by one."""
    for added in added_options:
        cost, holds = option.cost + entering + added.cost, option.capacity + added.capacity
        if bound is None or bound.allows(cost, holds):
            yield _Option(cost, holds, option, added)
        if bound is not None and holds >= bound.count:
            return


def _pareto(options: Sequence[_Option], limit: int) -> list[_Option]:
    """Return options by cost, each holding more than all before it; of equals the first found."""
    front: list[_Option] = []
    for option in sorted(
        options, key=lambda candidate: (candidate.cost, -min(candidate.capacity, limit))
    ):
        if not front or front[-1].capacity < min(option.capacity, limit):
            front.append(option)
    return front


def _leaf_options(option: _Option) -> Iterator[_Option]:
    """Yield the nodes' own options that an option is made of, in the order of domains."""
    if option.first is None or option.second is None:
        yield option
    else:
        yield from _leaf_options(option.first)
        yield from _leaf_options(option.second)
