"""DRA allocator: values in, Placement or Unschedulable out. Pure; only `commit` mutates (D4)."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from driver import ids, reasons
from driver.resources import quantities
from driver.resources.core import pods
from driver.scheduling.allocator import node_score, requests, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import node_signature, workload_signature
from driver.scheduling.allocator.node_filter import domain_filters
from driver.scheduling.allocator.policies import policy_selector, ranking
from driver.scheduling.allocator.results import node_ranking, node_result, result_cache
from driver.scheduling.snapshot import snapshot

T = TypeVar("T")
_MIN_RANKINGS, _MAX_RANKINGS = 64, 256
"""Bounds of the number of workload signatures with cached results."""
_MAX_SCORED_NODES = 3
"""Number of best nodes reported with a decision."""
_MAX_RESULTS = 1 << 19
"""Bound of all cached results, whatever the cluster's size."""


class Allocator:
    """Chooses a node and devices. Caches per-node results; caching never changes a decision."""

    def __init__(self, allocator_settings: settings.Settings) -> None:
        self._settings = allocator_settings
        self._rankings: OrderedDict[Hashable, node_ranking.NodeRanking] = OrderedDict()
        self._results: result_cache.ResultCache | None = None
        self._capacities = node_capacity.NodeCapacityCache()
        self._policies = policy_selector.PolicySelector(allocator_settings.policy_chain)

    @property
    def cached_shapes(self) -> int:
        """Number of workload signatures whose results are cached."""
        return len(self._rankings)

    def prepare(self, view: snapshot.Snapshot) -> None:
        """Compute what every decision needs of each node, ahead of the first one."""
        requests.compile_class_selectors(view)
        self._policies.prepare(view)
        self._refresh(view)
        for node in view.nodes.values():
            self._capacities.state(view, node)

    def _refresh(self, view: snapshot.Snapshot) -> result_cache.ResultCache:
        """Drop what is outdated, and return the results that are not."""
        if self._capacities.refresh(view) or self._results is None:
            self._results = result_cache.ResultCache(view)
        self._results.resize(view)
        return self._results

    def decide(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> allocator_types.Placement | allocator_types.Unschedulable:
        """Return a node with devices for a pod's open claims."""
        specs = requests.parse_workload(view, workload)
        if isinstance(specs, allocator_types.Unschedulable):
            return specs
        policy_chain = self._policies.select(view, specs)
        if isinstance(policy_chain, allocator_types.Unschedulable):
            return policy_chain
        node_order = self._ranking(view, workload, policy_chain)
        cache = self._refresh(view)
        allocator_settings = replace(self._settings, policy_chain=policy_chain)
        filters = allocator_settings.rules.for_workload(view, workload)
        query = node_result.NodeQuery(
            view, self._capacities, workload, specs, allocator_settings, filters
        )
        is_cacheable = not node_signature.depends_on_uuids(view, workload.unallocated_claims, specs)
        results = (
            cache.get(workload_signature.device_signature(workload), policy_chain)
            if is_cacheable
            else None
        )
        node_order.refresh(view, result_cache.node_evaluator(query, results))
        domain_state = None if workload.is_bound else domain_filters.prefilter(view, workload)
        reject = (
            None if domain_state is None else lambda name: domain_state.rejection(view.nodes[name])
        )
        best = node_order.best(_MAX_SCORED_NODES, workload.avoided_nodes, reject)
        if not best:
            return allocator_types.Unschedulable(
                rejections={
                    **node_order.rejections(
                        lambda name: node_result.evaluate(query, view.nodes[name])
                    ),
                    **_excluded_nodes(workload, node_order, reject),
                }
            )
        preferences = node_score.pod_preferences(view, workload)
        if preferences is not None:
            equals = node_order.tied(best, workload.avoided_nodes, reject)
            best = _preferred(node_order, best, preferences.best_node(equals))
        name, fit = best[0]
        explanation = _explain_choice(policy_chain, *(fit for _, fit in best[:2]))
        considered = tuple(_scored_node(policy_chain, *fit) for fit in best)
        placement = node_result.placement(query, view.nodes[name], fit, explanation)
        return replace(placement, scored_nodes=considered)

    def _ranking(
        self,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
        policy_chain: ranking.PolicyChain,
    ) -> node_ranking.NodeRanking:
        """Return the node ranking, shared by workloads that no node can distinguish."""
        if workload.allocated_claims:
            return node_ranking.NodeRanking()
        limit = max(_MAX_RESULTS // max(len(view.nodes), 1), _MIN_RANKINGS)
        limit = min(limit, _MAX_RANKINGS)
        key = (
            workload_signature.single_node_signature(workload),
            policy_chain,
            _cross_node_key(view, workload.pod),
        )
        return _get_cached(self._rankings, key, node_ranking.NodeRanking, limit)


def _preferred(
    node_order: node_ranking.NodeRanking,
    best: Sequence[tuple[ids.NodeName, node_result.Fit]],
    name: ids.NodeName,
) -> list[tuple[ids.NodeName, node_result.Fit]]:
    """Return the best nodes with one of them first."""
    rest = [ranked for ranked in best if ranked[0] != name]
    return [(name, node_order.fit(name)), *rest][:_MAX_SCORED_NODES]


def _cross_node_key(view: snapshot.Snapshot, pod: pods.Pod) -> Hashable:
    """Return the state beyond nodes and signatures that a node's result depends on."""
    volumes = view.storage.revision if pod.volume_claims else None
    return volumes, domain_filters.nominated_key(view.population, pod)


def _get_cached(
    cache: OrderedDict[Hashable, T], key: Hashable, make: Callable[[], T], limit: int
) -> T:
    """Return the value of a key, computed if missing; the keys used last are retained."""
    value = cache.get(key)
    if value is None:
        value = cache[key] = make()
    cache.move_to_end(key)
    while len(cache) > limit:
        cache.popitem(last=False)
    return value


def allocate(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    allocator_settings: settings.Settings,
) -> allocator_types.Placement | allocator_types.Unschedulable:
    """Choose a node and devices for a pod's open claims, without a cache."""
    return Allocator(allocator_settings).decide(view, workload)


def _scored_node(
    policy_chain: ranking.PolicyChain, name: ids.NodeName, fit: node_result.Fit
) -> allocator_types.ScoredNode:
    preferred, memory, *_ = fit.rank_key
    return allocator_types.ScoredNode(
        name, policy_chain.scores_by_name(fit.scores), preferred, memory
    )


def _explain_choice(
    policy_chain: ranking.PolicyChain, fit: node_result.Fit, rival: node_result.Fit | None = None
) -> str:
    """Return why a node was preferred to the next best one."""
    if rival is not None and fit.memory < rival.memory:
        return f"{quantities.from_bytes(fit.memory).text} of GPU memory, the least that does"
    return policy_chain.explain_choice(fit.candidate, fit.scores, rival.scores if rival else None)


def _excluded_nodes(
    workload: allocator_types.Workload,
    node_order: node_ranking.NodeRanking,
    reject: node_ranking.RejectNode | None,
) -> dict[allocator_types.NodeRejection, Sequence[ids.NodeName]]:
    """Return nodes that fit by themselves, but are avoided or rejected for other nodes' pods."""
    excluded: dict[allocator_types.NodeRejection, list[ids.NodeName]] = {}
    for name in node_order.feasible_nodes:
        message = workload.avoided_nodes.get(name)
        rejection = reject(name) if reject is not None else None
        if message is not None:
            rejection = allocator_types.NodeRejection(reasons.Reason.NODE_BACKED_OFF, message)
        if rejection is not None:
            excluded.setdefault(rejection, []).append(name)
    return dict(excluded)
