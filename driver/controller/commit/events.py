"""Event reporter: one event on the pod and one on each of its claims (D19)."""

from driver import reasons
from driver.controller import ports
from driver.kube.events import recorder as event_recorder
from driver.resources.core import pods
from driver.resources.dra import claims

_WARNINGS = frozenset(
    {
        reasons.Reason.RESERVATION_PENDING,
        reasons.Reason.RESERVATION_EXPIRED,
        reasons.Reason.RESERVATION_REFUSED,
        reasons.Reason.NO_NODE_SHAPE_FITS,
        reasons.Reason.NODE_NOT_ARRIVED,
        reasons.Reason.NODE_SHAPE_CONTRADICTED,
    }
)


class EventReporter:
    """Reports the same message on each object where a user may look."""

    def __init__(self, recorder: event_recorder.Recorder, saying: ports.ConditionWriter) -> None:
        self._recorder = recorder
        self._conditions = saying

    def report_pending(self, pod: pods.Pod, reason: reasons.Reason, message: str) -> None:
        """Set the pod's pending condition."""
        self._conditions.report_pending(pod, reason.value, message)

    def report_allocated(self, pod: pods.Pod) -> None:
        """Remove the pod's pending condition."""
        self._conditions.report_allocated(pod)

    def normal(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Emit Normal events."""
        self._report(pod, pod_claims, reason, message, warning=False)

    def warning(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Emit Warning events."""
        self._report(pod, pod_claims, reason, message, warning=True)

    def report_on(
        self, regarding: event_recorder.ObjectRef, reason: reasons.Reason, message: str
    ) -> None:
        """Emit an event on an object of Ration's own kinds."""
        warning = reason in _WARNINGS
        self._recorder.event(regarding, reason.value, message, warning=warning)

    def _report(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
        *,
        warning: bool,
    ) -> None:
        for regarding in (pod_ref(pod), *(claim_ref(claim) for claim in pod_claims)):
            self._recorder.event(regarding, reason.value, message, warning=warning)


def pod_ref(pod: pods.Pod) -> event_recorder.ObjectRef:
    """A pod, as events name it."""
    return event_recorder.ObjectRef("Pod", "v1", pod.namespace, pod.name, pod.uid)


def claim_ref(claim: claims.Claim) -> event_recorder.ObjectRef:
    """A claim, as events name it."""
    return event_recorder.ObjectRef(
        "ResourceClaim", "resource.k8s.io/v1", claim.namespace, claim.name, claim.uid
    )
