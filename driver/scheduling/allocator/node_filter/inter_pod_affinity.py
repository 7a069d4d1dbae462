"""InterPodAffinity: required affinity and anti-affinity between pods, in both directions. Pure.

A `State` is what the plugin computes before it filters: by the label and its value on a node, how
many pods there match. It is computed once a decision.
"""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from driver import ids, reasons
from driver.resources.core import interpod_affinity, nodes, pods
from driver.scheduling.snapshot import placed_pods

Domain = tuple[str, str]
"""A label's key and value."""
Nodes = Mapping[ids.NodeName, nodes.Node]
_NO_LABELS: Mapping[str, str] = {}


class State:
    """Counts for a pod. A `rejection` holds for the pods that were counted."""

    def __init__(self, pod: pods.Pod, placed: placed_pods.Population) -> None:
        self._pod = pod
        self._terms = pod.pod_affinity
        self._placed = placed
        self._affinity: Counter[Domain] = Counter()
        self._anti_affinity: Counter[Domain] = Counter()
        self._existing_anti: Counter[Domain] = Counter()

    @classmethod
    def prefilter(cls, pod: pods.Pod, placed: placed_pods.Population) -> "State | None":
        """Return the state before filtering; None if the plugin is skipped (PreFilter's Skip)."""
        key = "company", placed_pods.pod_kind_key(pod)
        state = placed.counts(key, functools.partial(cls._count_placed, pod)).copy()
        return None if state.is_skipped else state

    @property
    def is_skipped(self) -> bool:
        """True where neither the pod's terms nor those of placed pods can refuse a node."""
        own = self._terms.required or self._terms.anti
        return not own and not any(number > 0 for number in self._existing_anti.values())

    @classmethod
    def _count_placed(cls, pod: pods.Pod, placed: placed_pods.Population) -> "State":
        state, by_name = cls(pod, placed), placed.cluster_nodes
        for kind, counts in placed.anti_affinity_kinds():
            state._add_existing_anti(kind, by_name, counts)
        if state._terms.required or state._terms.anti:
            for kind, counts in _reachable_kinds(state._terms, placed):
                state._add_own(kind, by_name, counts)
        return state

    def add(self, kind: placed_pods.PodKind, node: ids.NodeName, number: int) -> None:
        """Add pods of a kind on a node of the cluster; a negative number removes them."""
        self.add_counts(kind, self._placed.cluster_nodes, {node: number})

    def copy(self) -> "State":
        """Return an independent copy."""
        state = State(self._pod, self._placed)
        state._affinity, state._anti_affinity = (
            Counter(self._affinity),
            Counter(self._anti_affinity),
        )
        state._existing_anti = Counter(self._existing_anti)
        return state

    def with_pods(self, more: Sequence[pods.Pod], node: nodes.Node) -> "State":
        """Return the state with more pods on a node (AddPod)."""
        state = self.copy()
        for pod in more:
            state.add_counts(placed_pods.pod_kind(pod), {node.name: node}, {node.name: 1})
        return state

    def add_counts(
        self, kind: placed_pods.PodKind, by_name: Nodes, counts: Mapping[ids.NodeName, int]
    ) -> None:
        """Add pods of a kind on some nodes; negative numbers remove them."""
        self._add_existing_anti(kind, by_name, counts)
        self._add_own(kind, by_name, counts)

    def rejection(self, node: nodes.Node) -> tuple[reasons.Reason, str] | None:
        """Return why the pod and those of the node's domains cannot be together."""
        lacking = self._missing_affinity(node)
        if lacking:
            return reasons.Reason.NODE_POD_AFFINITY, lacking
        for term in self._terms.anti:
            value = node.labels.get(term.topology_key)
            if value is not None and self._anti_affinity[term.topology_key, value] > 0:
                detail = f"pod anti-affinity by {term.topology_key}"
                return reasons.Reason.NODE_POD_ANTI_AFFINITY, detail
        if self._existing_anti:
            for domain in node.labels.items():
                if self._existing_anti[domain] > 0:
                    detail = f"the anti-affinity of a placed pod, by {domain[0]}"
                    return reasons.Reason.NODE_POD_ANTI_AFFINITY, detail
        return None

    def _missing_affinity(self, node: nodes.Node) -> str:
        alone = ""
        for term in self._terms.required:
            value = node.labels.get(term.topology_key)
            if value is None:
                return f"pod affinity by {term.topology_key}, a label that the node lacks"
            if self._affinity[term.topology_key, value] <= 0:
                alone = alone or f"pod affinity by {term.topology_key}"
        # The first of a group of pods with mutual affinity may go to any node.
        if (
            alone
            and not any(number > 0 for number in self._affinity.values())
            and self._matches_itself()
        ):
            return ""
        return alone

    def _matches_itself(self) -> bool:
        return all(
            term_selects(term, self._pod.namespace, self._pod.labels, self._placed)
            for term in self._terms.required
        )

    def _add_existing_anti(
        self, kind: placed_pods.PodKind, by_name: Nodes, counts: Mapping[ids.NodeName, int]
    ) -> None:
        labels = self._placed.namespaces.get(self._pod.namespace, _NO_LABELS)
        for term in kind.affinity.anti:
            if term.matches(self._pod.namespace, self._pod.labels, labels):
                add_domain_counts(self._existing_anti, term.topology_key, by_name, counts)

    def _add_own(
        self, kind: placed_pods.PodKind, by_name: Nodes, counts: Mapping[ids.NodeName, int]
    ) -> None:
        required = self._terms.required
        if required and all(
            term_selects(term, kind.namespace, kind.labels, self._placed) for term in required
        ):
            for term in required:
                add_domain_counts(self._affinity, term.topology_key, by_name, counts)
        for term in self._terms.anti:
            if term_selects(term, kind.namespace, kind.labels, self._placed):
                add_domain_counts(self._anti_affinity, term.topology_key, by_name, counts)


def term_selects(
    term: interpod_affinity.Term,
    namespace: str,
    labels: Mapping[str, str],
    placed: placed_pods.Population,
) -> bool:
    """Return whether a term of a pod that is placed now selects a pod.

    Its namespaceSelector chooses among the existing namespaces, unless it is empty.
    """
    if term.selector is None:
        return False
    if namespace not in term.namespaces:
        chosen = term.namespace_selector
        if chosen is None:
            return False
        if not chosen.is_empty:
            own = placed.namespaces.get(namespace)
            if own is None or not chosen.matches(own):
                return False
    return term.selector.matches(labels)


def _reachable_kinds(
    terms: interpod_affinity.PodAffinity, placed: placed_pods.Population
) -> Iterator[placed_pods.KindCounts]:
    """Yield the kinds of pods that required terms may select."""
    every = (*terms.required, *terms.anti)
    if any(term.namespace_selector is not None for term in every):
        yield from placed.kind_counts()
        return
    for namespace in sorted({name for term in every for name in term.namespaces}):
        yield from placed.kind_counts(namespace)


def add_domain_counts(
    counter: Counter[Domain],
    key: str,
    by_name: Nodes,
    counts: Mapping[ids.NodeName, int],
    weight: int = 1,
) -> None:
    """Add the pods of nodes to the domains of a label key, times their weight."""
    for name, number in counts.items():
        node = by_name.get(name)
        value = node.labels.get(key) if node is not None else None
        if value is not None:
            counter[key, value] += number * weight
