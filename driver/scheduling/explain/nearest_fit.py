"""Nearest fit of an unschedulable workload: the node, what it lacks, and the blocking pods. Pure.

Its steps are bounded, whatever the size of the cluster: without `is_exhaustive` nodes were left
out, and another node may be nearer.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import ids, reasons
from driver.resources.core import nodes
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.results import node_result
from driver.scheduling.explain import (
    cost,
    holders,
    shortage,
    step_budget,
    victim_search,
    without_pods,
)
from driver.scheduling.snapshot import snapshot

MAX_STEPS = 800
"""Step budget; a step is about 20 us."""
_EMPTY_SHARE = 3
"""At most a third of the budget is spent on empty nodes."""


@dataclass(frozen=True, slots=True)
class NearestFit:
    """The nearest fit. For `leaving` see `victim_search.VictimSet`.

    `can_ever_fit` is False if no node would fit even when empty; then `gap` is the shortage of the
    largest node. None: not known, the steps ended. `leaving` are the pods whose eviction would make
    room, by `namespace/name`; () if there is no such set, or none was found. `is_only_node`: no
    other node counts, for the pod is bound to this one.
    """

    node: ids.NodeName
    gap: shortage.Gap | None
    can_ever_fit: bool | None = True
    leaving: tuple[ids.Key, ...] = ()
    is_optimal: bool = False
    is_exhaustive: bool = True
    is_only_node: bool = False


def find_nearest_fit(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    refused: allocator_types.Unschedulable,
    holder_index: holders.HolderIndex,
    allocator_settings: settings.Settings,
    budget: step_budget.StepBudget,
) -> NearestFit | None:
    """Return the nearest fit; None if no node lacks room alone: the rejections say it all.

    None too if a cordon is in the way: uncordoned devices would fit.
    """
    # No policies: only feasibility matters.
    query = step_budget.workload_query(
        view, workload, replace(allocator_settings, policy_chain=ranking.PolicyChain(()))
    )
    rejected_nodes = [
        view.nodes[name] for name in _ordered_nodes(view, refused) if name in view.nodes
    ]
    if query is None or not rejected_nodes:
        return None
    empty_budget = step_budget.StepBudget(budget.limit // _EMPTY_SHARE)
    empty_cluster = _EmptyCluster(view, query, empty_budget)
    fitting_nodes = [node for node in rejected_nodes if empty_cluster.can_fit(node) is not False]
    budget.spend(empty_budget.steps)
    if not fitting_nodes:
        return None if _is_cordoned(refused) else empty_cluster.nearest()
    search = victim_search.Search(view, query, cost.FewestPods(view), budget)
    best = victim_search.find_best(
        search, ((node, _evictable(holder_index, node)) for node in fitting_nodes)
    )
    if best.victims is not None and not best.victims.victims:
        return None  # it fits already
    node = fitting_nodes[0] if best.victims is None else view.nodes[best.victims.node]
    return NearestFit(
        node=node.name,
        gap=shortage.find_gap(view, query, node),
        can_ever_fit=empty_cluster.can_fit(node),
        leaving=best.victims.names if best.victims else (),
        is_optimal=best.victims is not None and best.victims.is_optimal and best.is_exhaustive,
        is_exhaustive=best.is_exhaustive,
    )


def _is_cordoned(refused: allocator_types.Unschedulable) -> bool:
    """Return whether a node would have enough, used or not, without its device cordons."""
    return any(map(_would_fit_uncordoned, refused.rejections))


def _would_fit_uncordoned(rejection: allocator_types.NodeRejection) -> bool:
    counted = dict(rejection.device_reasons)
    others = sum(counted.values()) - counted.get(reasons.Reason.SELECTOR_MISMATCH, 0)
    cordoned = reasons.Reason.DEVICE_CORDONED in counted
    return cordoned and rejection.fits + others >= rejection.requested


def _evictable(holder_index: holders.HolderIndex, node: nodes.Node) -> list[holders.DeviceHolder]:
    """Return the pods whose eviction frees anything."""
    return [
        holder
        for holder in holder_index.node_holders(node.name)
        if not holders.returns_to_node(holder.pod)
    ]


class _EmptyCluster:
    """Results of nodes as if they were empty; of equivalent nodes one is evaluated."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        query: step_budget.WorkloadQuery,
        budget: step_budget.StepBudget,
    ) -> None:
        self._view = without_pods.EmptyClusterView(view)
        self._query = query
        self._budget = budget
        self._by_kind: dict[Hashable, bool] = {}
        self._gaps: list[shortage.Gap | None] = []
        self._rejected: list[ids.NodeName] = []

    def can_fit(self, node: nodes.Node) -> bool | None:
        """Return whether a node would fit; None if the steps ended before that was known."""
        kind = self._kind(node)
        if kind not in self._by_kind:
            if self._budget.is_spent:
                return None
            self._budget.spend(step_budget.EVALUATE_STEPS)
            self._by_kind[kind] = isinstance(
                self._query.evaluate(self._view, node), node_result.Fit
            )
            if not self._by_kind[kind]:
                self._rejected.append(node.name)
                self._gaps.append(shortage.find_gap(self._view, self._query, node))
        return self._by_kind[kind]

    def nearest(self) -> NearestFit:
        """Return the nearest fit if no node would fit."""
        gap = shortage.largest_gap(self._gaps)
        return NearestFit(self._rejected[0] if gap is None else gap.node, gap, can_ever_fit=False)

    def _kind(self, node: nodes.Node) -> Hashable:
        signatures = tuple(
            (share.pool.signature, share.problem) for share in self._view.reachable_pools(node.name)
        )
        if any(signature is None for signature, _ in signatures):
            return node.name
        return signatures, tuple(sorted(node.allocatable.items()))


def _ordered_nodes(
    view: snapshot.Snapshot, refused: allocator_types.Unschedulable
) -> list[ids.NodeName]:
    """Return the nodes that lack room alone, smallest shortage first.

    Alternately a node that lacks devices and a node that is full otherwise.
    """
    of_devices: list[tuple[int, int, ids.NodeName]] = []
    of_room: list[tuple[int, int, ids.NodeName]] = []
    for rejection, names in refused.rejections.items():
        if rejection.node_reason is None:
            lacking = rejection.requested - rejection.fits
            of_devices += ((lacking, _pod_count(view, name), name) for name in names)
        elif rejection.node_reason in victim_search.EVICTION_CURABLE:
            of_room += ((0, _pod_count(view, name), name) for name in names)
    return [*_alternate(sorted(of_devices), sorted(of_room))]


def _pod_count(view: snapshot.Snapshot, name: ids.NodeName) -> int:
    use: Mapping[ids.NodeName, snapshot.NodeUsage] = view.usage
    return use[name].pod_count if name in use else 0


def _alternate(
    *ranked: Sequence[tuple[int, int, ids.NodeName]],
) -> Iterator[ids.NodeName]:
    for position in range(max(map(len, ranked))):
        yield from (entries[position][2] for entries in ranked if position < len(entries))
