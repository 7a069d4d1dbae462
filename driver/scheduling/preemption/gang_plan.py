"""Preemption plan for a gang: all of it, or nothing. Pure.

First the victims of the cheapest devices are tried (`greedy`): often nothing can cost less. If
something might, and eligible victims are few, sets are tried in the order of their cost until the
steps end. Members per node are counted for each node by itself, as placement counts them: only sets
that leave enough room are tried.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.allocator import settings
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.allocator.policies import policy_selector
from driver.scheduling.explain import step_budget, subsets, without_pods
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import tentative, topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import greedy, lower_bounds, pod_plan, policy, victims
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.snapshot import overlay as snapshot_overlay
from driver.scheduling.snapshot import snapshot

_PLACEMENT_STEPS = 20
"""Steps of placing one member."""
_EXHAUSTIVE_LIMIT = 16
"""Maximum number of victims of which all sets may be tried."""
_MAX_TRIES = 32
"""Maximum number of placements to find victims that may stay after all."""


@dataclass(frozen=True, slots=True)
class _GangVictims:
    """Victims without which all members fit, by index. `is_optimal`: none cost less."""

    victims: subsets.Members
    placement: gang_types.GangPlacement
    is_optimal: bool = False


class PlanCache:
    """Caches retained from plan to plan, for one changing snapshot."""

    def __init__(self, allocator_settings: settings.Settings) -> None:
        self.blockers = lower_bounds.NodeCostsCache()
        self.policies = policy_selector.PolicySelector(allocator_settings.policy_chain)
        self.fills = tentative.FillCache()


class Search:
    """Search for an unschedulable gang. Eligible victims are in the order of their cost."""

    def __init__(
        self,
        request: preemption_types.PreemptionRequest,
        eviction_policy: policy.PreemptionPolicy,
        victim_index: victims.VictimIndex,
        cache: PlanCache,
        budget: step_budget.StepBudget,
    ) -> None:
        self._request = request
        self._policy = eviction_policy
        self._victims = victim_index
        self._cache = cache
        self._budget = budget
        chart = topology.build_domains(request.view, request.topology_request)
        self._domains = [*chart.cluster.domains_at(request.topology_request.required_depth)]
        self._groups = self._shape_groups()

    def result(self) -> preemption_types.Plan | preemption_types.NoPlan:
        """The cheapest plan that was found."""
        guesses = self._greedy_guesses()
        if guesses and not any(guess.is_complete or self._is_possible(guess) for guess in guesses):
            return preemption_types.no_plan(
                preemption_types.NoPlanReason.NOT_HELPFUL, self._all_victims()
            )
        quick = self._greedy_plan(guesses)
        if quick is not None and quick.is_optimal:
            return quick
        return self._search_plan(quick)

    def _all_victims(self) -> list[policy.VictimEligibility]:
        return [
            self._policy.eligibility(victim)
            for victim in self._victims.all_victims(self._request.view).values()
        ]

    def _shape_groups(self) -> Sequence[greedy.Group] | None:
        """Return members with equal device requests, and their sites; None: not known."""
        keys = [claim.key for member in self._request.members for claim in member.open_claims]
        if len({*keys}) < len(keys):
            return None
        by_shape: dict[object, list[int]] = {}
        for index, member in enumerate(self._request.members):
            if member.open_claims:
                by_shape.setdefault(workload_signature.device_signature(member), []).append(index)
        groups: list[greedy.Group] = []
        for members in by_shape.values():
            query = pod_plan.workload_query(
                self._request, self._request.members[members[0]], self._cache.policies
            )
            sites = query and greedy.find_sites(
                self._request, query, self._victims, self._cache.blockers, self._budget
            )
            if not sites:
                return None
            groups.append(greedy.Group(len(members), sites))
        return groups or None

    def _greedy_guesses(self) -> list[greedy.Guess]:
        """Return the guess of each domain, cheapest first."""
        groups = self._groups or []
        costs = greedy.VictimCosts(self._policy, groups)
        guesses = [
            greedy.guess_victims(domain, groups, costs, self._policy)
            for domain in self._domains
            if groups
        ]
        return sorted(guesses, key=lambda guess: (guess.minimum_cost, guess.domain.path))

    def _is_possible(self, guess: greedy.Guess) -> bool:
        """Return whether a domain without guess may suffice; False is certain."""
        if guess.is_bound or self._groups is None:
            return self._groups is None
        return greedy.is_possible(guess.domain, self._groups, self._policy)

    def _greedy_plan(self, guesses: Sequence[greedy.Guess]) -> preemption_types.Plan | None:
        """Return the plan of the cheapest devices' victims; None if it fails."""
        full = [guess for guess in guesses if guess.is_complete]
        for guess in full:
            leaving = [self._policy.eligibility(each) for each in guess.chosen.values()]
            if not self._policy.may_evict(leaving):
                continue
            self._budget.spend(_PLACEMENT_STEPS * len(self._request.members))
            placement = self._place_without(leaving, guess.devices_by_node)
            if placement is None and not self._has_single_shape:
                placement = self._place_without(leaving)
            if placement is not None:
                price = preemption_types.cost_number(*preemption_types.plan_cost(leaving))
                least = all(each.is_bound for each in guesses) and price <= full[0].minimum_cost
                return _build_plan(self._request, leaving, placement, least=least)
        return None

    @property
    def _has_single_shape(self) -> bool:
        """Return whether all members have equal device requests, and some."""
        groups = self._groups or ()
        return len(groups) == 1 and groups[0].count == len(self._request.members)

    def _search_plan(
        self, quick: preemption_types.Plan | None
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        every = self._all_victims()
        may = sorted(
            (candidate for candidate in every if self._may_evict(candidate)),
            key=lambda candidate: candidate.rank,
        )
        capacity = _ShapeCapacity(self._request, self._victims, may, self._budget)
        search = _VictimSets(self._request, self._policy, capacity, may, self._cache.fills)
        found_set = search.plan_victims(quick) if quick else search.find_any(self._budget)
        if len(may) <= _EXHAUSTIVE_LIMIT:
            found_set, is_known = search.find_cheapest(found_set, self._budget)
        else:
            is_known = not self._budget.is_spent and found_set is None
        if found_set is None:
            return preemption_types.no_plan(
                preemption_types.NoPlanReason.NOT_HELPFUL
                if is_known
                else preemption_types.NoPlanReason.BUDGET_EXCEEDED,
                every,
            )
        leaving = [may[index] for index in sorted(found_set.victims)]
        if is_known:
            return _build_plan(self._request, leaving, found_set.placement, least=True)
        return self._minimize(leaving, found_set.placement)

    def _may_evict(self, candidate: policy.VictimEligibility) -> bool:
        """Return whether a victim is eligible, and not part of the preemptor."""
        own_uids = self._request.uids
        return candidate.ineligible is None and all(
            each.pod.uid not in own_uids for each in candidate.victim.pods
        )

    def _minimize(
        self, leaving: Sequence[policy.VictimEligibility], placement: gang_types.GangPlacement
    ) -> preemption_types.Plan:
        """Return the plan without victims that may stay after all, costliest first."""
        remaining, tries = [*leaving], 0
        for candidate in sorted(leaving, key=lambda candidate: candidate.rank, reverse=True):
            without = [other for other in remaining if other is not candidate]
            keys = {other.victim.key for other in without}
            if self._groups and not greedy.may_be_enough(self._groups, self._domains, keys):
                continue
            again = self._place_without(without) if tries < _MAX_TRIES else None
            tries += 1
            if again is not None:
                remaining, placement = without, again
        return _build_plan(self._request, remaining, placement, least=False)

    def _place_without(
        self,
        leaving: Sequence[policy.VictimEligibility],
        only: Collection[ids.NodeName] | None = None,
    ) -> gang_types.GangPlacement | None:
        return _place_without(self._request, leaving, self._cache.fills, only)


class _NodeSubset(snapshot_overlay.SnapshotOverlay):
    """Snapshot of some of the nodes."""

    def __init__(self, below: snapshot.Snapshot, names: Collection[ids.NodeName]) -> None:
        super().__init__(below)
        self._nodes = {name: node for name, node in below.nodes.items() if name in names}

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """The selected nodes."""
        return self._nodes


def _place_without(
    request: preemption_types.PreemptionRequest,
    leaving: Sequence[policy.VictimEligibility],
    fill_cache: tentative.FillCache,
    only: Collection[ids.NodeName] | None = None,
) -> gang_types.GangPlacement | None:
    """Return the placement of all on some nodes without these; None if one does not fit."""
    holders = [holder for each in leaving for holder in each.victim.pods]
    view: snapshot.Snapshot = without_pods.WithoutPods(request.view, holders)
    view = view if only is None else _NodeSubset(view, only)
    result = gang_placement.place_gang(
        request.members, view, request.topology_request, request.allocator_settings, fill_cache
    )
    return result if isinstance(result, gang_types.GangPlacement) else None


def _build_plan(
    request: preemption_types.PreemptionRequest,
    leaving: Sequence[policy.VictimEligibility],
    placement: gang_types.GangPlacement,
    *,
    least: bool,
) -> preemption_types.Plan:
    ordered = sorted(leaving, key=lambda candidate: (candidate.victim.name, candidate.victim.key))
    return preemption_types.Plan(
        tuple(ordered), preemption_types.member_order(request, placement), least
    )


class _VictimSets:
    """Sets of eligible victims, by index."""

    def __init__(
        self,
        request: preemption_types.PreemptionRequest,
        eviction_policy: policy.PreemptionPolicy,
        capacity: "_ShapeCapacity",
        may: Sequence[policy.VictimEligibility],
        fill_cache: tentative.FillCache,
    ) -> None:
        self._fills = fill_cache
        self._request = request
        self._policy = eviction_policy
        self._capacity = capacity
        self._evictable = may

    def plan_victims(self, plan: preemption_types.Plan) -> _GangVictims | None:
        """Return the victims of a plan."""
        places = {candidate.victim.key: index for index, candidate in enumerate(self._evictable)}
        gone = frozenset(places[candidate.victim.key] for candidate in plan.victims)
        return _GangVictims(gone, gang_types.GangPlacement(plan.members, ()))

    def find_any(self, budget: step_budget.StepBudget) -> _GangVictims | None:
        """Return all that may be evicted together but those that may stay, costliest first."""
        gone: subsets.Members = frozenset()
        everyone = frozenset(range(len(self._evictable)))
        if self._policy.may_evict(self._evictable):
            gone = everyone
        for index in sorted(everyone - gone):
            if self._policy.may_evict(self._members(gone | {index})):
                gone |= {index}
        if not self._capacity.may_fit(gone):
            return None
        for index in sorted(gone, reverse=True):
            if budget.is_spent:
                break
            if self._capacity.may_fit(gone - {index}):
                gone -= {index}
        return self._try_set(gone, budget)

    def find_cheapest(
        self, some: _GangVictims | None, budget: step_budget.StepBudget
    ) -> tuple[_GangVictims | None, bool]:
        """Return the cheapest set, and whether none is cheaper."""
        letters = subsets.Generators([frozenset([index]) for index in range(len(self._evictable))])
        candidate_sets = subsets.CheapestSets(letters, self._rank)
        under = None if some is None else self._rank(some.victims)
        for removed in candidate_sets:
            if budget.is_spent:
                return some, False
            if under is not None and self._rank(removed) >= under:
                return some, True
            budget.spend(step_budget.CHECK_STEPS)
            if not self._policy.may_evict(self._members(removed)):
                candidate_sets.exclude_supersets(removed)
                continue
            result = self._try_set(removed, budget) if self._capacity.may_fit(removed) else None
            if result is not None:
                return result, True
        return some, True

    def _try_set(
        self, gone: subsets.Members, budget: step_budget.StepBudget
    ) -> _GangVictims | None:
        budget.spend(_PLACEMENT_STEPS * len(self._request.members))
        placement = _place_without(self._request, self._members(gone), self._fills)
        return None if placement is None else _GangVictims(gone, placement)

    def _members(self, gone: Collection[int]) -> list[policy.VictimEligibility]:
        return [self._evictable[index] for index in sorted(gone)]

    def _rank(self, gone: subsets.Members) -> subsets.Rank:
        candidates = self._members(gone)
        return preemption_types.plan_cost(candidates), tuple(
            sorted(candidate.victim.name for candidate in candidates)
        )


class _ShapeCapacity:
    """Members of each shape that nodes take without some victims."""

    def __init__(
        self,
        request: preemption_types.PreemptionRequest,
        victim_index: victims.VictimIndex,
        evictable: Sequence[policy.VictimEligibility],
        budget: step_budget.StepBudget,
    ) -> None:
        self._request = request
        self._evictable = evictable
        self._budget = budget
        places = {victim.victim.key: index for index, victim in enumerate(evictable)}
        self._node_victims: dict[ids.NodeName, subsets.Members] = {
            name: frozenset(
                places[victim.key]
                for victim in victim_index.node_victims(request.view, node)
                if victim.key in places
            )
            for name, node in request.view.nodes.items()
        }
        self._groups = tentative.TentativeState(
            request.view, request.members, request.allocator_settings
        ).groups(range(len(request.members)))
        chart = topology.build_domains(request.view, request.topology_request)
        self._domains = [*chart.cluster.domains_at(request.topology_request.required_depth)]
        self._counts: dict[tuple[ids.NodeName, subsets.Members], tuple[int, ...]] = {}

    def may_fit(self, gone: subsets.Members) -> bool:
        """Return whether a domain has room for all members of each shape, taken for itself."""
        return any(self._may_fit_in(domain, gone) for domain in self._domains)

    def _may_fit_in(self, domain: topology.Domain, removed: subsets.Members) -> bool:
        counts = [
            self._member_counts(name, removed & self._node_victims[name]) for name in domain.nodes
        ]
        totals = [sum(of_shape) for of_shape in zip(*counts, strict=True)]
        return bool(totals) and all(
            count >= len(members) for count, members in zip(totals, self._groups, strict=True)
        )

    def _member_counts(self, name: ids.NodeName, gone: subsets.Members) -> tuple[int, ...]:
        key = (name, gone)
        if key not in self._counts:
            self._budget.spend(step_budget.EVALUATE_STEPS)
            leaving = [group for index in gone for group in self._evictable[index].victim.pods]
            without = without_pods.WithoutPods(self._request.view, leaving)
            filling = tentative.TentativeState(
                without, self._request.members, self._request.allocator_settings
            )
            self._counts[key] = tuple(
                filling.node_fill(group, name).count for group in self._groups
            )
        return self._counts[key]
