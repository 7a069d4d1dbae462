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

ROOM = frozenset(
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
class Freed:
    """Pods without which a node does, and what it gives then; none of them may stay.

    `least`: no other set there costs less. Otherwise the search ended before that was known.
    """

    node: ids.NodeName
    leaving: tuple[holders.Tenant, ...]
    cost: explain_cost.Cost
    fit: node_result.Fit
    least: bool = True

    @property
    def names(self) -> tuple[ids.Key, ...]:
        """`namespace/name` of the pods, in order."""
        return tuple(one.key for one in self.leaving)


def anyone(_leaving: Sequence[holders.Tenant]) -> bool:
    """Whoever goes, it is allowed."""
    return True


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for, in what, at what price, and for how long.

    `allows`: whether these may go together; if so then some of them as well.
    """

    view: snapshot.Snapshot
    asked: step_budget.Asking
    price: explain_cost.Price
    meter: step_budget.Meter
    allows: Callable[[Sequence[holders.Tenant]], bool] = anyone


def ways(
    search: Search,
    node: nodes.Node,
    there: Sequence[holders.Tenant],
    under: explain_cost.Cost | None = None,
) -> Iterator[Freed]:
    """The sets of tenants whose going would do on a node, the cheapest first; all `under` a cost.

    Only such are told that the search `allows`, and none of them holds another one. Where the steps
    end before any was found, one may follow that is not the cheapest.
    """
    return ways_of_parties(search, node, [(one,) for one in there], under)


def ways_of_parties(
    search: Search,
    node: nodes.Node,
    parties: Sequence[holders.Party],
    under: explain_cost.Cost | None = None,
) -> Iterator[Freed]:
    """The same where tenants go together: of each party all do, or none."""
    uid = search.asked.workload.pod.uid
    there = [party for party in parties if all(one.pod.uid != uid for one in party)]
    for one in _OnNode(search, node, there, under).ways():
        if under is None or one.cost < under:
            yield one


class _OnNode:
    def __init__(
        self,
        search: Search,
        node: nodes.Node,
        there: Sequence[holders.Party],
        under: explain_cost.Cost | None,
    ) -> None:
        self._search = search
        self._node = node
        self._under = under
        self._there = there
        self._everyone = frozenset(range(len(self._there)))
        self._short = self._refusal(frozenset()) is not None

    def ways(self) -> Iterator[Freed]:
        refused = self._refusal(self._everyone)
        if refused is not None or self._search.meter.spent:
            return
        found = blockers.Bars(
            self._search.view, self._search.asked, self._node, self._there, self._search.meter
        )
        if not found.may(self._everyone):
            return
        told: list[subsets.Members] = []
        looked_at = subsets.Sets(self._letters(found), self._rank)
        for gone in looked_at:
            if self._search.meter.spent:
                break
            if self._under is not None and self._cost(gone) >= self._under:
                return
            if not self._search.allows(self._members(gone)):
                looked_at.done(gone)
                continue
            answer = self._tried(found, gone)
            if answer is not None:
                told.append(gone)
                looked_at.done(gone)
                yield self._freed(gone, answer, least=True)
        else:
            return
        if not told:
            yield from self._some(found)

    def _letters(self, found: blockers.Bars) -> subsets.Letters:
        main = found.letters()
        if not self._short:
            return subsets.Letters(main)
        single = [frozenset([at]) for at in range(len(self._there))]
        return subsets.Letters(
            main, single, lambda gone: self._refusal(gone) is not None and found.may(gone)
        )

    def _tried(self, found: blockers.Bars, gone: subsets.Members) -> node_result.Fit | None:
        self._search.meter.count(step_budget.LOOK)
        if not found.may(gone) or self._refusal(gone) is not None:
            return None
        return self._ask(gone)

    def _ask(self, gone: subsets.Members) -> node_result.Fit | None:
        self._search.meter.count(step_budget.ASK)
        answer = self._search.asked.answer(self._without(gone), self._node)
        return answer if isinstance(answer, node_result.Fit) else None

    def _some(self, found: blockers.Bars) -> Iterator[Freed]:
        """All who may go but who may stay, the dearest first: a set found in few steps."""
        cheap = sorted(self._everyone, key=lambda at: self._rank(frozenset([at])))
        gone: subsets.Members = frozenset()
        for at in cheap:
            if self._search.allows(self._members(gone | {at})):
                gone |= {at}
        for at in reversed(cheap):
            fewer = gone - {at}
            if found.may(fewer) and self._refusal(fewer) is None:
                gone = fewer
        answer = self._ask(gone) if self._refusal(gone) is None else None
        if answer is not None:
            yield self._freed(gone, answer, least=False)

    def _refusal(self, gone: subsets.Members) -> allocator_types.NodeRejection | None:
        return filters.rejection(self._without(gone), self._node, self._search.asked.workload)

    def _without(self, gone: subsets.Members) -> snapshot.Snapshot:
        return without_pods.Absence(self._search.view, self._members(gone)) if gone else self._view

    @property
    def _view(self) -> snapshot.Snapshot:
        return self._search.view

    def _members(self, gone: subsets.Members) -> list[holders.Tenant]:
        return [one for at in sorted(gone) for one in self._there[at]]

    def _rank(self, gone: subsets.Members) -> subsets.Rank:
        return self._cost(gone), tuple(one.key for one in self._members(gone))

    def _cost(self, gone: subsets.Members) -> explain_cost.Cost:
        return self._search.price.of(self._members(gone))

    def _freed(self, gone: subsets.Members, answer: node_result.Fit, *, least: bool) -> Freed:
        found = tuple(self._members(gone))
        return Freed(self._node.name, found, self._cost(gone), answer, least)


@dataclass(frozen=True, slots=True)
class Best:
    """The cheapest of all nodes, if any; `all_seen`: no node was left out for want of steps."""

    freed: Freed | None
    all_seen: bool = True


def best(search: Search, found: Iterable[tuple[nodes.Node, Sequence[holders.Tenant]]]) -> Best:
    """Of nodes with their tenants, that on which it costs least; of equals the first one.

    Of nodes that are alike only the first is tried.
    """
    chosen: Freed | None = None
    seen: set[Hashable] = set()
    alike = _Likeness(search)
    for node, there in found:
        if search.meter.spent:
            return Best(chosen, all_seen=False)
        search.meter.count(step_budget.NODE)
        look = alike.of(node, there)
        if look is not None and look in seen:
            continue
        seen.add(look)
        one = next(ways(search, node, there, chosen.cost if chosen else None), None)
        chosen = one or chosen
    return Best(chosen, all_seen=not search.meter.spent)


class _Likeness:
    """What nodes have in common on which the same sets of pods do, at the same price."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._rooms = node_capacity.NodeCapacityCache()
        self._rooms.refresh(search.view)
        asked = search.asked
        self._apart = node_signature.depends_on_uuids(
            search.view, asked.workload.open_claims, asked.wants
        )
        # What pods of other nodes decide is another thing on each node.
        self._apart = self._apart or domain_filters.is_relevant(search.view, asked.workload.pod)

    def of(self, node: nodes.Node, there: Sequence[holders.Tenant]) -> Hashable | None:
        """None: like no other."""
        view = self._search.view
        devices = None if self._apart else self._rooms.signature(view, node)
        if devices is None:
            return None
        refused = filters.rejection(view, node, self._search.asked.workload)
        reason = refused.node_reason if refused else None
        use = view.usage.get(node.name, snapshot.NodeUsage())
        return (
            devices,
            reason,
            tuple(sorted(node.allocatable.items())),
            tuple(sorted(use.requests.items())),
            use.ports,
            use.pod_count,
            frozenset(_counted(self._tenant(one) for one in there)),
        )

    def _tenant(self, one: holders.Tenant) -> Hashable:
        held = sorted(
            (result.device.device, sorted((key, n.nanos) for key, n in result.consumed.items()))
            for lease in one.leases
            for result in lease.results
        )
        asks = one.pod.namespace, tuple(sorted(one.pod.requests.items())), one.pod.host_ports
        return repr(held), asks, self._search.price.look(one)


def _counted(found: Iterable[Hashable]) -> Iterable[tuple[Hashable, int]]:
    counts: dict[Hashable, int] = {}
    for one in found:
        counts[one] = counts.get(one, 0) + 1
    return counts.items()
