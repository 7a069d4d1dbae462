"""Pods of nodes by namespace, labels and affinity terms, maintained incrementally. Pure.

Filters that look beyond a node (InterPodAffinity, PodTopologySpread) count kinds of pods, of which
a cluster has far fewer than pods.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from driver import ids
from driver.resources.core import interpod_affinity, nodes, pods
from driver.scheduling.snapshot import topology_counts

T = TypeVar("T")
C = TypeVar("C", bound=topology_counts.Counts)


@dataclass(frozen=True, slots=True, eq=False)
class PodKind:
    """Pods that no filter distinguishes; `deleting` ones do not count for spreading."""

    namespace: str
    labels: Mapping[str, str]
    deleting: bool
    affinity: interpod_affinity.PodAffinity

    @property
    def has_anti_affinity(self) -> bool:
        """True if such a pod has required anti-affinity."""
        return bool(self.affinity.anti)

    @property
    def affects_scores(self) -> bool:
        """True if such a pod counts in the scores of others (InterPodAffinity)."""
        terms = self.affinity
        return bool(terms.required or terms.preferred or terms.preferred_anti)


KindCounts = tuple[PodKind, Mapping[ids.NodeName, int]]
"""Number of pods of a kind per node; an overlay removes some by negative numbers."""


_Placement = tuple[ids.NodeName, pods.Pod]


class Population(Protocol):
    """The placed pods of a view; of one kind there may be several members, which add up."""

    @property
    def revision(self) -> Hashable:
        """Another value whenever a pod, a namespace or a node changed."""
        ...

    @property
    def cluster_nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node of the cluster, also where a view shows some of them."""
        ...

    @property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace."""
        ...

    def kind_counts(self, namespace: str | None = None) -> Iterable[KindCounts]:
        """The kinds of a namespace, or of all."""
        ...

    def anti_affinity_kinds(self) -> Iterable[KindCounts]:
        """The kinds with required anti-affinity."""
        ...

    def scoring_kinds(self) -> Iterable[KindCounts]:
        """The kinds that count in the scores of others."""
        ...

    def volume_claim_users(self, claim: ids.Key) -> int:
        """Count how many placed pods mount a PersistentVolumeClaim."""
        ...

    @property
    def has_nominated(self) -> bool:
        """Tell whether any pod is nominated."""
        ...

    def nominated_pods(self, node: ids.NodeName) -> Sequence[pods.Pod]:
        """Unbound pods for which room was made on a node, by key."""
        ...

    @property
    def has_anti_affinity(self) -> bool:
        """Tell whether any pod has required anti-affinity."""
        ...

    @property
    def affects_scores(self) -> bool:
        """Tell whether any pod counts in the scores of others."""
        ...

    @property
    def has_soft_taints(self) -> bool:
        """Tell whether any node has a taint PreferNoSchedule."""
        ...

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made once as long as `mark` stays."""
        ...

    def cached_by_nodes(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key that depends on nodes alone, made once for nodes as they are."""
        ...

    def counts(self, key: Hashable, make: Callable[["Population"], C]) -> C:
        """Counts of a key, made once and then kept; only a copy of them stays as it is."""
        ...


class PlacedPods:
    """Implementation fed with every change; `revision` counts them. `by_name` is a live mapping."""

    def __init__(self, by_name: Mapping[ids.NodeName, nodes.Node]) -> None:
        self._nodes = by_name
        self._revision = 0
        self._kinds: dict[Hashable, PodKind] = {}
        self._counts: dict[str, dict[PodKind, dict[ids.NodeName, int]]] = {}
        self._anti_affinity: dict[PodKind, dict[ids.NodeName, int]] = {}
        self._scoring: dict[PodKind, dict[ids.NodeName, int]] = {}
        self._by_pod: dict[ids.Key, tuple[ids.NodeName, PodKind]] = {}
        self._nominated: dict[ids.NodeName, dict[ids.Key, pods.Pod]] = {}
        self._nominations: dict[ids.Key, ids.NodeName] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._pending: dict[ids.Key, _Placement] = {}
        self._special: set[ids.Key] = set()
        self._claim_users: dict[ids.Key, int] = {}
        self._pod_claims: dict[ids.Key, tuple[ids.Key, ...]] = {}
        self._nodes_revision = 0
        self._soft_tainted: set[ids.NodeName] = set()
        self._cache = topology_counts.RevisionCache()
        self._node_cache = topology_counts.RevisionCache()
        self._running_counts = topology_counts.RunningCounts()

    @property
    def revision(self) -> Hashable:
        """Another value whenever a pod, a namespace or a node changed."""
        return self._revision

    @property
    def has_anti_affinity(self) -> bool:
        """Tell whether any pod has required anti-affinity."""
        return bool(self._anti_affinity)

    @property
    def affects_scores(self) -> bool:
        """Tell whether any pod counts in the scores of others."""
        return bool(self._scoring)

    @property
    def has_soft_taints(self) -> bool:
        """Tell whether any node has a taint PreferNoSchedule."""
        return bool(self._soft_tainted)

    @property
    def cluster_nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node of the cluster."""
        return self._nodes

    @property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace."""
        return self._namespaces

    def kind_counts(self, namespace: str | None = None) -> Iterable[KindCounts]:
        """The kinds of a namespace, or of all."""
        self._apply_pending()
        if namespace is not None:
            return self._counts.get(namespace, {}).items()
        return (members for kinds in self._counts.values() for members in kinds.items())

    def anti_affinity_kinds(self) -> Iterable[KindCounts]:
        """The kinds with required anti-affinity."""
        return self._anti_affinity.items()

    def scoring_kinds(self) -> Iterable[KindCounts]:
        """The kinds that count in the scores of others."""
        return self._scoring.items()

    def volume_claim_users(self, claim: ids.Key) -> int:
        """Count how many placed pods mount a PersistentVolumeClaim."""
        return self._claim_users.get(claim, 0)

    @property
    def has_nominated(self) -> bool:
        """Tell whether any pod is nominated."""
        return bool(self._nominated)

    def nominated_pods(self, node: ids.NodeName) -> Sequence[pods.Pod]:
        """Unbound pods for which room was made on a node, by key."""
        if not self._nominated:
            return ()
        return [pod for _, pod in sorted(self._nominated.get(node, {}).items())]

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made once as long as `mark` stays."""
        return self._cache.get(self._revision, key, make)

    def cached_by_nodes(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key that depends on nodes alone, made once for nodes as they are."""
        return self._node_cache.get(self._nodes_revision, key, make)

    def counts(self, key: Hashable, make: Callable[[Population], C]) -> C:
        """Counts of a key, made once and then kept; only a copy of them stays as it is."""
        self._apply_pending()
        return self._running_counts.get(key, lambda: make(self))

    def set_node(self, name: ids.NodeName, node: nodes.Node | None) -> None:
        """Record that a node was set or deleted."""
        self._revision += 1
        self._nodes_revision += 1
        self._running_counts.clear()
        taints = node.taints if node is not None else ()
        if any(taint.effect == nodes.PREFER_NO_SCHEDULE for taint in taints):
            self._soft_tainted.add(name)
        else:
            self._soft_tainted.discard(name)

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Set or delete a namespace's labels; return whether filters see a difference."""
        if self._namespaces.get(name) == labels:
            return False
        self._revision += 1
        self._running_counts.clear()
        if labels is None:
            del self._namespaces[name]
        else:
            self._namespaces[name] = labels
        return True

    def is_nomination(self, key: ids.Key, pod: pods.Pod | None) -> bool:
        """Return whether a pod without a node is nominated to one, or was."""
        return (pod is not None and pod.nominated is not None) or key in self._nominations

    def set_pod(
        self, key: ids.Key, pod: pods.Pod | None, node: ids.NodeName | None
    ) -> list[ids.NodeName]:
        """Set the node of a pod; return the nodes for which it is more than a plain pod.

        Plain pods are counted on the next read: most come and go without one. One that goes does
        not wait for it: it may never come.
        """
        if key not in self._special and (pod is None or _is_plain(pod)):
            self._revision += 1
            if pod is not None and node is not None:
                self._pending[key] = (node, pod)
            else:
                self._pending.pop(key, None)
                self._update_counts(key, None)
            return []
        self._pending.pop(key, None)
        if pod is None or _is_plain(pod):
            self._special.discard(key)
        else:
            self._special.add(key)
        concerned = self._nominate(key, pod if node is None else None)
        placed = (node, pod) if pod is not None and node is not None else None
        return [*concerned, *self._update_counts(key, placed)]

    def _update_counts(self, key: ids.Key, placed: _Placement | None) -> list[ids.NodeName]:
        mounts = placed is not None and placed[1].volume_claims
        self._count_volume_claims(
            key, shared_claims(placed[1]) if placed is not None and mounts else ()
        )
        previous = self._by_pod.get(key)
        after = (placed[0], self._kind(placed[1])) if placed is not None else None
        if previous == after:
            return []
        self._revision += 1
        if previous is not None:
            del self._by_pod[key]
            self._count(*previous, -1)
        if after is not None:
            self._by_pod[key] = after
            self._count(*after, 1)
        return [entry[0] for entry in (previous, after) if entry is not None]

    def _apply_pending(self) -> None:
        """Count the plain pods that changed since the last read."""
        mark, pending = self._revision, self._pending
        if pending:
            self._pending = {}
            for key, placed in pending.items():
                self._update_counts(key, placed)
            self._revision = mark  # it was raised when they were set

    def _nominate(self, key: ids.Key, pod: pods.Pod | None) -> list[ids.NodeName]:
        target = pod.nominated if pod is not None and not pod.finished else None
        previous = self._nominations.get(key)
        if previous is None and target is None:
            return []
        self._revision += 1
        if previous is not None:
            del self._nominations[key]
            del self._nominated[previous][key]
            if not self._nominated[previous]:
                del self._nominated[previous]
        if pod is not None and target is not None:
            self._nominations[key] = target
            self._nominated.setdefault(target, {})[key] = pod
        return [name for name in (previous, target) if name is not None]

    def _count_volume_claims(self, key: ids.Key, claims: tuple[ids.Key, ...]) -> None:
        if not claims and key not in self._pod_claims:
            return
        for claim in self._pod_claims.pop(key, ()):
            self._claim_users[claim] -= 1
            if not self._claim_users[claim]:
                del self._claim_users[claim]
        for claim in claims:
            self._claim_users[claim] = self._claim_users.get(claim, 0) + 1
        if claims:
            self._pod_claims[key] = claims

    def _kind(self, pod: pods.Pod) -> PodKind:
        key = pod_kind_key(pod)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = pod_kind(pod)
        return kind

    def _count(self, node: ids.NodeName, kind: PodKind, more: int) -> None:
        self._running_counts.record((kind, node, more))
        kinds = self._counts.setdefault(kind.namespace, {})
        counts = kinds.setdefault(kind, {})
        total = counts.get(node, 0) + more
        if total:
            counts[node] = total
        else:
            counts.pop(node, None)
        if counts:
            self._index(kind, counts)
            return
        del kinds[kind]
        self._anti_affinity.pop(kind, None)
        self._scoring.pop(kind, None)
        self._kinds.pop(_kind_key(kind, kind.affinity), None)
        if not kinds:
            del self._counts[kind.namespace]

    def _index(self, kind: PodKind, counts: dict[ids.NodeName, int]) -> None:
        if kind.has_anti_affinity:
            self._anti_affinity[kind] = counts
        if kind.affects_scores:
            self._scoring[kind] = counts


def _is_plain(pod: pods.Pod) -> bool:
    """Return whether a pod affects others only by its labels."""
    special = pod.volume_claims or pod.nominated is not None
    return not special and pod.pod_affinity is interpod_affinity.NONE


def shared_claims(pod: pods.Pod) -> tuple[ids.Key, ...]:
    """The PersistentVolumeClaims of a pod that another could mount, by key."""
    named = (name for name in pod.volume_claims if name not in pod.ephemeral_claims)
    return tuple(ids.Key(f"{pod.namespace}/{name}") for name in named)


def pod_kind(pod: pods.Pod) -> PodKind:
    """Return the kind of a pod."""
    return PodKind(pod.namespace, pod.labels, pod.deleting, pod.pod_affinity)


def pod_kind_key(pod: pods.Pod) -> Hashable:
    """Return a key that is equal for pods of one kind."""
    return _kind_key(pod, pod.pod_affinity)


def _kind_key(like: pods.Pod | PodKind, terms: interpod_affinity.PodAffinity) -> Hashable:
    plain = terms is interpod_affinity.NONE
    return like.namespace, frozenset(like.labels.items()), like.deleting, None if plain else terms
