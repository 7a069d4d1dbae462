"""Filters that look beyond the node, for one pod: InterPodAffinity and PodTopologySpread. Pure.

A result depends on pods of other nodes, so it is never cached with the node's own.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from driver import ids, reasons
from driver.resources.core import interpod_affinity, nodes, pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import inter_pod_affinity, pod_topology_spread
from driver.scheduling.allocator.node_filter.volumes import volume_restrictions
from driver.scheduling.snapshot import placed_pods, pods_overlay, snapshot


@dataclass(frozen=True, slots=True)
class DomainFilterState:
    """The states of both plugins, computed before they filter."""

    view: snapshot.Snapshot
    pod: pods.Pod
    spread: pod_topology_spread.State | None = None
    affinity: inter_pod_affinity.State | None = None
    claim_in_use: str = ""

    @property
    def without_spread(self) -> "DomainFilterState":
        """The state without topology spread, which later pods may still change."""
        return replace(self, spread=None)

    def rejection(self, node: nodes.Node) -> allocator_types.NodeRejection | None:
        """Return why the node does not fit; both with and without the pods nominated to it."""
        if self.claim_in_use:
            return allocator_types.NodeRejection(
                reasons.Reason.NODE_VOLUME_IN_USE, self.claim_in_use
            )
        own_rejection = _rejection(node, self.spread, self.affinity)
        nominated = nominated_first(self.view, node.name, self.pod)
        if own_rejection is not None or not nominated:
            return own_rejection
        spread = self.spread.with_pods(nominated, node) if self.spread else None
        affinity = self.affinity.with_pods(nominated, node) if self.affinity else None
        return _rejection(node, spread, affinity)


def _rejection(
    node: nodes.Node,
    spread: pod_topology_spread.State | None,
    affinity: inter_pod_affinity.State | None,
) -> allocator_types.NodeRejection | None:
    uneven = spread.rejection(node) if spread is not None else ""
    if uneven:
        return allocator_types.NodeRejection(reasons.Reason.NODE_TOPOLOGY_SPREAD, uneven)
    objection = affinity.rejection(node) if affinity is not None else None
    return None if objection is None else allocator_types.NodeRejection(*objection)


def is_self_limiting(pod: pods.Pod) -> bool:
    """Return whether pods like this one may exclude each other from a node."""
    terms = pod.pod_affinity
    if not pod.spread_constraints and terms is interpod_affinity.NONE:
        return False
    spread = any(constraint.required for constraint in pod.spread_constraints)
    return bool(terms.required or terms.anti or spread)


def is_relevant(view: snapshot.Snapshot, pod: pods.Pod) -> bool:
    """Return whether pods of other nodes may decide about a node for this one."""
    return is_self_limiting(pod) or bool(pod.volume_claims) or view.population.has_anti_affinity


def pod_signature(
    view: snapshot.Snapshot,
    pod: pods.Pod,
    joining: Iterable[interpod_affinity.Term] = (),
) -> Hashable:
    """Return a value equal for pods that neither placed nor nominated pods distinguish.

    `joining` are anti-affinity terms of pods that may be placed meanwhile. Labels themselves are
    left out: those of indexed pods are all different.
    """
    placed = view.population
    labels = placed.namespaces.get(pod.namespace, {})
    terms = {*_anti_affinity_terms(placed, pod.namespace), *joining}
    matched = frozenset(term for term in terms if term.matches(pod.namespace, pod.labels, labels))
    return matched, nominated_key(placed, pod)


def _anti_affinity_terms(
    placed: placed_pods.Population, namespace: str
) -> frozenset[interpod_affinity.Term]:
    """The anti-affinity terms of placed pods that reach a namespace."""
    if not placed.has_anti_affinity:
        return frozenset()
    labels = placed.namespaces.get(namespace, {})

    def collect() -> frozenset[interpod_affinity.Term]:
        terms = (term for kind, _ in placed.anti_affinity_kinds() for term in kind.affinity.anti)
        return frozenset(term for term in terms if term.reaches(namespace, labels))

    return placed.cached(("objecting", namespace), collect)


def nominated_key(placed: placed_pods.Population, pod: pods.Pod) -> Hashable:
    """Return a value equal for pods that yield to the same nominated pods; None without any."""
    if not placed.has_nominated:
        return None
    # A nominated pod does not yield to itself, so it shares no result with other pods.
    return pod.priority, pod.uid if pod.nominated else None


def prefilter(
    view: snapshot.Snapshot, workload: allocator_types.Workload
) -> DomainFilterState | None:
    """Return the state, computed once for pods that no filter distinguishes; None if not needed."""
    pod = workload.pod
    if not is_relevant(view, pod):
        return None
    placed = view.population
    own = _own_node(view, workload)
    key = _key(view, pod, own)
    computed: DomainFilterState | None = placed.cached(key, lambda: _compute(view, pod, own))
    return computed


def _compute(
    view: snapshot.Snapshot, pod: pods.Pod, own: ids.NodeName | None
) -> DomainFilterState | None:
    placed: placed_pods.Population = view.population
    if own is not None:
        placed = pods_overlay.PopulationOverlay(placed, [(view.pods_on(own)[pod.key], own)])
    spread = pod_topology_spread.State.prefilter(pod, placed)
    affinity = inter_pod_affinity.State.prefilter(pod, placed)
    claimed = volume_restrictions.exclusive_claim_in_use(view.storage, placed, pod)
    if spread is None and affinity is None and not claimed:
        return None
    return DomainFilterState(view, pod, spread, affinity, claimed)


def _key(view: snapshot.Snapshot, pod: pods.Pod, own: ids.NodeName | None) -> Hashable:
    constrained = bool(pod.spread_constraints)
    return (
        placed_pods.pod_kind_key(pod),
        pod.spread_constraints,
        (frozenset(pod.node_selector.items()), pod.affinity) if constrained else None,
        tuple((t.key, t.operator, t.value, t.effect) for t in pod.tolerations)
        if constrained
        else None,
        nominated_key(view.population, pod),
        (pod.volume_claims, view.storage.revision) if pod.volume_claims else None,
        pod.uid if own is not None else None,
    )


def _own_node(view: snapshot.Snapshot, workload: allocator_types.Workload) -> ids.NodeName | None:
    """Return the node that an allocated claim pins the pod to: it does not conflict with itself."""
    for claim in workload.allocated_claims:
        name = snapshot.pinned_node(claim)
        if name is not None and workload.pod.key in view.pods_on(name):
            return name
    return None


def nominated_first(
    view: snapshot.Snapshot, name: ids.NodeName, pod: pods.Pod
) -> Sequence[pods.Pod]:
    """Return the pods nominated to a node that come first (RunFilterPluginsWithNominatedPods)."""
    return [
        other
        for other in view.population.nominated_pods(name)
        if other.priority >= pod.priority and other.uid != pod.uid
    ]
