"""Nodes that kube-scheduler refused for pods of one shape: retried after a change or a back-off.

The shape of a pod is its owner (a ReplicaSet has one template), else the pod itself. Pure but for
its state, which may be lost: then a refusal is learnt once more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driver import ids
from driver.resources.core import pods
from driver.scheduling.lifecycle import scheduler_message

FIRST_S = 5.0
"""Shortest back-off of a pair of shape and node; doubled by each refusal that follows."""
UNCHANGED_S = 60.0
"""Shortest back-off while the state of the node stays as it was refused."""
MAX_S = 600.0
_MAX_DOUBLINGS = 10
NodeState = Callable[[ids.NodeName, bool], object]
"""State of a node that a refusal depends on, of all nodes if the flag is set: it equals the
previous state while nothing changed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused pair: `message` is kube-scheduler's; times are monotonic seconds.

    `retry_if_changed` is when it may be tried again if its state changed, `retry_at` if it did not.
    """

    message: str
    spans_nodes: bool
    state: object
    times: int
    retry_if_changed: float
    retry_at: float


class NodeRefusals:
    """Back-offs of shape and node; owned by one thread."""

    def __init__(self) -> None:
        self._pairs: dict[str, dict[ids.NodeName, Refusal]] = {}

    def record(
        self, pod: pods.Pod, node: ids.NodeName, message: str, state_of: NodeState, now: float
    ) -> float:
        """Record a refusal; return the minimum back-off of the node in seconds."""
        self._prune(now)
        nodes = self._pairs.setdefault(pod_shape(pod), {})
        times = nodes[node].times + 1 if node in nodes else 0
        factor = 2.0 ** min(times, _MAX_DOUBLINGS)
        least_s = min(FIRST_S * factor, MAX_S)
        until_s = min(UNCHANGED_S * factor, MAX_S)
        reasons = scheduler_message.definite_reasons(message) or message
        spans = scheduler_message.spans_nodes(reasons)
        state = state_of(node, spans)
        nodes[node] = Refusal(reasons, spans, state, times, now + least_s, now + until_s)
        return least_s

    def avoided_nodes(
        self, pod: pods.Pod, state_of: NodeState, now: float
    ) -> Mapping[ids.NodeName, str]:
        """Return the nodes to avoid for a pod now, with kube-scheduler's messages."""
        return {
            node: pair.message
            for node, pair in self._pairs.get(pod_shape(pod), {}).items()
            if now < pair.retry_if_changed
            or (now < pair.retry_at and state_of(node, pair.spans_nodes) == pair.state)
        }

    def next_retry(self, pod: pods.Pod, now: float) -> float | None:
        """Return when a node may be tried again next; None if none is avoided."""
        pairs = self._pairs.get(pod_shape(pod), {}).values()
        ends = (moment for pair in pairs for moment in (pair.retry_if_changed, pair.retry_at))
        return min((moment for moment in ends if moment > now), default=None)

    def _prune(self, now: float) -> None:
        """Drop pairs whose back-off ended `MAX_S` ago."""
        for key, nodes in [*self._pairs.items()]:
            fresh = {node: pair for node, pair in nodes.items() if now - pair.retry_at < MAX_S}
            if fresh:
                self._pairs[key] = fresh
            else:
                del self._pairs[key]


def pod_shape(pod: pods.Pod) -> str:
    """The UID of the pod's owner, or its own."""
    return pod.owner.uid if pod.owner is not None else pod.uid
