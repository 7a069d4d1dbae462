"""PodTopologySpread: constraints DoNotSchedule, by domains of node labels. Pure.

A `State` is what the plugin computes before it filters: for each constraint how many matching pods
each eligible domain has. It is computed once a decision; which nodes are eligible, once for nodes
as they are.
"""

import functools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from driver import ids
from driver.resources.core import label_selectors, nodes, pods, topology_spread
from driver.scheduling.allocator.node_filter import node_affinity, taint_toleration
from driver.scheduling.snapshot import placed_pods

Nodes = Mapping[ids.NodeName, nodes.Node]
Eligible = Mapping[ids.NodeName, str]
"""Domain of each eligible node."""


class State:
    """Counts for a pod, one counter per constraint."""

    def __init__(
        self,
        pod: pods.Pod,
        constraints: Sequence[topology_spread.Constraint],
        counts: Sequence[Counter[str]],
    ) -> None:
        self._pod = pod
        self._constraints = constraints
        self._counts = counts
        self._minimums = [
            min(count.values(), default=0) if len(count) >= constraint.min_domains else 0
            for constraint, count in zip(constraints, counts, strict=True)
        ]

    @classmethod
    def prefilter(cls, pod: pods.Pod, placed: placed_pods.Population) -> "State | None":
        """Return the state before filtering; None for a pod without such constraints."""
        constraints = [constraint for constraint in pod.spread_constraints if constraint.required]
        if not constraints:
            return None
        counts = [domain_counts(pod, constraint, constraints, placed) for constraint in constraints]
        return cls(pod, constraints, counts)

    def with_pods(self, more: Sequence[pods.Pod], node: nodes.Node) -> "State":
        """Return the state with more pods on a node (AddPod): terminating ones count as well."""
        counts = [Counter(count) for count in self._counts]
        alone = {node.name: node}
        for constraint, count in zip(self._constraints, counts, strict=True):
            domains = _eligible_nodes(self._pod, constraint, self._constraints, alone)
            for pod in more:
                same = pod.namespace == self._pod.namespace
                if same and domains and constraint.selects(pod.labels):
                    count[domains[node.name]] += 1
        return State(self._pod, self._constraints, counts)

    def rejection(self, node: nodes.Node) -> str:
        """Return the first constraint that the pod would break there, in words; "" for none."""
        for constraint, count, least in zip(
            self._constraints, self._counts, self._minimums, strict=True
        ):
            key = constraint.topology_key
            domain = node.labels.get(key)
            if domain is None:
                return f"spread over {key}, a label that the node lacks"
            matching = count.get(domain, 0)
            own = int(constraint.selects(self._pod.labels))
            if matching + own - least > constraint.max_skew:
                return (
                    f"spread over {key}: {matching} in {domain}, {least} in the least, "
                    f"maxSkew {constraint.max_skew}"
                )
        return ""


def _eligibility_key(
    pod: pods.Pod,
    constraint: topology_spread.Constraint,
    every: Sequence[topology_spread.Constraint],
) -> Hashable:
    """Return a key that is equal where the same nodes are eligible."""
    return (
        constraint.topology_key,
        tuple(other.topology_key for other in every),
        (frozenset(pod.node_selector.items()), pod.affinity) if constraint.honors_affinity else (),
        tuple((t.key, t.operator, t.value, t.effect) for t in pod.tolerations)
        if constraint.honors_taints
        else None,
    )


def _eligible_nodes(
    pod: pods.Pod,
    constraint: topology_spread.Constraint,
    every: Sequence[topology_spread.Constraint],
    by_name: Nodes,
) -> Eligible:
    """Return nodes with the keys of all constraints that this one's inclusion policies admit."""
    keys = {other.topology_key for other in every}
    eligible = {}
    for name, node in by_name.items():
        if not all(key in node.labels for key in keys):
            continue
        if constraint.honors_affinity and not node_affinity.matches(node, pod):
            continue
        if constraint.honors_taints and taint_toleration.rejection(node, pod):
            continue
        eligible[name] = node.labels[constraint.topology_key]
    return eligible


def domain_counts(
    pod: pods.Pod,
    constraint: topology_spread.Constraint,
    every: Sequence[topology_spread.Constraint],
    placed: placed_pods.Population,
) -> Counter[str]:
    """Return the number of pods that a constraint matches per eligible domain."""
    key = "spread", pod.namespace, constraint.selector, _eligibility_key(pod, constraint, every)
    make = functools.partial(_matching_pods, pod, constraint, every)
    return Counter(placed.counts(key, make).domains)


def _matching_pods(
    pod: pods.Pod,
    constraint: topology_spread.Constraint,
    every: Sequence[topology_spread.Constraint],
    placed: placed_pods.Population,
) -> "MatchingPods":
    make = functools.partial(_eligible_nodes, pod, constraint, every, placed.cluster_nodes)
    eligible = placed.cached_by_nodes(_eligibility_key(pod, constraint, every), make)
    matching = MatchingPods(pod.namespace, constraint.selector, eligible)
    for kind, members in placed.kind_counts(pod.namespace):
        matching.add_counts(kind, members)
    return matching


class MatchingPods:
    """Pods of a namespace and a selector, by eligible domain."""

    def __init__(
        self,
        namespace: str,
        selector: label_selectors.LabelSelector | None,
        eligible: Eligible,
        domains: Mapping[str, int] | None = None,
    ) -> None:
        self._namespace = namespace
        self._selector = selector
        self._eligible = eligible
        first = dict.fromkeys(eligible.values(), 0) if domains is None else domains
        self.domains = Counter(first)

    def add(self, kind: placed_pods.PodKind, node: ids.NodeName, number: int) -> None:
        """Add pods of a kind on a node of the cluster; a negative number removes them."""
        self.add_counts(kind, {node: number})

    def add_counts(self, kind: placed_pods.PodKind, members: Mapping[ids.NodeName, int]) -> None:
        """Add pods of a kind on some nodes; negative numbers remove them."""
        if not self._is_counted(kind):
            return
        for name, number in members.items():
            domain = self._eligible.get(name)
            if domain is not None:
                self.domains[domain] += number

    def copy(self) -> "MatchingPods":
        """Return an independent copy."""
        return MatchingPods(self._namespace, self._selector, self._eligible, self.domains)

    def _is_counted(self, kind: placed_pods.PodKind) -> bool:
        if kind.namespace != self._namespace or kind.deleting or self._selector is None:
            return False
        # An empty selector matches the pod itself and counts no pods (countPodsMatchSelector).
        return not self._selector.is_empty and self._selector.matches(kind.labels)
