"""A population with pods more or fewer, on other nodes, or with nobody. Pure.

What is below is never touched.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from driver import ids
from driver.resources.core import nodes, pods
from driver.scheduling.snapshot import placed_pods, topology_counts

T = TypeVar("T")
C = TypeVar("C", bound=topology_counts.Counts)


class Layered:
    """A population with pods more and pods fewer than the one below, or on other nodes."""

    def __init__(
        self,
        below: placed_pods.Population,
        gone: Iterable[tuple[pods.Pod, ids.NodeName]] = (),
        by_name: Mapping[ids.NodeName, nodes.Node] | None = None,
    ) -> None:
        self._below = below
        self._nodes = by_name
        self._changes: list[tuple[int, placed_pods.Members]] = []
        self._mounts: list[tuple[tuple[ids.Key, ...], int]] = []
        self._number = 0
        self._steps: list[topology_counts.Step] = []
        self._stacked = topology_counts.Stacked()
        self._remembering = topology_counts.Remembering()
        self._of_nodes = topology_counts.Remembering()
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

    def members(self, namespace: str | None = None) -> Iterator[placed_pods.Members]:
        """The kinds of a namespace, or of all."""
        yield from self._below.members(namespace)
        for _, (kind, counts) in self._changes:
            if namespace is None or kind.namespace == namespace:
                yield kind, counts

    def objectors(self) -> Iterator[placed_pods.Members]:
        """The kinds with required anti-affinity."""
        yield from self._below.objectors()
        yield from (members for _, members in self._changes if members[0].objects)

    def drawing(self) -> Iterator[placed_pods.Members]:
        """The kinds that count in the scores of others."""
        yield from self._below.drawing()
        yield from (members for _, members in self._changes if members[0].draws)

    def users(self, claim: ids.Key) -> int:
        """Count how many placed pods mount a PersistentVolumeClaim."""
        more = sum(number for claims, number in self._mounts if claim in claims)
        return self._below.users(claim) + more

    @property
    def awaited(self) -> bool:
        """Tell whether any pod is nominated."""
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

    def counted(self, key: Hashable, make: Callable[[placed_pods.Population], C]) -> C:
        """Counts of a key, made once and then kept; only a copy of them stays as it is."""
        if self._nodes is not None:
            return make(self)
        below = self._below
        return self._stacked.of(key, below.mark, lambda: below.counted(key, make), self._steps)

    @property
    def objects(self) -> bool:
        """Tell whether any pod has required anti-affinity."""
        return self._below.objects or any(members[0].objects for _, members in self._changes)

    @property
    def draws(self) -> bool:
        """Tell whether any pod counts in the scores of others."""
        return self._below.draws or any(members[0].draws for _, members in self._changes)

    @property
    def shuns(self) -> bool:
        """Tell whether any node has a taint PreferNoSchedule."""
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
        kind = placed_pods.kind_of(pod)
        self._changes.append((self._number, (kind, {node: more})))
        self._steps.append((kind, node, more))
        self._mounts.append((placed_pods.shared_claims(pod), more))


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

    def members(self, _namespace: str | None = None) -> Iterator[placed_pods.Members]:
        """None."""
        return iter(())

    def objectors(self) -> Iterator[placed_pods.Members]:
        """None."""
        return iter(())

    def drawing(self) -> Iterator[placed_pods.Members]:
        """None."""
        return iter(())

    def users(self, _claim: ids.Key) -> int:
        """None."""
        return 0

    def counted(self, _key: Hashable, make: Callable[[placed_pods.Population], C]) -> C:
        """Nothing to keep."""
        return make(self)

    @property
    def awaited(self) -> bool:
        """Nobody."""
        return False

    def nominated(self, _node: ids.NodeName) -> Sequence[pods.Pod]:
        """None."""
        return ()
