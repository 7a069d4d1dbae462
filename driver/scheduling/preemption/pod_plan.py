"""A plan for one pod: the cheapest set of units on the best node. Pure.

Nodes are looked at in the order of what they cost at least, so the first that costs no more than
that, or less than all others could, is the best one.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.allocator.policies import policy_selector
from driver.scheduling.allocator.results import node_result
from driver.scheduling.explain import holders, step_budget, victim_search, without_pods
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import lower_bounds, policy, victims
from driver.scheduling.preemption import types as preemption_types

_Turn = tuple[int, str, ids.NodeName, bool]
"""What a node costs at least, who goes there first, its name; whether the law was asked."""


def asked(
    ask: preemption_types.Ask,
    workload: allocator_types.Workload,
    judge: policy_selector.PolicySelector,
) -> step_budget.Asking | None:
    """By the policies that decide about a workload, so that devices are chosen as later."""
    found = step_budget.of(ask.view, workload, ask.deciding)
    if found is None:
        return None
    chosen = judge.select(ask.view, found.wants)
    if isinstance(chosen, allocator_types.Unschedulable):
        return None
    return replace(found, deciding=replace(found.deciding, policy_chain=chosen))


class Search:
    """For one pod that fits nowhere as it is."""

    def __init__(
        self,
        ask: preemption_types.Ask,
        asked_for: step_budget.Asking,
        right: policy.Law,
        book: victims.Book,
        known: lower_bounds.Grounds,
        meter: step_budget.Meter,
    ) -> None:
        self._view = ask.view
        self._asked = asked_for
        self._right = right
        self._book = book
        self._grounds = known
        self._known = preemption_types.Known(right)
        self._search = victim_search.Search(
            ask.view, asked_for, self._known, meter, self._known.allows
        )

    def answer(self) -> preemption_types.Plan | preemption_types.NoPlan:
        """The cheapest plan."""
        self._grounds.renew(self._view, self._asked)
        best, least = self._best()
        spent = self._search.meter.spent
        if best is None:
            why = preemption_types.Why.SPENT if spent else preemption_types.Why.IN_VAIN
            every = self._book.all(self._view).values()
            return preemption_types.none(why, map(self._right.judged, every))
        if least and best.least:
            return self._plan(best, least=True)
        return self._plan(self._fewer(best), least=False)

    def _best(self) -> tuple[victim_search.Freed | None, bool]:
        """The cheapest way, and whether it is known that no node has a cheaper one."""
        best: victim_search.Freed | None = None
        turns = self._turns()
        heapq.heapify(turns)
        while turns:
            least, _, name, asked_law = heapq.heappop(turns)
            if best is not None and least >= preemption_types.one_number(*best.cost):
                break
            if self._search.meter.spent:
                return best, False
            site = self._site(name)
            if not asked_law:
                turn = self._turn(site, asked_law=True)
                if turn is not None:
                    heapq.heappush(turns, turn)
                continue
            self._search.meter.count(step_budget.NODE)
            best = self._on(site, least, best) or best
        return best, not self._search.meter.spent

    def _turns(self) -> list[_Turn]:
        avoid = self._asked.workload.avoided_nodes
        found = (
            self._turn(self._site(name), asked_law=False)
            for name in self._view.nodes
            if name not in avoid
        )
        return [one for one in found if one is not None]

    def _site(self, name: ids.NodeName) -> lower_bounds.Site:
        node = self._view.nodes[name]
        return self._grounds.of(self._view, self._book, self._asked, node, self._search.meter)

    def _turn(self, site: lower_bounds.Site, *, asked_law: bool) -> _Turn | None:
        """A node in the order of what it costs at least; None where nothing would do there."""
        costs = self._costs(site, asked_law=asked_law)
        cheapest = min(costs, default=lower_bounds.NEVER)
        if cheapest >= lower_bounds.NEVER:
            return None
        least = cheapest
        if site.ground is not None:
            count = site.ground.count
            prices = site.ground.prices(costs)[:count]
            if len(prices) < count:
                return None
            if asked_law and lower_bounds.devices(self._right, [site]) < count:
                return None
            least = max(-(-sum(price for price, _ in prices) // site.ground.scale), cheapest)
        return least, site.there[costs.index(cheapest)].name, site.node.name, asked_law

    def _costs(self, site: lower_bounds.Site, *, asked_law: bool) -> list[int]:
        """What each unit costs; before the law was asked, at least."""
        if asked_law:
            return [lower_bounds.cost(one) for one in map(self._right.judged, site.there)]
        return lower_bounds.floors(self._right, site.there)

    def _on(
        self, site: lower_bounds.Site, least: int, best: victim_search.Freed | None
    ) -> victim_search.Freed | None:
        """The cheapest way on a node, if it is cheaper than the best so far."""
        judged = [one for one in map(self._right.judged, site.there) if one.barred is None]
        parties = {one.unit.key: self._known.put(one) for one in judged}
        quick = self._quick(site, least)
        if quick is not None:
            return quick
        under = best.cost if best else None
        by_name = [parties[one.unit.key] for one in sorted(judged, key=_rank)]
        return next(victim_search.ways_of_parties(self._search, site.node, by_name, under), None)

    def _quick(self, site: lower_bounds.Site, least: int) -> victim_search.Freed | None:
        """Those in the way of the cheapest devices, if they do and cost no more than they must."""
        if site.ground is None:
            return None
        costs = self._costs(site, asked_law=True)
        chosen = [at for _, at in site.ground.prices(costs)[: site.ground.count]]
        if any(site.ground.bars[at].more for at in chosen):
            return None
        gone = sorted({one for at in chosen for one in site.ground.bars[at].needs})
        if not gone or sum(costs[one] for one in gone) > least:
            return None
        leaving = tuple(tenant for one in gone for tenant in site.there[one].people)
        if not self._known.allows(leaving):
            return None
        return self._freed(site.node, leaving, least=True)

    def _freed(
        self, node: nodes.Node, leaving: Sequence[holders.Tenant], *, least: bool
    ) -> victim_search.Freed | None:
        """A node without some, where it does then."""
        self._search.meter.count(step_budget.ASK)
        without = without_pods.Absence(self._view, leaving)
        if filters.rejection(without, node, self._asked.workload) is not None:
            return None
        fit = self._asked.answer(without, node)
        if not isinstance(fit, node_result.Fit):
            return None
        return victim_search.Freed(node.name, tuple(leaving), self._known.of(leaving), fit, least)

    def _fewer(self, freed: victim_search.Freed) -> victim_search.Freed:
        """Without those who may stay after all: on another node less may have to go."""
        names = sorted({one.node for one in freed.leaving} - {*self._asked.workload.avoided_nodes})
        for unit in sorted(self._known.judged(freed.leaving), key=_rank, reverse=True):
            rest = [one for one in freed.leaving if one not in unit.unit.people]
            freed = next(self._ways(names, rest), freed)
        return freed

    def _ways(
        self, names: Iterable[ids.NodeName], rest: Sequence[holders.Tenant]
    ) -> Iterator[victim_search.Freed]:
        for name in names:
            found = self._freed(self._view.nodes[name], rest, least=False)
            if found is not None:
                yield found

    def _plan(self, freed: victim_search.Freed, *, least: bool) -> preemption_types.Plan:
        without = without_pods.Absence(self._view, freed.leaving)
        picks = self._asked.picks(without, self._view.nodes[freed.node], freed.fit)
        placement = allocator_types.Placement(freed.node, picks, "once those in its way are gone")
        leaving = tuple(self._known.judged(freed.leaving))
        return preemption_types.Plan(
            leaving, (gang_types.Seat(self._asked.workload, placement),), least
        )


def _rank(one: policy.Judged) -> tuple[int, int, str]:
    return one.rank
