"""How many pods of one shape go to which node, so that they are near each other. Pure.

Of all ways that hold all of them the best is taken: the fewest domains of the coarsest level, then
of each finer one, then the fewest nodes; of equal ways the one that leaves the least room in the
domains that it enters, then the first by name. A domain or node that the gang is in already costs
nothing. Exact for the figures it is given: a cost is a sum over what is entered, and the cheapest
ways to hold ever more pods are combined from domain to domain.
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
"""Bits for each part of a cost, the most important first: one that never runs over."""


@dataclass(frozen=True, slots=True)
class Slots:
    """How many pods a node takes, and how good it is for the first (lower is better)."""

    count: int
    rank_key: node_result.RankKey


class _Option(NamedTuple):
    """A way to hold so many pods, made of two, or of a domain's own nodes."""

    cost: int
    capacity: int
    first: Optional["_Option"] = None
    second: Optional["_Option"] = None
    domain: topology.Domain | None = None


_EMPTY = _Option(0, 0)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many pods go to each node, and what that costs: lower is nearer."""

    cost: int
    counts: Mapping[ids.NodeName, int]


class Packing:
    """Of so many pods, `depth` levels deep; `entered` are the nodes that the gang is on."""

    def __init__(
        self,
        slots: Mapping[ids.NodeName, Slots],
        entered: AbstractSet[ids.NodeName],
        wanted: int,
        depth: int,
    ) -> None:
        self._slots = {name: one for name, one in slots.items() if one.count}
        self._entered = entered
        self._count = wanted
        self._depth = depth

    def plan(self, domain: topology.Domain) -> Plan | None:
        """The best plan inside a domain; None where it has too few slots."""
        ways = self._options(domain, self._bound(domain) if domain.subdomains else None)
        best = next((way for way in ways if way.capacity >= self._count), None)
        return None if best is None else Plan(best.cost, self._counts(best))

    def capacity(self, domain: topology.Domain) -> int:
        """How many slots there are."""
        return sum(self._slots[name].count for name in domain.nodes if name in self._slots)

    def _level_cost(self, level: int) -> int:
        """What one more domain of a level costs; nodes come after the last one."""
        return 1 << _DIGIT_BITS * (2 * self._depth - level)

    def _entry_cost(self, domain: topology.Domain) -> int:
        """What it costs to come into a domain."""
        if not self._entered.isdisjoint(domain.nodes):
            return 0
        level = len(domain.path) - 1
        left = self.capacity(domain) << _DIGIT_BITS * (self._depth - 1 - level)
        return self._level_cost(level) + left

    def _bound(self, domain: topology.Domain) -> "_Bound":
        """What a way must keep to that can still be the best."""
        fresh = sorted(
            (self.capacity(one) for one in domain.subdomains if self._entry_cost(one)), reverse=True
        )
        free = sum(self.capacity(one) for one in domain.subdomains if not self._entry_cost(one))
        most = [*itertools.accumulate(fresh, initial=free)]
        fewest = next((at for at, held in enumerate(most) if held >= self._count), len(fresh))
        return _Bound(
            self._count, most[: fewest + 1], _DIGIT_BITS * (2 * self._depth - len(domain.path))
        )

    def _options(self, domain: topology.Domain, bound: "_Bound | None" = None) -> list[_Option]:
        """The cheapest ways to hold ever more, up to all; the first costs nothing."""
        if not domain.subdomains:
            return self._node_options(domain)
        found = [_EMPTY]
        for one in domain.subdomains:
            entering = self._entry_cost(one)
            more = [way for way in self._options(one) if way.capacity]
            for way in [*found]:
                if way.capacity < self._count:
                    found += _combine(way, more, entering, bound)
            found = _pareto(found, self._count)
        return found

    def _node_options(self, domain: topology.Domain) -> list[_Option]:
        """The largest nodes first: no other choice of as many holds more."""
        ordered = self._ordered_nodes(domain)
        held = sum(self._slots[name].count for name in ordered if name in self._entered)
        found = [_Option(0, held, domain=domain)]
        for name in ordered:
            if held >= self._count:
                break
            if name not in self._entered:
                held += self._slots[name].count
                found.append(
                    _Option(found[-1].cost + self._level_cost(self._depth), held, domain=domain)
                )
        return found

    def _ordered_nodes(self, domain: topology.Domain) -> list[ids.NodeName]:
        """Nodes the gang is on first, then the largest, the best, the first by name."""
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
        spare = sum(one.capacity for one in parts) - self._count
        found: dict[ids.NodeName, int] = {}
        for one in reversed(parts):
            fewer = min(spare, one.capacity)
            spare -= fewer
            if one.domain is not None:
                found |= self._fill_domain(one.domain, one.capacity - fewer)
        return found

    def _fill_domain(self, domain: topology.Domain, wanted: int) -> dict[ids.NodeName, int]:
        """So many into a domain's nodes; the last goes where the least room is left."""
        found: dict[ids.NodeName, int] = {}
        left = self._ordered_nodes(domain)
        while wanted:
            name = left[0]
            if self._slots[name].count >= wanted and name not in self._entered:
                name = self._tightest_node(left, wanted)
            found[name] = min(self._slots[name].count, wanted)
            wanted -= found[name]
            left.remove(name)
        return found

    def _tightest_node(self, ordered: Sequence[ids.NodeName], wanted: int) -> ids.NodeName:
        """Of nodes by size that with the least room for all of the rest, the best one."""
        last = bisect.bisect_right(ordered, -wanted, key=lambda name: -self._slots[name].count)
        size = self._slots[ordered[last - 1]].count
        return next(name for name in ordered if self._slots[name].count == size)


@dataclass(frozen=True, slots=True)
class _Bound:
    """The fewest domains that can hold all are entered, so each has to hold its part.

    `most` is what can be held by entering none, one, two and so on of them; `shift` is where their
    number stands in a cost.
    """

    count: int
    capacities: Sequence[int]
    shift: int

    def allows(self, cost: int, holds: int) -> bool:
        """Whether a way may be part of the best one."""
        more = len(self.capacities) - 1 - (cost >> self.shift)
        return more >= 0 and holds + self.capacities[more] >= self.count


def _combine(
    way: _Option, more: Sequence[_Option], entering: int, bound: _Bound | None
) -> Iterator[_Option]:
    """Ways that add a domain; those of the domain hold more and cost more, one by one."""
    for one in more:
        cost, holds = way.cost + entering + one.cost, way.capacity + one.capacity
        if bound is None or bound.allows(cost, holds):
            yield _Option(cost, holds, way, one)
        if bound is not None and holds >= bound.count:
            return


def _pareto(found: Sequence[_Option], wanted: int) -> list[_Option]:
    """By cost, each holding more than all before it; of equals the one found first."""
    out: list[_Option] = []
    for way in sorted(found, key=lambda one: (one.cost, -min(one.capacity, wanted))):
        if not out or out[-1].capacity < min(way.capacity, wanted):
            out.append(way)
    return out


def _leaf_options(way: _Option) -> Iterator[_Option]:
    """The nodes' own ways that a way is made of, in the order of domains."""
    if way.first is None or way.second is None:
        yield way
    else:
        yield from _leaf_options(way.first)
        yield from _leaf_options(way.second)
