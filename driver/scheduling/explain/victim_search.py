"""Which pods would have to go so that a workload fits: on one node, and on the best of many. Pure.

Sets of pods are tried in the order of what they cost, so the first that does is the cheapest one
there is. Steps are counted: where they end the search, what is told then is told to be a set that
does, not the cheapest one.
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
"""Why a node does not do that pods' going may change."""


@dataclass(frozen=True, slots=True)
class VictimSet:
    """Pods without which a node does, and what it gives then; none of them may stay.

    `least`: no other set there costs less. Otherwise the search ended before that was known.
    """

    node: ids.NodeName
    victims: tuple[holders.DeviceHolder, ...]
    cost: explain_cost.Cost
    fit: node_result.Fit
    is_optimal: bool = True

    @property
    def names(self) -> tuple[ids.Key, ...]:
        """`namespace/name` of the pods, in order."""
        return tuple(one.key for one in self.victims)


def allow_all(_leaving: Sequence[holders.DeviceHolder]) -> bool:
    """Whoever goes, it is allowed."""
    return True


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for, in what, at what price, and for how long.

    `allows`: whether these may go together; if so then some of them as well.
    """

    view: snapshot.Snapshot
    query: step_budget.WorkloadQuery
    cost_function: explain_cost.CostFunction
    budget: step_budget.StepBudget
    allows: Callable[[Sequence[holders.DeviceHolder]], bool] = allow_all


def victim_sets(
    search: Search,
    node: nodes.Node,
    there: Sequence[holders.DeviceHolder],
    under: explain_cost.Cost | None = None,
) -> Iterator[VictimSet]:
    """The sets of tenants whose going would do on a node, the cheapest first; all `under` a cost.

    Only such are told that the search `allows`, and none of them holds another one. Where the steps
    end before any was found, one may follow that is not the cheapest.
    """
    return group_victim_sets(search, node, [(one,) for one in there], under)


def group_victim_sets(
    search: Search,
    node: nodes.Node,
    parties: Sequence[holders.HolderGroup],
    under: explain_cost.Cost | None = None,
) -> Iterator[VictimSet]:
    """The same where tenants go together: of each party all do, or none."""
    uid = search.query.workload.pod.uid
    there = [party for party in parties if all(one.pod.uid != uid for one in party)]
    for one in _NodeSearch(search, node, there, under).victim_sets():
        if under is None or one.cost < under:
            yield one


class _NodeSearch:
    def __init__(
        self,
        search: Search,
        node: nodes.Node,
        there: Sequence[holders.HolderGroup],
        under: explain_cost.Cost | None,
    ) -> None:
        self._search = search
        self._node = node
        self._cost_limit = under
        self._groups = there
        self._all = frozenset(range(len(self._groups)))
        self._lacks_room = self._rejection(frozenset()) is not None

    def victim_sets(self) -> Iterator[VictimSet]:
        refused = self._rejection(self._all)
        if refused is not None or self._search.budget.is_spent:
            return
        found = blockers.BlockerFinder(
            self._search.view, self._search.query, self._node, self._groups, self._search.budget
        )
        if not found.may_fit(self._all):
            return
        told: list[subsets.Members] = []
        looked_at = subsets.CheapestSets(self._generators(found), self._rank)
        for gone in looked_at:
            if self._search.budget.is_spent:
                break
            if self._cost_limit is not None and self._cost(gone) >= self._cost_limit:
                return
            if not self._search.allows(self._members(gone)):
                looked_at.exclude_supersets(gone)
                continue
            answer = self._try_set(found, gone)
            if answer is not None:
                told.append(gone)
                looked_at.exclude_supersets(gone)
                yield self._victim_set(gone, answer, least=True)
        else:
            return
        if not told:
            yield from self._any_set(found)

    def _generators(self, found: blockers.BlockerFinder) -> subsets.Generators:
        main = found.candidate_sets()
        if not self._lacks_room:
            return subsets.Generators(main)
        single = [frozenset([at]) for at in range(len(self._groups))]
        return subsets.Generators(
            main, single, lambda gone: self._rejection(gone) is not None and found.may_fit(gone)
        )

    def _try_set(
        self, found: blockers.BlockerFinder, gone: subsets.Members
    ) -> node_result.Fit | None:
        self._search.budget.spend(step_budget.CHECK_STEPS)
        if not found.may_fit(gone) or self._rejection(gone) is not None:
            return None
        return self._evaluate(gone)

    def _evaluate(self, gone: subsets.Members) -> node_result.Fit | None:
        self._search.budget.spend(step_budget.EVALUATE_STEPS)
        answer = self._search.query.evaluate(self._without(gone), self._node)
        return answer if isinstance(answer, node_result.Fit) else None

    def _any_set(self, found: blockers.BlockerFinder) -> Iterator[VictimSet]:
        """All who may go but who may stay, the dearest first: a set found in few steps."""
        cheap = sorted(self._all, key=lambda at: self._rank(frozenset([at])))
        gone: subsets.Members = frozenset()
        for at in cheap:
            if self._search.allows(self._members(gone | {at})):
                gone |= {at}
        for at in reversed(cheap):
            fewer = gone - {at}
            if found.may_fit(fewer) and self._rejection(fewer) is None:
                gone = fewer
        answer = self._evaluate(gone) if self._rejection(gone) is None else None
        if answer is not None:
            yield self._victim_set(gone, answer, least=False)

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
        return [one for at in sorted(gone) for one in self._groups[at]]

    def _rank(self, gone: subsets.Members) -> subsets.Rank:
        return self._cost(gone), tuple(one.key for one in self._members(gone))

    def _cost(self, gone: subsets.Members) -> explain_cost.Cost:
        return self._search.cost_function.cost(self._members(gone))

    def _victim_set(
        self, gone: subsets.Members, answer: node_result.Fit, *, least: bool
    ) -> VictimSet:
        found = tuple(self._members(gone))
        return VictimSet(self._node.name, found, self._cost(gone), answer, least)


@dataclass(frozen=True, slots=True)
class BestVictims:
    """The cheapest of all nodes, if any; `all_seen`: no node was left out for want of steps."""

    victims: VictimSet | None
    is_exhaustive: bool = True


def find_best(
    search: Search, found: Iterable[tuple[nodes.Node, Sequence[holders.DeviceHolder]]]
) -> BestVictims:
    """Of nodes with their tenants, that on which it costs least; of equals the first one.

    Of nodes that are alike only the first is tried.
    """
    chosen: VictimSet | None = None
    seen: set[Hashable] = set()
    alike = _NodeEquivalence(search)
    for node, there in found:
        if search.budget.is_spent:
            return BestVictims(chosen, is_exhaustive=False)
        search.budget.spend(step_budget.NODE_STEPS)
        look = alike.signature(node, there)
        if look is not None and look in seen:
            continue
        seen.add(look)
        one = next(victim_sets(search, node, there, chosen.cost if chosen else None), None)
        chosen = one or chosen
    return BestVictims(chosen, is_exhaustive=not search.budget.is_spent)


class _NodeEquivalence:
    """What nodes have in common on which the same sets of pods do, at the same price."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._capacities = node_capacity.NodeCapacityCache()
        self._capacities.refresh(search.view)
        asked = search.query
        self._is_distinct = node_signature.depends_on_uuids(
            search.view, asked.workload.open_claims, asked.requests
        )
        # What pods of other nodes decide is another thing on each node.
        self._is_distinct = self._is_distinct or domain_filters.is_relevant(
            search.view, asked.workload.pod
        )

    def signature(self, node: nodes.Node, there: Sequence[holders.DeviceHolder]) -> Hashable | None:
        """None: like no other."""
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
            frozenset(_multiset(self._holder_signature(one) for one in there)),
        )

    def _holder_signature(self, one: holders.DeviceHolder) -> Hashable:
        held = sorted(
            (result.device.device, sorted((key, n.nanos) for key, n in result.consumed.items()))
            for lease in one.claims
            for result in lease.results
        )
        asks = one.pod.namespace, tuple(sorted(one.pod.requests.items())), one.pod.host_ports
        return repr(held), asks, self._search.cost_function.signature(one)


def _multiset(found: Iterable[Hashable]) -> Iterable[tuple[Hashable, int]]:
    counts: dict[Hashable, int] = {}
    for one in found:
        counts[one] = counts.get(one, 0) + 1
    return counts.items()
