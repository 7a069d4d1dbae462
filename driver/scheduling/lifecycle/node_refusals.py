"""Nodes that kube-scheduler refused for pods of one shape: not tried again until something changed.

The shape of a pod is its owner (a ReplicaSet has one template), else the pod itself. Pure but for
its memory, which may be lost: then a refusal is learnt once more.
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
"""The state of a node that a refusal depends on, of all nodes where the flag is set: it equals the
state before while nothing changed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused pair: `words` are kube-scheduler's; moments are monotonic seconds.

    `least` is when the pair may be tried again if its state changed, `until` if it did not.
    """

    message: str
    spans_nodes: bool
    state: object
    times: int
    retry_if_changed: float
    retry_at: float


class NodeRefusals:
    """Owned by one thread."""

    def __init__(self) -> None:
        self._pairs: dict[str, dict[ids.NodeName, Refusal]] = {}

    def record(
        self, pod: pods.Pod, node: ids.NodeName, message: str, state_of: NodeState, now: float
    ) -> float:
        """Remember a refusal; the seconds for which the node is left out at least."""
        self._prune(now)
        nodes = self._pairs.setdefault(pod_shape(pod), {})
        times = nodes[node].times + 1 if node in nodes else 0
        factor = 2.0 ** min(times, _MAX_DOUBLINGS)
        least_s = min(FIRST_S * factor, MAX_S)
        until_s = min(UNCHANGED_S * factor, MAX_S)
        words = scheduler_message.definite_reasons(message) or message
        spans = scheduler_message.spans_nodes(words)
        state = state_of(node, spans)
        nodes[node] = Refusal(words, spans, state, times, now + least_s, now + until_s)
        return least_s

    def avoided_nodes(
        self, pod: pods.Pod, state_of: NodeState, now: float
    ) -> Mapping[ids.NodeName, str]:
        """The nodes to leave out for a pod now, with kube-scheduler's words."""
        return {
            node: pair.message
            for node, pair in self._pairs.get(pod_shape(pod), {}).items()
            if now < pair.retry_if_changed
            or (now < pair.retry_at and state_of(node, pair.spans_nodes) == pair.state)
        }

    def next_retry(self, pod: pods.Pod, now: float) -> float | None:
        """The next moment at which a node may be tried again; None where none is left out."""
        pairs = self._pairs.get(pod_shape(pod), {}).values()
        ends = (moment for pair in pairs for moment in (pair.retry_if_changed, pair.retry_at))
        return min((moment for moment in ends if moment > now), default=None)

    def _prune(self, now: float) -> None:
        """Forget pairs whose back-off ended as long ago as the longest one lasts."""
        for key, nodes in [*self._pairs.items()]:
            fresh = {node: pair for node, pair in nodes.items() if now - pair.retry_at < MAX_S}
            if fresh:
                self._pairs[key] = fresh
            else:
                del self._pairs[key]


def pod_shape(pod: pods.Pod) -> str:
    """The UID of the pod's owner, or its own."""
    return pod.owner.uid if pod.owner is not None else pod.uid
