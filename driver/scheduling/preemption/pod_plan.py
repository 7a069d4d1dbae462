"""Preemption plan for one pod: the cheapest set of victims on the best node. Pure.

Nodes are visited in the order of their lower bounds, so the first that costs no more than its
bound, or less than all others could, is the best one.
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
"""Lower bound of a node's cost, its first victim, its name; whether eligibility was evaluated."""


def workload_query(
    request: preemption_types.PreemptionRequest,
    workload: allocator_types.Workload,
    policies: policy_selector.PolicySelector,
) -> step_budget.WorkloadQuery | None:
    """Return the query with the workload's own policies, so that devices are chosen as later."""
    query = step_budget.workload_query(request.view, workload, request.allocator_settings)
    if query is None:
        return None
    policy_chain = policies.select(request.view, query.requests)
    if isinstance(policy_chain, allocator_types.Unschedulable):
        return None
    return replace(
        query, allocator_settings=replace(query.allocator_settings, policy_chain=policy_chain)
    )


class Search:
    """Search for one unschedulable pod."""

    def __init__(
        self,
        request: preemption_types.PreemptionRequest,
        query: step_budget.WorkloadQuery,
        eviction_policy: policy.PreemptionPolicy,
        victim_index: victims.VictimIndex,
        costs_cache: lower_bounds.NodeCostsCache,
        budget: step_budget.StepBudget,
    ) -> None:
        self._snapshot = request.view
        self._query = query
        self._policy = eviction_policy
        self._victims = victim_index
        self._node_costs = costs_cache
        self._eligibility = preemption_types.EligibilityIndex(eviction_policy)
        self._search = victim_search.Search(
            request.view, query, self._eligibility, budget, self._eligibility.may_evict
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
        """Return the cheapest set, and whether it is known that no node has a cheaper one."""
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
        turns = (
            self._node_turn(self._node_site(name), asked_law=False)
            for name in self._snapshot.nodes
            if name not in avoid
        )
        return [turn for turn in turns if turn is not None]

    def _node_site(self, name: ids.NodeName) -> lower_bounds.Site:
        node = self._snapshot.nodes[name]
        return self._node_costs.get(
            self._snapshot, self._victims, self._query, node, self._search.budget
        )

    def _node_turn(self, site: lower_bounds.Site, *, asked_law: bool) -> _NodeTurn | None:
        """Return a node's place in the order of lower bounds; None if nothing suffices there."""
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
        """Return the cost of each victim; before eligibility was evaluated, a lower bound."""
        if asked_law:
            return [
                lower_bounds.victim_cost(candidate)
                for candidate in map(self._policy.eligibility, site.victims)
            ]
        return lower_bounds.cost_floors(self._policy, site.victims)

    def _best_on_node(
        self, site: lower_bounds.Site, least: int, best: victim_search.VictimSet | None
    ) -> victim_search.VictimSet | None:
        """Return the cheapest set on a node, if it is cheaper than the best so far."""
        eligible = [
            candidate
            for candidate in map(self._policy.eligibility, site.victims)
            if candidate.ineligible is None
        ]
        groups = {candidate.victim.key: self._eligibility.add(candidate) for candidate in eligible}
        quick = self._greedy_set(site, least)
        if quick is not None:
            return quick
        under = best.cost if best else None
        by_name = [groups[candidate.victim.key] for candidate in sorted(eligible, key=_victim_rank)]
        return next(victim_search.group_victim_sets(self._search, site.node, by_name, under), None)

    def _greedy_set(self, site: lower_bounds.Site, least: int) -> victim_search.VictimSet | None:
        """Return the victims of the cheapest devices, if they suffice at the lower bound."""
        if site.costs is None:
            return None
        costs = self._victim_costs(site, asked_law=True)
        chosen = [device for _, device in site.costs.prices(costs)[: site.costs.count]]
        if any(site.costs.devices[device].alternatives for device in chosen):
            return None
        gone = sorted({index for device in chosen for index in site.costs.devices[device].required})
        if not gone or sum(costs[index] for index in gone) > least:
            return None
        leaving = tuple(holder for index in gone for holder in site.victims[index].pods)
        if not self._eligibility.may_evict(leaving):
            return None
        return self._victim_set(site.node, leaving, least=True)

    def _victim_set(
        self, node: nodes.Node, leaving: Sequence[holders.DeviceHolder], *, least: bool
    ) -> victim_search.VictimSet | None:
        """Return a node's set of some holders, if it suffices."""
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

    def _minimize(self, victim_set: victim_search.VictimSet) -> victim_search.VictimSet:
        """Return the set without victims that may stay after all, on any of its nodes."""
        names = sorted(
            {holder.node for holder in victim_set.victims} - {*self._query.workload.avoided_nodes}
        )
        for candidate in sorted(
            self._eligibility.victims(victim_set.victims), key=_victim_rank, reverse=True
        ):
            rest = [holder for holder in victim_set.victims if holder not in candidate.victim.pods]
            victim_set = next(self._victim_sets(names, rest), victim_set)
        return victim_set

    def _victim_sets(
        self, names: Iterable[ids.NodeName], rest: Sequence[holders.DeviceHolder]
    ) -> Iterator[victim_search.VictimSet]:
        for name in names:
            victim_set = self._victim_set(self._snapshot.nodes[name], rest, least=False)
            if victim_set is not None:
                yield victim_set

    def _build_plan(
        self, victim_set: victim_search.VictimSet, *, least: bool
    ) -> preemption_types.Plan:
        without = without_pods.WithoutPods(self._snapshot, victim_set.victims)
        placement = self._query.placement(
            without,
            self._snapshot.nodes[victim_set.node],
            victim_set.fit,
            "once those in its way are gone",
        )
        leaving = tuple(self._eligibility.victims(victim_set.victims))
        return preemption_types.Plan(
            leaving, (gang_types.MemberPlacement(self._query.workload, placement),), least
        )


def _victim_rank(candidate: policy.VictimEligibility) -> tuple[int, int, str]:
    return candidate.rank
