"""A plan for a gang: all of it, or nothing. Pure.

First those in the way of the cheapest devices are tried (`hasty`): often nothing can cost less.
Where something might, and those who may go are few, sets are tried in the order of what they cost
until the steps end. How many members a node takes is counted for each node by itself, as seating
counts it: only sets that leave room enough are tried.
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
"""Steps of asking for a seat."""
_EXHAUSTIVE_LIMIT = 16
"""Units of which all sets may be tried."""
_MAX_TRIES = 32
"""Seatings to find out who may stay after all."""


@dataclass(frozen=True, slots=True)
class _GangVictims:
    """Units without which all have seats, called by their places. `least`: none cost less."""

    victims: subsets.Members
    placement: gang_types.GangPlacement
    is_optimal: bool = False


class PlanCache:
    """What is remembered from plan to plan, of one view that changes."""

    def __init__(self, deciding: settings.Settings) -> None:
        self.blockers = lower_bounds.NodeCostsCache()
        self.policies = policy_selector.PolicySelector(deciding.policy_chain)
        self.fills = tentative.FillCache()


class Search:
    """For a gang that fits nowhere as it is. Units that may go stand in the order of their cost."""

    def __init__(
        self,
        ask: preemption_types.PreemptionRequest,
        right: policy.PreemptionPolicy,
        book: victims.VictimIndex,
        known: PlanCache,
        meter: step_budget.StepBudget,
    ) -> None:
        self._request = ask
        self._policy = right
        self._victims = book
        self._cache = known
        self._budget = meter
        chart = topology.build_domains(ask.view, ask.topology_request)
        self._domains = [*chart.cluster.domains_at(ask.topology_request.required_depth)]
        self._groups = self._shape_groups()

    def result(self) -> preemption_types.Plan | preemption_types.NoPlan:
        """The cheapest plan that was found."""
        guesses = self._greedy_guesses()
        if guesses and not any(one.is_complete or self._is_possible(one) for one in guesses):
            return preemption_types.no_plan(
                preemption_types.NoPlanReason.NOT_HELPFUL, self._all_victims()
            )
        quick = self._greedy_plan(guesses)
        if quick is not None and quick.is_optimal:
            return quick
        return self._search_plan(quick)

    def _all_victims(self) -> list[policy.VictimEligibility]:
        return [
            self._policy.eligibility(one)
            for one in self._victims.all_victims(self._request.view).values()
        ]

    def _shape_groups(self) -> Sequence[greedy.Group] | None:
        """Members that ask for the same devices, and where they may be; None: not known."""
        keys = [claim.key for one in self._request.members for claim in one.open_claims]
        if len({*keys}) < len(keys):
            return None
        found: dict[object, list[int]] = {}
        for at, one in enumerate(self._request.members):
            if one.open_claims:
                found.setdefault(workload_signature.device_signature(one), []).append(at)
        made: list[greedy.Group] = []
        for members in found.values():
            asked = pod_plan.workload_query(
                self._request, self._request.members[members[0]], self._cache.policies
            )
            sites = asked and greedy.find_sites(
                self._request, asked, self._victims, self._cache.blockers, self._budget
            )
            if not sites:
                return None
            made.append(greedy.Group(len(members), sites))
        return made or None

    def _greedy_guesses(self) -> list[greedy.Guess]:
        """Of each domain, the cheapest first."""
        groups = self._groups or []
        costs = greedy.VictimCosts(self._policy, groups)
        found = [
            greedy.guess_victims(domain, groups, costs, self._policy)
            for domain in self._domains
            if groups
        ]
        return sorted(found, key=lambda one: (one.minimum_cost, one.domain.path))

    def _is_possible(self, one: greedy.Guess) -> bool:
        """Whether something may do in a domain though no guess was made; False is certain."""
        if one.is_bound or self._groups is None:
            return self._groups is None
        return greedy.is_possible(one.domain, self._groups, self._policy)

    def _greedy_plan(self, guesses: Sequence[greedy.Guess]) -> preemption_types.Plan | None:
        """A plan of who is in the way of the cheapest devices."""
        full = [one for one in guesses if one.is_complete]
        for one in full:
            leaving = [self._policy.eligibility(each) for each in one.chosen.values()]
            if not self._policy.may_evict(leaving):
                continue
            self._budget.spend(_PLACEMENT_STEPS * len(self._request.members))
            seated = self._place_without(leaving, one.devices_by_node)
            if seated is None and not self._has_single_shape:
                seated = self._place_without(leaving)
            if seated is not None:
                price = preemption_types.cost_number(*preemption_types.plan_cost(leaving))
                least = all(each.is_bound for each in guesses) and price <= full[0].minimum_cost
                return _build_plan(self._request, leaving, seated, least=least)
        return None

    @property
    def _has_single_shape(self) -> bool:
        """Whether all members ask for the same devices, and for some."""
        groups = self._groups or ()
        return len(groups) == 1 and groups[0].count == len(self._request.members)

    def _search_plan(
        self, quick: preemption_types.Plan | None
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        every = self._all_victims()
        may = sorted((one for one in every if self._may_evict(one)), key=lambda one: one.rank)
        room = _ShapeCapacity(self._request, self._victims, may, self._budget)
        search = _VictimSets(self._request, self._policy, room, may, self._cache.fills)
        some = search.plan_victims(quick) if quick else search.find_any(self._budget)
        if len(may) <= _EXHAUSTIVE_LIMIT:
            some, known = search.find_cheapest(some, self._budget)
        else:
            known = not self._budget.is_spent and some is None
        if some is None:
            return preemption_types.no_plan(
                preemption_types.NoPlanReason.NOT_HELPFUL
                if known
                else preemption_types.NoPlanReason.BUDGET_EXCEEDED,
                every,
            )
        leaving = [may[at] for at in sorted(some.victims)]
        if known:
            return _build_plan(self._request, leaving, some.placement, least=True)
        return self._minimize(leaving, some.placement)

    def _may_evict(self, one: policy.VictimEligibility) -> bool:
        """Whether a unit may go, and is not part of who waits."""
        mine = self._request.uids
        return one.ineligible is None and all(each.pod.uid not in mine for each in one.victim.pods)

    def _minimize(
        self, leaving: Sequence[policy.VictimEligibility], seated: gang_types.GangPlacement
    ) -> preemption_types.Plan:
        """Without those who may stay after all, the dearest first."""
        found, tries = [*leaving], 0
        for one in sorted(leaving, key=lambda one: one.rank, reverse=True):
            rest = [other for other in found if other is not one]
            keys = {other.victim.key for other in rest}
            if self._groups and not greedy.may_be_enough(self._groups, self._domains, keys):
                continue
            again = self._place_without(rest) if tries < _MAX_TRIES else None
            tries += 1
            if again is not None:
                found, seated = rest, again
        return _build_plan(self._request, found, seated, least=False)

    def _place_without(
        self,
        leaving: Sequence[policy.VictimEligibility],
        only: Collection[ids.NodeName] | None = None,
    ) -> gang_types.GangPlacement | None:
        return _place_without(self._request, leaving, self._cache.fills, only)


class _NodeSubset(snapshot_overlay.SnapshotOverlay):
    """A view of some of the nodes."""

    def __init__(self, below: snapshot.Snapshot, names: Collection[ids.NodeName]) -> None:
        super().__init__(below)
        self._nodes = {name: node for name, node in below.nodes.items() if name in names}

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Those."""
        return self._nodes


def _place_without(
    ask: preemption_types.PreemptionRequest,
    leaving: Sequence[policy.VictimEligibility],
    told: tentative.FillCache,
    only: Collection[ids.NodeName] | None = None,
) -> gang_types.GangPlacement | None:
    """The seats of all, on some nodes only, once these are gone; None where not all have one."""
    people = [one for each in leaving for one in each.victim.pods]
    view: snapshot.Snapshot = without_pods.WithoutPods(ask.view, people)
    view = view if only is None else _NodeSubset(view, only)
    found = gang_placement.place_gang(
        ask.members, view, ask.topology_request, ask.allocator_settings, told
    )
    return found if isinstance(found, gang_types.GangPlacement) else None


def _build_plan(
    ask: preemption_types.PreemptionRequest,
    leaving: Sequence[policy.VictimEligibility],
    seated: gang_types.GangPlacement,
    *,
    least: bool,
) -> preemption_types.Plan:
    found = sorted(leaving, key=lambda one: (one.victim.name, one.victim.key))
    return preemption_types.Plan(tuple(found), preemption_types.member_order(ask, seated), least)


class _VictimSets:
    """Sets of those that may go, who are called by their places."""

    def __init__(
        self,
        ask: preemption_types.PreemptionRequest,
        right: policy.PreemptionPolicy,
        room: "_ShapeCapacity",
        may: Sequence[policy.VictimEligibility],
        told: tentative.FillCache,
    ) -> None:
        self._fills = told
        self._request = ask
        self._policy = right
        self._capacity = room
        self._evictable = may

    def plan_victims(self, plan: preemption_types.Plan) -> _GangVictims | None:
        """The set of a plan."""
        places = {one.victim.key: at for at, one in enumerate(self._evictable)}
        gone = frozenset(places[one.victim.key] for one in plan.victims)
        return _GangVictims(gone, gang_types.GangPlacement(plan.members, ()))

    def find_any(self, meter: step_budget.StepBudget) -> _GangVictims | None:
        """All who may go together but who may stay, the dearest first."""
        gone: subsets.Members = frozenset()
        everyone = frozenset(range(len(self._evictable)))
        if self._policy.may_evict(self._evictable):
            gone = everyone
        for at in sorted(everyone - gone):
            if self._policy.may_evict(self._members(gone | {at})):
                gone |= {at}
        if not self._capacity.may_fit(gone):
            return None
        for at in sorted(gone, reverse=True):
            if meter.is_spent:
                break
            if self._capacity.may_fit(gone - {at}):
                gone -= {at}
        return self._try_set(gone, meter)

    def find_cheapest(
        self, some: _GangVictims | None, meter: step_budget.StepBudget
    ) -> tuple[_GangVictims | None, bool]:
        """The cheapest, and whether none is cheaper."""
        letters = subsets.Generators([frozenset([at]) for at in range(len(self._evictable))])
        looked_at = subsets.CheapestSets(letters, self._rank)
        under = None if some is None else self._rank(some.victims)
        for gone in looked_at:
            if meter.is_spent:
                return some, False
            if under is not None and self._rank(gone) >= under:
                return some, True
            meter.spend(step_budget.CHECK_STEPS)
            if not self._policy.may_evict(self._members(gone)):
                looked_at.exclude_supersets(gone)
                continue
            found = self._try_set(gone, meter) if self._capacity.may_fit(gone) else None
            if found is not None:
                return found, True
        return some, True

    def _try_set(self, gone: subsets.Members, meter: step_budget.StepBudget) -> _GangVictims | None:
        meter.spend(_PLACEMENT_STEPS * len(self._request.members))
        seated = _place_without(self._request, self._members(gone), self._fills)
        return None if seated is None else _GangVictims(gone, seated)

    def _members(self, gone: Collection[int]) -> list[policy.VictimEligibility]:
        return [self._evictable[at] for at in sorted(gone)]

    def _rank(self, gone: subsets.Members) -> subsets.Rank:
        found = self._members(gone)
        return preemption_types.plan_cost(found), tuple(sorted(one.victim.name for one in found))


class _ShapeCapacity:
    """How many members of each shape nodes take once units are gone."""

    def __init__(
        self,
        ask: preemption_types.PreemptionRequest,
        book: victims.VictimIndex,
        may: Sequence[policy.VictimEligibility],
        meter: step_budget.StepBudget,
    ) -> None:
        self._request = ask
        self._evictable = may
        self._budget = meter
        places = {one.victim.key: at for at, one in enumerate(may)}
        self._node_victims: dict[ids.NodeName, subsets.Members] = {
            name: frozenset(
                places[one.key] for one in book.node_victims(ask.view, node) if one.key in places
            )
            for name, node in ask.view.nodes.items()
        }
        self._groups = tentative.TentativeState(
            ask.view, ask.members, ask.allocator_settings
        ).groups(range(len(ask.members)))
        chart = topology.build_domains(ask.view, ask.topology_request)
        self._domains = [*chart.cluster.domains_at(ask.topology_request.required_depth)]
        self._counts: dict[tuple[ids.NodeName, subsets.Members], tuple[int, ...]] = {}

    def may_fit(self, gone: subsets.Members) -> bool:
        """Whether a domain has room for all members of each shape, taken for itself."""
        return any(self._may_fit_in(domain, gone) for domain in self._domains)

    def _may_fit_in(self, domain: topology.Domain, gone: subsets.Members) -> bool:
        counts = [
            self._member_counts(name, gone & self._node_victims[name]) for name in domain.nodes
        ]
        found = [sum(of_shape) for of_shape in zip(*counts, strict=True)]
        return bool(found) and all(
            count >= len(members) for count, members in zip(found, self._groups, strict=True)
        )

    def _member_counts(self, name: ids.NodeName, gone: subsets.Members) -> tuple[int, ...]:
        key = (name, gone)
        if key not in self._counts:
            self._budget.spend(step_budget.EVALUATE_STEPS)
            leaving = [one for at in gone for one in self._evictable[at].victim.pods]
            without = without_pods.WithoutPods(self._request.view, leaving)
            filling = tentative.TentativeState(
                without, self._request.members, self._request.allocator_settings
            )
            self._counts[key] = tuple(filling.node_fill(one, name).count for one in self._groups)
        return self._counts[key]
