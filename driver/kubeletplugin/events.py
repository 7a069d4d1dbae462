"""Events for users, on claims and on the node (D19)."""

from driver import ids, reasons
from driver.kube.events import recorder as event_recorder
from driver.kubeletplugin import ports


class EventReporter:
    """Reports events on claims and nodes."""

    def __init__(self, recorder: event_recorder.Recorder) -> None:
        self._recorder = recorder

    def warn_claim(self, ref: ports.ClaimRef, reason: reasons.Reason, message: str) -> None:
        """Record a warning about a claim."""
        self._recorder.event(_claim_ref(ref), reason.value, message, warning=True)

    def notify_claim(self, ref: ports.ClaimRef, reason: reasons.Reason, message: str) -> None:
        """Record a normal event about a claim."""
        self._recorder.event(_claim_ref(ref), reason.value, message, warning=False)

    def warn_node(self, node: ids.NodeName, uid: str, reason: reasons.Reason, message: str) -> None:
        """Record a warning about the node's devices."""
        self._recorder.event(_node_ref(node, uid), reason.value, message, warning=True)

    def notify_node(
        self, node: ids.NodeName, uid: str, reason: reasons.Reason, message: str
    ) -> None:
        """Record a normal event about the node's devices."""
        self._recorder.event(_node_ref(node, uid), reason.value, message, warning=False)


def _claim_ref(ref: ports.ClaimRef) -> event_recorder.ObjectRef:
    return event_recorder.ObjectRef(
        "ResourceClaim", "resource.k8s.io/v1", ref.namespace, ref.name, ref.uid
    )


def _node_ref(node: ids.NodeName, uid: str) -> event_recorder.ObjectRef:
    return event_recorder.ObjectRef("Node", "v1", "", node, uid)
