"""Populations with pods added or removed, on other nodes, or without pods. Pure.

The base is never modified.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from driver import ids
from driver.resources.core import nodes, pods
from driver.scheduling.snapshot import placed_pods, topology_counts

T = TypeVar("T")
C = TypeVar("C", bound=topology_counts.Counts)


class PopulationOverlay:
    """Population with pods added to and removed from its base, or on other nodes."""

    def __init__(
        self,
        base: placed_pods.Population,
        removed: Iterable[tuple[pods.Pod, ids.NodeName]] = (),
        by_name: Mapping[ids.NodeName, nodes.Node] | None = None,
    ) -> None:
        self._base = base
        self._nodes = by_name
        self._changes: list[tuple[int, placed_pods.KindCounts]] = []
        self._mounts: list[tuple[tuple[ids.Key, ...], int]] = []
        self._number = 0
        self._steps: list[topology_counts.Step] = []
        self._stacked_counts = topology_counts.StackedCounts()
        self._cache = topology_counts.RevisionCache()
        self._node_cache = topology_counts.RevisionCache()
        for pod, node in removed:
            self._push(pod, node, -1)

    @property
    def revision(self) -> Hashable:
        """Value that identifies the pods on top; the same again once they are popped."""
        return self._base.revision, self._changes[-1][0] if self._changes else 0

    @property
    def cluster_nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node of the cluster."""
        return self._base.cluster_nodes if self._nodes is None else self._nodes

    @property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace."""
        return self._base.namespaces

    def kind_counts(self, namespace: str | None = None) -> Iterator[placed_pods.KindCounts]:
        """The kinds of a namespace, or of all."""
        yield from self._base.kind_counts(namespace)
        for _, (kind, counts) in self._changes:
            if namespace is None or kind.namespace == namespace:
                yield kind, counts

    def anti_affinity_kinds(self) -> Iterator[placed_pods.KindCounts]:
        """The kinds with required anti-affinity."""
        yield from self._base.anti_affinity_kinds()
        yield from (members for _, members in self._changes if members[0].has_anti_affinity)

    def scoring_kinds(self) -> Iterator[placed_pods.KindCounts]:
        """The kinds that count in the scores of others."""
        yield from self._base.scoring_kinds()
        yield from (members for _, members in self._changes if members[0].affects_scores)

    def volume_claim_users(self, claim: ids.Key) -> int:
        """Count how many placed pods mount a PersistentVolumeClaim."""
        more = sum(number for claims, number in self._mounts if claim in claims)
        return self._base.volume_claim_users(claim) + more

    @property
    def has_nominated(self) -> bool:
        """Tell whether any pod is nominated."""
        return self._base.has_nominated

    def nominated_pods(self, node: ids.NodeName) -> Sequence[pods.Pod]:
        """Unbound pods for which room was made on a node, by key."""
        return self._base.nominated_pods(node)

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made once as long as `revision` stays."""
        return self._cache.get(self.revision, key, make)

    def cached_by_nodes(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key that depends on nodes alone, made once for nodes as they are."""
        if self._nodes is None:
            return self._base.cached_by_nodes(key, make)
        return self._node_cache.get(0, key, make)

    def counts(self, key: Hashable, make: Callable[[placed_pods.Population], C]) -> C:
        """Counts of a key, made once and then kept; only a copy of them stays as it is."""
        if self._nodes is not None:
            return make(self)
        below = self._base
        return self._stacked_counts.get(
            key, below.revision, lambda: below.counts(key, make), self._steps
        )

    @property
    def has_anti_affinity(self) -> bool:
        """Tell whether any pod has required anti-affinity."""
        return self._base.has_anti_affinity or any(
            members[0].has_anti_affinity for _, members in self._changes
        )

    @property
    def affects_scores(self) -> bool:
        """Tell whether any pod counts in the scores of others."""
        return self._base.affects_scores or any(
            members[0].affects_scores for _, members in self._changes
        )

    @property
    def has_soft_taints(self) -> bool:
        """Tell whether any node has a taint PreferNoSchedule."""
        return self._base.has_soft_taints

    def push(self, pod: pods.Pod, node: ids.NodeName) -> None:
        """Add a pod, to be removed by `pop`."""
        self._push(pod, node, 1)

    def pop(self) -> None:
        """Remove the pod added last."""
        self._changes.pop()
        self._mounts.pop()
        self._steps.pop()

    def _push(self, pod: pods.Pod, node: ids.NodeName, more: int) -> None:
        self._number += 1
        kind = placed_pods.pod_kind(pod)
        self._changes.append((self._number, (kind, {node: more})))
        self._steps.append((kind, node, more))
        self._mounts.append((placed_pods.shared_claims(pod), more))


class EmptyPopulation(PopulationOverlay):
    """Population without pods, on the nodes and namespaces of its base."""

    @property
    def has_anti_affinity(self) -> bool:
        """False."""
        return False

    @property
    def affects_scores(self) -> bool:
        """False."""
        return False

    def kind_counts(self, _namespace: str | None = None) -> Iterator[placed_pods.KindCounts]:
        """Return nothing."""
        return iter(())

    def anti_affinity_kinds(self) -> Iterator[placed_pods.KindCounts]:
        """Return nothing."""
        return iter(())

    def scoring_kinds(self) -> Iterator[placed_pods.KindCounts]:
        """Return nothing."""
        return iter(())

    def volume_claim_users(self, _claim: ids.Key) -> int:
        """Return 0."""
        return 0

    def counts(self, _key: Hashable, make: Callable[[placed_pods.Population], C]) -> C:
        """Compute the counts; they are not cached."""
        return make(self)

    @property
    def has_nominated(self) -> bool:
        """False."""
        return False

    def nominated_pods(self, _node: ids.NodeName) -> Sequence[pods.Pod]:
        """Return nothing."""
        return ()
