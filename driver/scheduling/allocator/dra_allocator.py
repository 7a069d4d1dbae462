"""allocate: values in, a Placement or a NoFit out. Pure; `commit` is the only mutation (D4)."""

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
"""Shapes of workloads of which it is remembered what nodes answered."""
_MAX_SCORED_NODES = 3
"""Nodes that a decision tells of, the best ones."""
_MAX_RESULTS = 1 << 19
"""Of all nodes to all shapes: what is remembered is bounded, whatever the cluster's size."""


class Allocator:
    """Chooses a node and devices. It remembers what nodes answered: that changes no answer."""

    def __init__(self, deciding: settings.Settings) -> None:
        self._settings = deciding
        self._rankings: OrderedDict[Hashable, node_ranking.NodeRanking] = OrderedDict()
        self._results: result_cache.ResultCache | None = None
        self._capacities = node_capacity.NodeCapacityCache()
        self._policies = policy_selector.PolicySelector(deciding.policy_chain)

    @property
    def cached_shapes(self) -> int:
        """Of how many shapes of workloads it remembers the answers."""
        return len(self._rankings)

    def decide(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> allocator_types.Placement | allocator_types.Unschedulable:
        """A node with devices for a pod's open claims."""
        wants = requests.parse_requests(view, workload.open_claims)
        if isinstance(wants, allocator_types.Unschedulable):
            return wants
        judge = self._policies.select(view, wants)
        if isinstance(judge, allocator_types.Unschedulable):
            return judge
        found = self._ranking(view, workload, judge)
        if self._capacities.refresh(view) or self._results is None:
            self._results = result_cache.ResultCache(view)
        deciding = replace(self._settings, policy_chain=judge)
        verdicts = deciding.rules.for_workload(view, workload)
        question = node_result.NodeQuery(
            view, self._capacities, workload, wants, deciding, verdicts
        )
        alike = not node_signature.depends_on_uuids(view, workload.open_claims, wants)
        told = (
            self._results.get(workload_signature.device_signature(workload), judge)
            if alike
            else None
        )
        found.refresh(view, lambda name: node_result.evaluate(question, view.nodes[name], told))
        beyond = None if workload.is_bound else domain_filters.prefilter(view, workload)
        refused = None if beyond is None else lambda name: beyond.rejection(view.nodes[name])
        best = found.best(_MAX_SCORED_NODES, workload.avoided_nodes, refused)
        if not best:
            return allocator_types.Unschedulable(
                rejections={**found.rejections(), **_excluded_nodes(workload, found, refused)}
            )
        wishes = node_score.pod_preferences(view, workload)
        if wishes is not None:
            equals = found.tied(best, workload.avoided_nodes, refused)
            best = _preferred(found, best, wishes.best_node(equals))
        name, fit = best[0]
        picks = node_result.assignments(question, view.nodes[name], fit)
        why = _explain_choice(judge, *(one for _, one in best[:2]))
        considered = tuple(_scored_node(judge, *one) for one in best)
        return allocator_types.Placement(name, picks, why, fit.steps, considered)

    def _ranking(
        self,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
        judge: ranking.PolicyChain,
    ) -> node_ranking.NodeRanking:
        """Workloads that no node can tell apart share a board."""
        if workload.allocated_claims:
            return node_ranking.NodeRanking()
        most = max(_MAX_RESULTS // max(len(view.nodes), 1), _MIN_RANKINGS)
        most = min(most, _MAX_RANKINGS)
        key = (
            workload_signature.single_node_signature(workload),
            judge,
            _cross_node_key(view, workload.pod),
        )
        return _get_cached(self._rankings, key, node_ranking.NodeRanking, most)


def _preferred(
    answered: node_ranking.NodeRanking,
    best: Sequence[tuple[ids.NodeName, node_result.Fit]],
    name: ids.NodeName,
) -> list[tuple[ids.NodeName, node_result.Fit]]:
    """The best nodes with one before the others."""
    rest = [ranked for ranked in best if ranked[0] != name]
    return [(name, answered.fit(name)), *rest][:_MAX_SCORED_NODES]


def _cross_node_key(view: snapshot.Snapshot, pod: pods.Pod) -> Hashable:
    """The state beyond nodes and shapes that a node's answer depends on."""
    volumes = view.storage.revision if pod.volume_claims else None
    return volumes, domain_filters.nominated_key(view.population, pod)


def _get_cached(
    known: OrderedDict[Hashable, T], key: Hashable, make: Callable[[], T], most: int
) -> T:
    """The value of a key, made where there is none; the keys used last stay."""
    found = known.get(key)
    if found is None:
        found = known[key] = make()
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
    return found


def allocate(
    view: snapshot.Snapshot, workload: allocator_types.Workload, deciding: settings.Settings
) -> allocator_types.Placement | allocator_types.Unschedulable:
    """Choose a node and devices for a pod's open claims, without remembering anything."""
    return Allocator(deciding).decide(view, workload)


def _scored_node(
    judge: ranking.PolicyChain, name: ids.NodeName, fit: node_result.Fit
) -> allocator_types.ScoredNode:
    preferred, memory, *_ = fit.rank_key
    return allocator_types.ScoredNode(name, judge.scores_by_name(fit.scores), preferred, memory)


def _explain_choice(
    judge: ranking.PolicyChain, fit: node_result.Fit, rival: node_result.Fit | None = None
) -> str:
    """Why a node was preferred to the next best one."""
    if rival is not None and fit.memory < rival.memory:
        return f"{quantities.of_bytes(fit.memory).text} of GPU memory, the least that does"
    return judge.explain_choice(fit.candidate, fit.scores, rival.scores if rival else None)


def _excluded_nodes(
    workload: allocator_types.Workload,
    answered: node_ranking.NodeRanking,
    refused: node_ranking.RejectNode | None,
) -> dict[allocator_types.NodeRejection, Sequence[ids.NodeName]]:
    """Nodes that would do by themselves, but are avoided, or refused for what others have."""
    out: dict[allocator_types.NodeRejection, list[ids.NodeName]] = {}
    for name in answered.feasible_nodes:
        words = workload.avoided_nodes.get(name)
        refusal = refused(name) if refused is not None else None
        if words is not None:
            refusal = allocator_types.NodeRejection(reasons.Reason.NODE_BACKED_OFF, words)
        if refusal is not None:
            out.setdefault(refusal, []).append(name)
    return dict(out)
