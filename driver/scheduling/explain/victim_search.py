"""Search for victims whose eviction makes a workload fit: on one node, and the best of many. Pure.

Sets of pods are tried in the order of their cost, so the first sufficient one is the cheapest.
Steps are counted: if they end the search, its result is sufficient, but not known to be the
cheapest.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from driver import ids, reasons
from driver.resources.core import nodes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.allocator.node_filter import domain_filters, filters
from driver.scheduling.allocator.results import node_result
from driver.scheduling.explain import blockers, holders, step_budget, subsets, without_pods
from driver.scheduling.explain import cost as explain_cost
from driver.scheduling.snapshot import snapshot

EVICTION_CURABLE = frozenset(
    {
        reasons.Reason.NODE_FULL,
        reasons.Reason.NODE_PORT_TAKEN,
        reasons.Reason.NODE_POD_ANTI_AFFINITY,
        reasons.Reason.NODE_TOPOLOGY_SPREAD,
        reasons.Reason.NODE_VOLUME_IN_USE,
        reasons.Reason.NODE_VOLUME_LIMIT,
    }
)
"""Rejections that evictions may lift."""


@dataclass(frozen=True, slots=True)
class VictimSet:
    """Pods whose eviction makes a node fit, and its result then; none of them may stay.

    `is_optimal`: no other set there costs less. Otherwise the search ended before that was known.
    """

    node: ids.NodeName
    victims: tuple[holders.DeviceHolder, ...]
    cost: explain_cost.Cost
    fit: node_result.Fit
    is_optimal: bool = True

    @property
    def names(self) -> tuple[ids.Key, ...]:
        """`namespace/name` of the pods, in order."""
        return tuple(victim.key for victim in self.victims)


def allow_all(_leaving: Sequence[holders.DeviceHolder]) -> bool:
    """Allow every set."""
    return True


@dataclass(frozen=True, slots=True)
class Search:
    """Snapshot, query, cost function and budget of a search.

    `allows`: whether these holders may be evicted together; then every subset may as well.
    """

    view: snapshot.Snapshot
    query: step_budget.WorkloadQuery
    cost_function: explain_cost.CostFunction
    budget: step_budget.StepBudget
    allows: Callable[[Sequence[holders.DeviceHolder]], bool] = allow_all


def victim_sets(
    search: Search,
    node: nodes.Node,
    node_holders: Sequence[holders.DeviceHolder],
    under: explain_cost.Cost | None = None,
) -> Iterator[VictimSet]:
    """Yield the sufficient sets on a node, cheapest first; all `under` a cost.

    Only sets that the search `allows`, and none contains another. If the steps end before any was
    found, one may follow that is not the cheapest.
    """
    return group_victim_sets(search, node, [(holder,) for holder in node_holders], under)


def group_victim_sets(
    search: Search,
    node: nodes.Node,
    groups: Sequence[holders.HolderGroup],
    under: explain_cost.Cost | None = None,
) -> Iterator[VictimSet]:
    """Yield the sufficient sets of groups: all of a group is evicted, or nothing."""
    uid = search.query.workload.pod.uid
    other_groups = [
        group for group in groups if all(victim_set.pod.uid != uid for victim_set in group)
    ]
    for victim_set in _NodeSearch(search, node, other_groups, under).victim_sets():
        if under is None or victim_set.cost < under:
            yield victim_set


class _NodeSearch:
    def __init__(
        self,
        search: Search,
        node: nodes.Node,
        groups: Sequence[holders.HolderGroup],
        under: explain_cost.Cost | None,
    ) -> None:
        self._search = search
        self._node = node
        self._cost_limit = under
        self._groups = groups
        self._all = frozenset(range(len(self._groups)))
        self._lacks_room = self._rejection(frozenset()) is not None

    def victim_sets(self) -> Iterator[VictimSet]:
        refused = self._rejection(self._all)
        if refused is not None or self._search.budget.is_spent:
            return
        finder = blockers.BlockerFinder(
            self._search.view, self._search.query, self._node, self._groups, self._search.budget
        )
        if not finder.may_fit(self._all):
            return
        yielded: list[subsets.Members] = []
        candidate_sets = subsets.CheapestSets(self._generators(finder), self._rank)
        for members in candidate_sets:
            if self._search.budget.is_spent:
                break
            if self._cost_limit is not None and self._cost(members) >= self._cost_limit:
                return
            if not self._search.allows(self._members(members)):
                candidate_sets.exclude_supersets(members)
                continue
            fit = self._try_set(finder, members)
            if fit is not None:
                yielded.append(members)
                candidate_sets.exclude_supersets(members)
                yield self._victim_set(members, fit, least=True)
        else:
            return
        if not yielded:
            yield from self._any_set(finder)

    def _generators(self, finder: blockers.BlockerFinder) -> subsets.Generators:
        main = finder.candidate_sets()
        if not self._lacks_room:
            return subsets.Generators(main)
        single = [frozenset([index]) for index in range(len(self._groups))]
        return subsets.Generators(
            main,
            single,
            lambda members: self._rejection(members) is not None and finder.may_fit(members),
        )

    def _try_set(
        self, finder: blockers.BlockerFinder, gone: subsets.Members
    ) -> node_result.Fit | None:
        self._search.budget.spend(step_budget.CHECK_STEPS)
        if not finder.may_fit(gone) or self._rejection(gone) is not None:
            return None
        return self._evaluate(gone)

    def _evaluate(self, gone: subsets.Members) -> node_result.Fit | None:
        self._search.budget.spend(step_budget.EVALUATE_STEPS)
        answer = self._search.query.evaluate(self._without(gone), self._node)
        return answer if isinstance(answer, node_result.Fit) else None

    def _any_set(self, finder: blockers.BlockerFinder) -> Iterator[VictimSet]:
        """Yield all evictable groups but those that may stay, costliest first: a quick result."""
        cheap = sorted(self._all, key=lambda index: self._rank(frozenset([index])))
        gone: subsets.Members = frozenset()
        for index in cheap:
            if self._search.allows(self._members(gone | {index})):
                gone |= {index}
        for index in reversed(cheap):
            remaining = gone - {index}
            if finder.may_fit(remaining) and self._rejection(remaining) is None:
                gone = remaining
        fit = self._evaluate(gone) if self._rejection(gone) is None else None
        if fit is not None:
            yield self._victim_set(gone, fit, least=False)

    def _rejection(self, gone: subsets.Members) -> allocator_types.NodeRejection | None:
        return filters.rejection(self._without(gone), self._node, self._search.query.workload)

    def _without(self, gone: subsets.Members) -> snapshot.Snapshot:
        return (
            without_pods.WithoutPods(self._search.view, self._members(gone)) if gone else self._view
        )

    @property
    def _view(self) -> snapshot.Snapshot:
        return self._search.view

    def _members(self, gone: subsets.Members) -> list[holders.DeviceHolder]:
        return [holder for index in sorted(gone) for holder in self._groups[index]]

    def _rank(self, gone: subsets.Members) -> subsets.Rank:
        return self._cost(gone), tuple(holder.key for holder in self._members(gone))

    def _cost(self, gone: subsets.Members) -> explain_cost.Cost:
        return self._search.cost_function.cost(self._members(gone))

    def _victim_set(self, gone: subsets.Members, fit: node_result.Fit, *, least: bool) -> VictimSet:
        victims = tuple(self._members(gone))
        return VictimSet(self._node.name, victims, self._cost(gone), fit, least)


@dataclass(frozen=True, slots=True)
class BestVictims:
    """Cheapest set of all nodes, if any; `is_exhaustive`: no node was left out for its steps."""

    victims: VictimSet | None
    is_exhaustive: bool = True


def find_best(
    search: Search, candidates: Iterable[tuple[nodes.Node, Sequence[holders.DeviceHolder]]]
) -> BestVictims:
    """Return the cheapest set of all nodes; of equals the first one.

    Of equivalent nodes only the first is tried.
    """
    chosen: VictimSet | None = None
    seen: set[Hashable] = set()
    equivalence = _NodeEquivalence(search)
    for node, node_holders in candidates:
        if search.budget.is_spent:
            return BestVictims(chosen, is_exhaustive=False)
        search.budget.spend(step_budget.NODE_STEPS)
        signature = equivalence.signature(node, node_holders)
        if signature is not None and signature in seen:
            continue
        seen.add(signature)
        victim_set = next(
            victim_sets(search, node, node_holders, chosen.cost if chosen else None), None
        )
        chosen = victim_set or chosen
    return BestVictims(chosen, is_exhaustive=not search.budget.is_spent)


class _NodeEquivalence:
    """Equivalence of nodes: the same sets of pods suffice, at the same cost."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._capacities = node_capacity.NodeCapacityCache()
        self._capacities.refresh(search.view)
        query = search.query
        self._is_distinct = node_signature.depends_on_uuids(
            search.view, query.workload.unallocated_claims, query.requests
        )
        # Filters across nodes have a different result on each node.
        self._is_distinct = self._is_distinct or domain_filters.is_relevant(
            search.view, query.workload.pod
        )

    def signature(
        self, node: nodes.Node, node_holders: Sequence[holders.DeviceHolder]
    ) -> Hashable | None:
        """Return the signature of a node; None: equivalent to no other."""
        view = self._search.view
        devices = None if self._is_distinct else self._capacities.signature(view, node)
        if devices is None:
            return None
        refused = filters.rejection(view, node, self._search.query.workload)
        reason = refused.node_reason if refused else None
        use = view.usage.get(node.name, snapshot.NodeUsage())
        return (
            devices,
            reason,
            tuple(sorted(node.allocatable.items())),
            tuple(sorted(use.requests.items())),
            use.ports,
            use.pod_count,
            frozenset(_multiset(self._holder_signature(holder) for holder in node_holders)),
        )

    def _holder_signature(self, holder: holders.DeviceHolder) -> Hashable:
        held = sorted(
            (result.device.device, sorted((key, n.nanos) for key, n in result.consumed.items()))
            for held_claim in holder.claims
            for result in held_claim.results
        )
        requests = (
            holder.pod.namespace,
            tuple(sorted(holder.pod.requests.items())),
            holder.pod.host_ports,
        )
        return repr(held), requests, self._search.cost_function.signature(holder)


def _multiset(items: Iterable[Hashable]) -> Iterable[tuple[Hashable, int]]:
    counts: dict[Hashable, int] = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return counts.items()
