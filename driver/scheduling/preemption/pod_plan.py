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

_NodeTurn = tuple[int, str, ids.NodeName, bool]
"""What a node costs at least, who goes there first, its name; whether the law was asked."""


def workload_query(
    ask: preemption_types.PreemptionRequest,
    workload: allocator_types.Workload,
    judge: policy_selector.PolicySelector,
) -> step_budget.WorkloadQuery | None:
    """By the policies that decide about a workload, so that devices are chosen as later."""
    found = step_budget.workload_query(ask.view, workload, ask.allocator_settings)
    if found is None:
        return None
    chosen = judge.select(ask.view, found.requests)
    if isinstance(chosen, allocator_types.Unschedulable):
        return None
    return replace(found, allocator_settings=replace(found.allocator_settings, policy_chain=chosen))


class Search:
    """For one pod that fits nowhere as it is."""

    def __init__(
        self,
        ask: preemption_types.PreemptionRequest,
        asked_for: step_budget.WorkloadQuery,
        right: policy.PreemptionPolicy,
        book: victims.VictimIndex,
        known: lower_bounds.NodeCostsCache,
        meter: step_budget.StepBudget,
    ) -> None:
        self._snapshot = ask.view
        self._query = asked_for
        self._policy = right
        self._victims = book
        self._node_costs = known
        self._eligibility = preemption_types.EligibilityIndex(right)
        self._search = victim_search.Search(
            ask.view, asked_for, self._eligibility, meter, self._eligibility.may_evict
        )

    def result(self) -> preemption_types.Plan | preemption_types.NoPlan:
        """The cheapest plan."""
        self._node_costs.refresh(self._snapshot, self._query)
        best, least = self._find_best()
        spent = self._search.budget.is_spent
        if best is None:
            why = (
                preemption_types.NoPlanReason.BUDGET_EXCEEDED
                if spent
                else preemption_types.NoPlanReason.NOT_HELPFUL
            )
            every = self._victims.all_victims(self._snapshot).values()
            return preemption_types.no_plan(why, map(self._policy.eligibility, every))
        if least and best.is_optimal:
            return self._build_plan(best, least=True)
        return self._build_plan(self._minimize(best), least=False)

    def _find_best(self) -> tuple[victim_search.VictimSet | None, bool]:
        """The cheapest way, and whether it is known that no node has a cheaper one."""
        best: victim_search.VictimSet | None = None
        turns = self._turns()
        heapq.heapify(turns)
        while turns:
            least, _, name, asked_law = heapq.heappop(turns)
            if best is not None and least >= preemption_types.cost_number(*best.cost):
                break
            if self._search.budget.is_spent:
                return best, False
            site = self._node_site(name)
            if not asked_law:
                turn = self._node_turn(site, asked_law=True)
                if turn is not None:
                    heapq.heappush(turns, turn)
                continue
            self._search.budget.spend(step_budget.NODE_STEPS)
            best = self._best_on_node(site, least, best) or best
        return best, not self._search.budget.is_spent

    def _turns(self) -> list[_NodeTurn]:
        avoid = self._query.workload.avoided_nodes
        found = (
            self._node_turn(self._node_site(name), asked_law=False)
            for name in self._snapshot.nodes
            if name not in avoid
        )
        return [one for one in found if one is not None]

    def _node_site(self, name: ids.NodeName) -> lower_bounds.Site:
        node = self._snapshot.nodes[name]
        return self._node_costs.get(
            self._snapshot, self._victims, self._query, node, self._search.budget
        )

    def _node_turn(self, site: lower_bounds.Site, *, asked_law: bool) -> _NodeTurn | None:
        """A node in the order of what it costs at least; None where nothing would do there."""
        costs = self._victim_costs(site, asked_law=asked_law)
        cheapest = min(costs, default=lower_bounds.INFINITE)
        if cheapest >= lower_bounds.INFINITE:
            return None
        least = cheapest
        if site.costs is not None:
            count = site.costs.count
            prices = site.costs.prices(costs)[:count]
            if len(prices) < count:
                return None
            if asked_law and lower_bounds.max_free_devices(self._policy, [site]) < count:
                return None
            least = max(-(-sum(price for price, _ in prices) // site.costs.scale), cheapest)
        return least, site.victims[costs.index(cheapest)].name, site.node.name, asked_law

    def _victim_costs(self, site: lower_bounds.Site, *, asked_law: bool) -> list[int]:
        """What each unit costs; before the law was asked, at least."""
        if asked_law:
            return [
                lower_bounds.victim_cost(one) for one in map(self._policy.eligibility, site.victims)
            ]
        return lower_bounds.cost_floors(self._policy, site.victims)

    def _best_on_node(
        self, site: lower_bounds.Site, least: int, best: victim_search.VictimSet | None
    ) -> victim_search.VictimSet | None:
        """The cheapest way on a node, if it is cheaper than the best so far."""
        judged = [
            one for one in map(self._policy.eligibility, site.victims) if one.ineligible is None
        ]
        parties = {one.victim.key: self._eligibility.add(one) for one in judged}
        quick = self._greedy_set(site, least)
        if quick is not None:
            return quick
        under = best.cost if best else None
        by_name = [parties[one.victim.key] for one in sorted(judged, key=_victim_rank)]
        return next(victim_search.group_victim_sets(self._search, site.node, by_name, under), None)

    def _greedy_set(self, site: lower_bounds.Site, least: int) -> victim_search.VictimSet | None:
        """Those in the way of the cheapest devices, if they do and cost no more than they must."""
        if site.costs is None:
            return None
        costs = self._victim_costs(site, asked_law=True)
        chosen = [at for _, at in site.costs.prices(costs)[: site.costs.count]]
        if any(site.costs.devices[at].alternatives for at in chosen):
            return None
        gone = sorted({one for at in chosen for one in site.costs.devices[at].required})
        if not gone or sum(costs[one] for one in gone) > least:
            return None
        leaving = tuple(tenant for one in gone for tenant in site.victims[one].pods)
        if not self._eligibility.may_evict(leaving):
            return None
        return self._victim_set(site.node, leaving, least=True)

    def _victim_set(
        self, node: nodes.Node, leaving: Sequence[holders.DeviceHolder], *, least: bool
    ) -> victim_search.VictimSet | None:
        """A node without some, where it does then."""
        self._search.budget.spend(step_budget.EVALUATE_STEPS)
        without = without_pods.WithoutPods(self._snapshot, leaving)
        if filters.rejection(without, node, self._query.workload) is not None:
            return None
        fit = self._query.evaluate(without, node)
        if not isinstance(fit, node_result.Fit):
            return None
        return victim_search.VictimSet(
            node.name, tuple(leaving), self._eligibility.cost(leaving), fit, least
        )

    def _minimize(self, freed: victim_search.VictimSet) -> victim_search.VictimSet:
        """Without those who may stay after all: on another node less may have to go."""
        names = sorted({one.node for one in freed.victims} - {*self._query.workload.avoided_nodes})
        for unit in sorted(
            self._eligibility.victims(freed.victims), key=_victim_rank, reverse=True
        ):
            rest = [one for one in freed.victims if one not in unit.victim.pods]
            freed = next(self._victim_sets(names, rest), freed)
        return freed

    def _victim_sets(
        self, names: Iterable[ids.NodeName], rest: Sequence[holders.DeviceHolder]
    ) -> Iterator[victim_search.VictimSet]:
        for name in names:
            found = self._victim_set(self._snapshot.nodes[name], rest, least=False)
            if found is not None:
                yield found

    def _build_plan(self, freed: victim_search.VictimSet, *, least: bool) -> preemption_types.Plan:
        without = without_pods.WithoutPods(self._snapshot, freed.victims)
        picks = self._query.assignments(without, self._snapshot.nodes[freed.node], freed.fit)
        placement = allocator_types.Placement(freed.node, picks, "once those in its way are gone")
        leaving = tuple(self._eligibility.victims(freed.victims))
        return preemption_types.Plan(
            leaving, (gang_types.MemberPlacement(self._query.workload, placement),), least
        )


def _victim_rank(one: policy.VictimEligibility) -> tuple[int, int, str]:
    return one.rank
