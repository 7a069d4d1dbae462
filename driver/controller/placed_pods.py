"""The pods of nodes by namespace, labels and affinity terms, kept by changes. Pure.

Filters that look beyond a node (InterPodAffinity, PodTopologySpread) count kinds of pods, of which
a cluster has far fewer than pods.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from driver import ids
from driver.controller import running_counts
from driver.resources import interpod_affinity, nodes, pods

T = TypeVar("T")
C = TypeVar("C", bound=running_counts.Counts)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Pods that no filter tells apart; `deleting` ones do not count for spreading."""

    namespace: str
    labels: Mapping[str, str]
    deleting: bool
    affinity: interpod_affinity.PodAffinity

    @property
    def objects(self) -> bool:
        """Whether such a pod keeps others away (required anti-affinity)."""
        return bool(self.affinity.anti)

    @property
    def draws(self) -> bool:
        """Whether such a pod counts in the scores of others (InterPodAffinity)."""
        terms = self.affinity
        return bool(terms.required or terms.preferred or terms.preferred_anti)


Members = tuple[Kind, Mapping[ids.NodeName, int]]
"""How many pods of a kind each node has; a layer may say fewer by a negative number."""


class Population(Protocol):
    """The placed pods of a view; of one kind there may be several members, which add up."""

    @property
    def mark(self) -> Hashable:
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

    def members(self, namespace: str | None = None) -> Iterable[Members]:
        """The kinds of a namespace, or of all."""
        ...

    def objectors(self) -> Iterable[Members]:
        """The kinds with required anti-affinity."""
        ...

    def drawing(self) -> Iterable[Members]:
        """The kinds that count in the scores of others."""
        ...

    def users(self, claim: ids.Key) -> int:
        """How many placed pods mount a PersistentVolumeClaim."""
        ...

    @property
    def awaited(self) -> bool:
        """Whether any pod is nominated."""
        ...

    def nominated(self, node: ids.NodeName) -> Sequence[pods.Pod]:
        """Unbound pods for which room was made on a node, by key."""
        ...

    @property
    def objects(self) -> bool:
        """Whether any pod has required anti-affinity."""
        ...

    @property
    def draws(self) -> bool:
        """Whether any pod counts in the scores of others."""
        ...

    @property
    def shuns(self) -> bool:
        """Whether any node has a taint PreferNoSchedule."""
        ...

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made once as long as `mark` stays."""
        ...

    def remembered_of_nodes(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key that depends on nodes alone, made once for nodes as they are."""
        ...

    def counted(self, key: Hashable, make: Callable[["Population"], C]) -> C:
        """Counts of a key, made once and then kept; only a copy of them stays as it is."""
        ...


class Placed:
    """Told of every change; `mark` counts them. `found` are the nodes as they change."""

    def __init__(self, found: Mapping[ids.NodeName, nodes.Node]) -> None:
        self._nodes = found
        self._mark = 0
        self._kinds: dict[Hashable, Kind] = {}
        self._counts: dict[str, dict[Kind, dict[ids.NodeName, int]]] = {}
        self._objectors: dict[Kind, dict[ids.NodeName, int]] = {}
        self._drawing: dict[Kind, dict[ids.NodeName, int]] = {}
        self._of: dict[ids.Key, tuple[ids.NodeName, Kind]] = {}
        self._room: dict[ids.NodeName, dict[ids.Key, pods.Pod]] = {}
        self._room_of: dict[ids.Key, ids.NodeName] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._users: dict[ids.Key, int] = {}
        self._uses: dict[ids.Key, tuple[ids.Key, ...]] = {}
        self._nodes_mark = 0
        self._shunned: set[ids.NodeName] = set()
        self._remembering = running_counts.Remembering()
        self._of_nodes = running_counts.Remembering()
        self._running = running_counts.Running()

    @property
    def mark(self) -> Hashable:
        """Another value whenever a pod, a namespace or a node changed."""
        return self._mark

    @property
    def objects(self) -> bool:
        """Whether any pod has required anti-affinity."""
        return bool(self._objectors)

    @property
    def draws(self) -> bool:
        """Whether any pod counts in the scores of others."""
        return bool(self._drawing)

    @property
    def shuns(self) -> bool:
        """Whether any node has a taint PreferNoSchedule."""
        return bool(self._shunned)

    @property
    def cluster_nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node of the cluster."""
        return self._nodes

    @property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace."""
        return self._namespaces

    def members(self, namespace: str | None = None) -> Iterable[Members]:
        """The kinds of a namespace, or of all."""
        if namespace is not None:
            return self._counts.get(namespace, {}).items()
        return (members for kinds in self._counts.values() for members in kinds.items())

    def objectors(self) -> Iterable[Members]:
        """The kinds with required anti-affinity."""
        return self._objectors.items()

    def drawing(self) -> Iterable[Members]:
        """The kinds that count in the scores of others."""
        return self._drawing.items()

    def users(self, claim: ids.Key) -> int:
        """How many placed pods mount a PersistentVolumeClaim."""
        return self._users.get(claim, 0)

    @property
    def awaited(self) -> bool:
        """Whether any pod is nominated."""
        return bool(self._room)

    def nominated(self, node: ids.NodeName) -> Sequence[pods.Pod]:
        """Unbound pods for which room was made on a node, by key."""
        if not self._room:
            return ()
        return [pod for _, pod in sorted(self._room.get(node, {}).items())]

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made once as long as `mark` stays."""
        return self._remembering.of(self._mark, key, make)

    def remembered_of_nodes(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key that depends on nodes alone, made once for nodes as they are."""
        return self._of_nodes.of(self._nodes_mark, key, make)

    def counted(self, key: Hashable, make: Callable[[Population], C]) -> C:
        """Counts of a key, made once and then kept; only a copy of them stays as it is."""
        return self._running.of(key, lambda: make(self))

    def note_node(self, name: ids.NodeName, node: nodes.Node | None) -> None:
        """A node came, changed or went."""
        self._mark += 1
        self._nodes_mark += 1
        self._running.forget()
        taints = node.taints if node is not None else ()
        if any(taint.effect == nodes.PREFER_NO_SCHEDULE for taint in taints):
            self._shunned.add(name)
        else:
            self._shunned.discard(name)

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """A namespace came, changed or went; whether anything is another for filters."""
        if self._namespaces.get(name) == labels:
            return False
        self._mark += 1
        self._running.forget()
        if labels is None:
            del self._namespaces[name]
        else:
            self._namespaces[name] = labels
        return True

    def put(
        self, key: ids.Key, pod: pods.Pod | None, node: ids.NodeName | None
    ) -> list[ids.NodeName]:
        """A pod is on a node now, or on none; the nodes for which filters see another picture."""
        placed = pod if pod is not None and node is not None else None
        kind = self._kind(placed) if placed is not None else None
        self._use(key, shared_claims(placed) if placed is not None else ())
        before = self._of.get(key)
        after = (node, kind) if node is not None and kind is not None else None
        concerned = self._nominate(key, pod if node is None else None)
        if before == after:
            return concerned
        self._mark += 1
        if before is not None:
            del self._of[key]
            self._count(*before, -1)
        if after is not None:
            self._of[key] = after
            self._count(*after, 1)
        return [*concerned, *(one[0] for one in (before, after) if one is not None)]

    def _nominate(self, key: ids.Key, pod: pods.Pod | None) -> list[ids.NodeName]:
        wanted = pod.nominated if pod is not None and not pod.finished else None
        before = self._room_of.get(key)
        if before is None and wanted is None:
            return []
        self._mark += 1
        if before is not None:
            del self._room_of[key]
            del self._room[before][key]
            if not self._room[before]:
                del self._room[before]
        if pod is not None and wanted is not None:
            self._room_of[key] = wanted
            self._room.setdefault(wanted, {})[key] = pod
        return [name for name in (before, wanted) if name is not None]

    def _use(self, key: ids.Key, claims: tuple[ids.Key, ...]) -> None:
        if not claims and key not in self._uses:
            return
        for claim in self._uses.pop(key, ()):
            self._users[claim] -= 1
            if not self._users[claim]:
                del self._users[claim]
        for claim in claims:
            self._users[claim] = self._users.get(claim, 0) + 1
        if claims:
            self._uses[key] = claims

    def _kind(self, pod: pods.Pod) -> Kind:
        look = kind_key(pod)
        kind = self._kinds.get(look)
        if kind is None:
            kind = self._kinds[look] = kind_of(pod)
        return kind

    def _count(self, node: ids.NodeName, kind: Kind, more: int) -> None:
        self._running.note((kind, node, more))
        kinds = self._counts.setdefault(kind.namespace, {})
        counts = kinds.setdefault(kind, {})
        left = counts.get(node, 0) + more
        if left:
            counts[node] = left
        else:
            counts.pop(node, None)
        if counts:
            self._index(kind, counts)
            return
        del kinds[kind]
        self._objectors.pop(kind, None)
        self._drawing.pop(kind, None)
        self._kinds.pop(_key(kind), None)
        if not kinds:
            del self._counts[kind.namespace]

    def _index(self, kind: Kind, counts: dict[ids.NodeName, int]) -> None:
        if kind.objects:
            self._objectors[kind] = counts
        if kind.draws:
            self._drawing[kind] = counts


def shared_claims(pod: pods.Pod) -> tuple[ids.Key, ...]:
    """The PersistentVolumeClaims of a pod that another could mount, by key."""
    named = (name for name in pod.volume_claims if name not in pod.ephemeral_claims)
    return tuple(ids.Key(f"{pod.namespace}/{name}") for name in named)


def kind_of(pod: pods.Pod) -> Kind:
    """The kind of a pod."""
    return Kind(pod.namespace, pod.labels, pod.deleting, pod.pod_affinity)


def kind_key(pod: pods.Pod) -> Hashable:
    """The same for pods of one kind."""
    return pod.namespace, frozenset(pod.labels.items()), pod.deleting, pod.pod_affinity


def _key(kind: Kind) -> Hashable:
    return kind.namespace, frozenset(kind.labels.items()), kind.deleting, kind.affinity


class Layered:
    """A population with pods more and pods fewer than the one below, or on other nodes."""

    def __init__(
        self,
        below: Population,
        gone: Iterable[tuple[pods.Pod, ids.NodeName]] = (),
        found: Mapping[ids.NodeName, nodes.Node] | None = None,
    ) -> None:
        self._below = below
        self._nodes = found
        self._changes: list[tuple[int, Members]] = []
        self._mounts: list[tuple[tuple[ids.Key, ...], int]] = []
        self._number = 0
        self._steps: list[running_counts.Step] = []
        self._stacked = running_counts.Stacked()
        self._remembering = running_counts.Remembering()
        self._of_nodes = running_counts.Remembering()
        for pod, node in gone:
            self._push(pod, node, -1)

    @property
    def mark(self) -> Hashable:
        """Another value for other pods on top; the same again after they were taken off."""
        return self._below.mark, self._changes[-1][0] if self._changes else 0

    @property
    def cluster_nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node of the cluster."""
        return self._below.cluster_nodes if self._nodes is None else self._nodes

    @property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace."""
        return self._below.namespaces

    def members(self, namespace: str | None = None) -> Iterator[Members]:
        """The kinds of a namespace, or of all."""
        yield from self._below.members(namespace)
        for _, (kind, counts) in self._changes:
            if namespace is None or kind.namespace == namespace:
                yield kind, counts

    def objectors(self) -> Iterator[Members]:
        """The kinds with required anti-affinity."""
        yield from self._below.objectors()
        yield from (members for _, members in self._changes if members[0].objects)

    def drawing(self) -> Iterator[Members]:
        """The kinds that count in the scores of others."""
        yield from self._below.drawing()
        yield from (members for _, members in self._changes if members[0].draws)

    def users(self, claim: ids.Key) -> int:
        """How many placed pods mount a PersistentVolumeClaim."""
        more = sum(number for claims, number in self._mounts if claim in claims)
        return self._below.users(claim) + more

    @property
    def awaited(self) -> bool:
        """Whether any pod is nominated."""
        return self._below.awaited

    def nominated(self, node: ids.NodeName) -> Sequence[pods.Pod]:
        """Unbound pods for which room was made on a node, by key."""
        return self._below.nominated(node)

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made once as long as `mark` stays."""
        return self._remembering.of(self.mark, key, make)

    def remembered_of_nodes(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key that depends on nodes alone, made once for nodes as they are."""
        if self._nodes is None:
            return self._below.remembered_of_nodes(key, make)
        return self._of_nodes.of(0, key, make)

    def counted(self, key: Hashable, make: Callable[[Population], C]) -> C:
        """Counts of a key, made once and then kept; only a copy of them stays as it is."""
        if self._nodes is not None:
            return make(self)
        below = self._below
        return self._stacked.of(key, below.mark, lambda: below.counted(key, make), self._steps)

    @property
    def objects(self) -> bool:
        """Whether any pod has required anti-affinity."""
        return self._below.objects or any(members[0].objects for _, members in self._changes)

    @property
    def draws(self) -> bool:
        """Whether any pod counts in the scores of others."""
        return self._below.draws or any(members[0].draws for _, members in self._changes)

    @property
    def shuns(self) -> bool:
        """Whether any node has a taint PreferNoSchedule."""
        return self._below.shuns

    def push(self, pod: pods.Pod, node: ids.NodeName) -> None:
        """A pod more, the last one for `pop`."""
        self._push(pod, node, 1)

    def pop(self) -> None:
        """Without the last one."""
        self._changes.pop()
        self._mounts.pop()
        self._steps.pop()

    def _push(self, pod: pods.Pod, node: ids.NodeName, more: int) -> None:
        self._number += 1
        kind = kind_of(pod)
        self._changes.append((self._number, (kind, {node: more})))
        self._steps.append((kind, node, more))
        self._mounts.append((shared_claims(pod), more))


class Nobody(Layered):
    """Nobody is placed, on the nodes and in the namespaces of the one below."""

    @property
    def objects(self) -> bool:
        """Nobody has any."""
        return False

    @property
    def draws(self) -> bool:
        """Nobody does."""
        return False

    def members(self, _namespace: str | None = None) -> Iterator[Members]:
        """None."""
        return iter(())

    def objectors(self) -> Iterator[Members]:
        """None."""
        return iter(())

    def drawing(self) -> Iterator[Members]:
        """None."""
        return iter(())

    def users(self, _claim: ids.Key) -> int:
        """None."""
        return 0

    def counted(self, _key: Hashable, make: Callable[[Population], C]) -> C:
        """Nothing to keep."""
        return make(self)

    @property
    def awaited(self) -> bool:
        """Nobody."""
        return False

    def nominated(self, _node: ids.NodeName) -> Sequence[pods.Pod]:
        """None."""
        return ()
