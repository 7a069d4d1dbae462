"""Preferences of a pod among nodes that our policies score equally. Pure.

The scores of kube-scheduler's plugins TaintToleration, NodeAffinity, PodTopologySpread and
InterPodAffinity, each normalized to whole numbers from 0 to 100 over the remaining nodes, by its
default weights; `make filters` compares them with the plugins'. They are computed for the nodes
that are equal otherwise, where kube-scheduler scores every node that fits, together with scores
that do not come from the pod's own fields (free CPU and memory, images, default constraints).
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources.core import interpod_affinity, nodes, pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import (
    inter_pod_affinity,
    node_affinity,
    pod_topology_spread,
    taint_toleration,
)
from driver.scheduling.snapshot import placed_pods, snapshot

_MAX_SCORE = 100
_HARD_WEIGHT = 1
"""Weight of a placed pod's required affinity (hardPodAffinityWeight)."""
_WEIGHTS = {"taints": 3, "labels": 2, "spread": 2, "company": 2}


@dataclass(frozen=True, slots=True)
class PodPreferences:
    """Preferences of one pod in one snapshot, among nodes that are equal otherwise."""

    view: snapshot.Snapshot
    pod: pods.Pod

    def best_node(self, names: Sequence[ids.NodeName]) -> ids.NodeName:
        """Return the node of the highest score; of equals the lowest name."""
        scores = self.scores(names)
        return min(names, key=lambda name: (-scores[name], name))

    def scores(self, names: Sequence[ids.NodeName]) -> Mapping[ids.NodeName, int]:
        """Return the weighted scores of nodes among each other."""
        candidates = [self.view.nodes[name] for name in names]
        parts = {
            "taints": _invert_scores(
                self._node_counts(candidates, taint_toleration.count_soft_taints)
            ),
            "labels": _scale_to_max(self._node_counts(candidates, node_affinity.score)),
            "spread": _spread_scores(_spread_counts(self.pod, candidates, self.view.population)),
            "company": _scale_between(
                _affinity_weights(self.pod, candidates, self.view.population)
            ),
        }
        return {
            name: sum(_WEIGHTS[part] * scores[index] for part, scores in parts.items())
            for index, name in enumerate(names)
        }

    def _node_counts(
        self, candidates: Sequence[nodes.Node], count: Callable[[nodes.Node, pods.Pod], int]
    ) -> list[int]:
        return [count(node, self.pod) for node in candidates]


def pod_preferences(
    view: snapshot.Snapshot, workload: allocator_types.Workload
) -> PodPreferences | None:
    """Return the preferences of a workload's pod; None if neither it nor placed pods have any."""
    pod, placed = workload.pod, view.population
    terms = pod.pod_affinity
    plain = (
        not pod.spread_constraints and not pod.node_preferences and terms is interpod_affinity.NONE
    )
    if plain and not placed.has_soft_taints and not placed.affects_scores:
        return None
    has_preferences = pod.node_preferences or terms.preferred or terms.preferred_anti
    has_soft_spread = any(not constraint.required for constraint in pod.spread_constraints)
    if not (has_preferences or has_soft_spread or placed.has_soft_taints or placed.affects_scores):
        return None
    return PodPreferences(view, pod)


def _scale_to_max(scores: Sequence[int]) -> list[int]:
    """Return fractions of the highest (DefaultNormalizeScore)."""
    most = max(scores, default=0)
    return [_MAX_SCORE * score // most if most else 0 for score in scores]


def _invert_scores(scores: Sequence[int]) -> list[int]:
    return [_MAX_SCORE - score for score in _scale_to_max(scores)]


def _scale_between(scores: Sequence[int]) -> list[int]:
    """Normalize from the lowest to the highest; float64 rounds down as kube-scheduler's does."""
    least, most = min(scores, default=0), max(scores, default=0)
    if most == least:
        return [0 for _ in scores]
    return [int(_MAX_SCORE * ((score - least) / (most - least))) for score in scores]


def _spread_scores(scores: Sequence[int | None]) -> list[int]:
    """Return normalized spread scores, lower counts first; 0 for a node without all labels."""
    counted = [score for score in scores if score is not None]
    least, most = min(counted, default=0), max(counted, default=0)
    return [_spread_score(score, least, most) for score in scores]


def _spread_score(score: int | None, least: int, most: int) -> int:
    if score is None:
        return 0
    return _MAX_SCORE * (most + least - score) // most if most else _MAX_SCORE


def _spread_counts(
    pod: pods.Pod, candidates: Sequence[nodes.Node], placed: placed_pods.Population
) -> list[int | None]:
    """Return the number of pods in the domains of each node, by ScheduleAnyway constraints."""
    constraints = [constraint for constraint in pod.spread_constraints if not constraint.required]
    keys = {constraint.topology_key for constraint in constraints}
    counted = [node for node in candidates if all(key in node.labels for key in keys)]
    scores: dict[ids.NodeName, float] = dict.fromkeys((node.name for node in counted), 0.0)
    for constraint in constraints:
        counts = pod_topology_spread.domain_counts(pod, constraint, constraints, placed)
        domains = {node.labels[constraint.topology_key] for node in counted}
        weight = math.log(len(domains) + 2)
        for node in counted:
            matching = counts[node.labels[constraint.topology_key]]
            scores[node.name] += matching * weight + (constraint.max_skew - 1)
    # Half a pod rounds up (math.Round).
    rounded = {name: math.floor(score + 0.5) for name, score in scores.items()}
    return [rounded.get(node.name) for node in candidates]


def _affinity_weights(
    pod: pods.Pod, candidates: Sequence[nodes.Node], placed: placed_pods.Population
) -> list[int]:
    """Return the weights of preferred terms that hold on each node, the pod's and others'."""
    weights: Counter[inter_pod_affinity.Domain] = Counter()
    labels_of = placed.namespaces.get(pod.namespace, {})
    for kind, counts in placed.kind_counts() if _weighted_terms(pod.pod_affinity, 0) else ():
        for weight, term in _weighted_terms(pod.pod_affinity, 0):
            if inter_pod_affinity.term_selects(term, kind.namespace, kind.labels, placed):
                _add_term_weight(weights, term, placed, counts, weight)
    for kind, counts in placed.scoring_kinds():
        for weight, term in _weighted_terms(kind.affinity, _HARD_WEIGHT):
            if term.matches(pod.namespace, pod.labels, labels_of):
                _add_term_weight(weights, term, placed, counts, weight)
    return [sum(weights[domain] for domain in node.labels.items()) for node in candidates]


def _weighted_terms(
    terms: interpod_affinity.PodAffinity, hard: int
) -> list[tuple[int, interpod_affinity.Term]]:
    """Return preferred terms by weight, and the required ones if they have any."""
    return [
        *((hard, term) for term in terms.required if hard),
        *((preference.weight, preference.term) for preference in terms.preferred),
        *((-preference.weight, preference.term) for preference in terms.preferred_anti),
    ]


def _add_term_weight(
    weights: Counter[inter_pod_affinity.Domain],
    term: interpod_affinity.Term,
    placed: placed_pods.Population,
    counts: Mapping[ids.NodeName, int],
    weight: int,
) -> None:
    candidates = placed.cluster_nodes
    inter_pod_affinity.add_domain_counts(weights, term.topology_key, candidates, counts, weight)
