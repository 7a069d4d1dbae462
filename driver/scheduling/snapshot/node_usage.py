"""Resources that pods use on nodes, including pods assigned but not bound. Pure."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from driver import ids, names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold, placed_pods, snapshot

_Pin = tuple[tuple[str, ...], ids.NodeName]


def is_placeholder(pod: pods.Pod, namespace: str) -> bool:
    """Return whether a pod is a placeholder of the provisioner.

    The namespace is the provisioner's: in any other one every user may set the label.
    """
    return pod.namespace == namespace and names.PLACEHOLDER_LABEL in pod.labels


class NodeUsageIndex:
    """Pods by node: bound, being placed, or unbound with an allocation that pins them.

    Every change returns the nodes that it concerns; `bindings` counts bindings and unbindings.
    Only the provisioner may create pods in the placeholder namespace.
    """

    def __init__(
        self, placeholder_namespace: str = "", placed: placed_pods.PlacedPods | None = None
    ) -> None:
        self._placeholder_namespace = placeholder_namespace
        self._population = placed_pods.PlacedPods({}) if placed is None else placed
        self._pods: dict[ids.Key, pods.Pod] = {}
        self._pins: dict[ids.Key, _Pin] = {}
        self._in_flight: dict[ids.PodUid, ids.NodeName] = {}
        self._users: dict[ids.Key, tuple[ids.Key, ...]] = {}
        self._placed: dict[ids.Key, tuple[ids.NodeName, pods.Pod]] = {}
        self._by_node: dict[ids.NodeName, dict[ids.Key, pods.Pod]] = {}
        self._usage: dict[ids.NodeName, snapshot.NodeUsage] = {}
        self.bindings = 0

    @property
    def usage(self) -> Mapping[ids.NodeName, snapshot.NodeUsage]:
        """Pod usage of each node that has pods."""
        return MappingProxyType(self._usage)

    def pods_on(self, node: ids.NodeName) -> Mapping[ids.Key, pods.Pod]:
        """Return the pods of a node, by key."""
        return MappingProxyType(self._by_node.get(node, {}))

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> Iterable[ids.NodeName]:
        """Set or delete a pod."""
        previous = self._pods.pop(key, None)
        if _bound_to(previous) != _bound_to(pod):
            self.bindings += 1
        for claim_key in previous.claim_keys if previous else ():
            others = tuple(user for user in self._users.pop(claim_key) if user != key)
            if others:
                self._users[claim_key] = others
        if pod is not None:
            self._pods[key] = pod
        for claim_key in pod.claim_keys if pod else ():
            self._users[claim_key] = (*self._users.get(claim_key, ()), key)
        return self._update_pod(key)

    def set_claim(self, key: ids.Key, claim: claims.Claim | None) -> Iterable[ids.NodeName]:
        """Set or delete a claim; its allocation may pin its pods."""
        node = snapshot.pinned_node(claim) if claim else None
        previous = self._pins.pop(key, None)
        if claim is not None and node is not None:
            self._pins[key] = tuple(consumer.uid for consumer in claim.consumers), node
        if previous == self._pins.get(key):
            return ()
        return [node for pod in self._users.get(key, ()) for node in self._update_pod(pod)]

    def begin_write(self, pod: pods.Pod, node: ids.NodeName) -> Iterable[ids.NodeName]:
        """Count a pod on a node while its placement is being written."""
        self._in_flight[pod.uid] = node
        return self._update_pod(pod.key)

    def end_write(self, pod: pods.Pod) -> Iterable[ids.NodeName]:
        """Count the pod as cached again: the write ended."""
        self._in_flight.pop(pod.uid, None)
        return self._update_pod(pod.key)

    def _update_pod(self, key: ids.Key) -> list[ids.NodeName]:
        """Update the node of a pod; return the nodes whose usage changed."""
        pod, previous = self._pods.get(key), self._placed.get(key)
        node = None if pod is None or pod.finished else self._pod_node(pod)
        after = (node, pod) if pod is not None and node is not None else None
        if previous == after and (
            after is not None or not self._population.is_nomination(key, pod)
        ):
            return []
        concerned = self._population.set_pod(key, pod, node)
        if previous == after:
            return concerned
        if previous is not None and after is not None and _changes_kind(previous[1], after[1]):
            concerned.append(after[0])
        touched: dict[ids.NodeName, None] = {}
        if previous is not None:
            del self._placed[key]
            del self._by_node[previous[0]][key]
            touched[previous[0]] = None
        if after is not None:
            self._placed[key] = after
            self._by_node.setdefault(after[0], {})[key] = after[1]
            touched[after[0]] = None
        weighed = [name for name in touched if self._update_usage(name)]
        return [*dict.fromkeys((*concerned, *weighed))]

    def _pod_node(self, pod: pods.Pod) -> ids.NodeName | None:
        on_its_way = pod.node or self._in_flight.get(pod.uid)
        if on_its_way is not None:
            return on_its_way
        pins = [self._pins[key] for key in pod.claim_keys if key in self._pins]
        if not pins:
            return None
        own_uids = {pod.uid, allocation_hold.pod_hold(pod).uid}
        return next((node for uids, node in pins if not own_uids.isdisjoint(uids)), None)

    def _update_usage(self, name: ids.NodeName) -> bool:
        """Recompute a node's usage; return whether it changed."""
        node_pods = self._by_node.get(name, {})
        if not node_pods:
            self._by_node.pop(name, None)
            return self._usage.pop(name, None) is not None
        previous, current = (
            self._usage.get(name),
            sum_usage(node_pods.values(), self._placeholder_namespace),
        )
        self._usage[name] = current
        return previous != current


def _bound_to(pod: pods.Pod | None) -> ids.NodeName | None:
    return None if pod is None or pod.finished else pod.node


def _changes_kind(previous: pods.Pod, after: pods.Pod) -> bool:
    """Return whether a pod's kind changed for filters, whatever it uses."""
    return previous.labels != after.labels or previous.deleting != after.deleting


def sum_usage(
    node_pods: Collection[pods.Pod], placeholder_namespace: str = ""
) -> snapshot.NodeUsage:
    """Return the total usage of a node's pods; placeholders are those of the given namespace."""
    total: dict[str, int] = {}
    ports: set[pods.HostPort] = set()
    for pod in node_pods:
        for resource, amount in (pod.requests if pod.resized is None else pod.resized).items():
            total[resource] = total.get(resource, 0) + amount
        ports |= pod.host_ports
    placeholders = (
        sum(is_placeholder(pod, placeholder_namespace) for pod in node_pods)
        if placeholder_namespace
        else 0
    )
    return snapshot.NodeUsage(total, frozenset(ports), len(node_pods), placeholders)


def add_usage(use: snapshot.NodeUsage, other: snapshot.NodeUsage) -> snapshot.NodeUsage:
    """Return the sum of two usages of a node."""
    total = dict(use.requests)
    for resource, amount in other.requests.items():
        total[resource] = total.get(resource, 0) + amount
    return snapshot.NodeUsage(
        total,
        use.ports | other.ports,
        use.pod_count + other.pod_count,
        use.placeholders + other.placeholders,
    )
