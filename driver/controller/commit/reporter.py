"""Reporter: events on pods, claims and own kinds, and the pod condition `ration.dev/Allocated`.

Events are passed on at once (D19). Conditions are coalesced per pod (latest wins) and limited to
20 writes per second.
"""

import threading
from collections.abc import Iterable

import structlog

from driver import clock, errors, ids, reasons
from driver.api import crd
from driver.controller import ports
from driver.controller.commit import pod_status
from driver.kube.events import recorder as event_recorder
from driver.resources import reservations
from driver.resources.core import nodes, pods
from driver.resources.dra import claims

_log = structlog.get_logger(__name__)
_WRITES_PER_S = 20
_INTERVAL_S = 1.0
_MAX_WRITTEN = 4_096
"""Pods whose condition was written last, in some three minutes: caches show it long before."""
_NORMAL = frozenset(
    {
        reasons.Reason.ALLOCATED,
        reasons.Reason.NODES_REQUESTED,
        reasons.Reason.NODE_ARRIVED,
        reasons.Reason.RESERVATION_HELD,
        reasons.Reason.RESERVATION_USED,
    }
)
"""Reasons of Normal events; all others are Warnings."""
PendingCause = tuple[reasons.Reason, str]
"""Reason and message of a pod's condition where they are not those of its event."""


class Reporter:
    """Reports from any thread without blocking; `run`, a thread's target, writes conditions."""

    def __init__(
        self, recorder: event_recorder.Recorder, writer: ports.Writer, time: clock.Clock
    ) -> None:
        self._recorder = recorder
        self._writer = writer
        self._clock = time
        self._lock = threading.Lock()
        self._due: dict[ids.PodUid, tuple[pods.Pod, pods.PendingCondition | None]] = {}
        self._written: dict[ids.PodUid, None] = {}

    def event(
        self,
        pod: pods.Pod,
        pod_claims: Iterable[claims.Claim],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Emit the same event on a pod and on each of its claims."""
        for regarding in (pod_ref(pod), *(_claim_ref(claim) for claim in pod_claims)):
            self._emit(regarding, reason, message)

    def node_event(self, node: nodes.Node, reason: reasons.Reason, message: str) -> None:
        """Emit an event on a Node."""
        self._emit(event_recorder.ObjectRef("Node", "v1", "", node.name, node.uid), reason, message)

    def reservation_event(
        self, reservation: reservations.Reservation, reason: reasons.Reason, message: str
    ) -> None:
        """Emit an event on a Reservation."""
        namespace, name, uid = reservation.namespace, reservation.name, reservation.uid
        regarding = event_recorder.ObjectRef(reservations.KIND, crd.VERSION, namespace, name, uid)
        self._emit(regarding, reason, message)

    def unschedulable(
        self,
        pod: pods.Pod,
        pod_claims: Iterable[claims.Claim],
        reason: reasons.Reason,
        message: str,
        cause: PendingCause | None = None,
    ) -> None:
        """Emit an event, and set the pending condition of a pod that is not bound."""
        self.event(pod, pod_claims, reason, message)
        if pod.node is None:
            self.pending(pod, *(cause or (reason, message)))

    def allocated(self, pod: pods.Pod, pod_claims: Iterable[claims.Claim], message: str) -> None:
        """Emit an event, and remove the pod's pending condition."""
        self.event(pod, pod_claims, reasons.Reason.ALLOCATED, message)
        self.settled(pod)

    # Conditions.

    def pending(self, pod: pods.Pod, reason: reasons.Reason, message: str) -> None:
        """Set the pod's pending condition."""
        since = clock.rfc3339(self._clock.now())
        desired = pods.build_pending(
            reason.value, message, pod.pending.since if pod.pending else since
        )
        with self._lock:
            self._due.pop(pod.uid, None)
            if pod.pending != desired:
                self._due[pod.uid] = pod, desired

    def settled(self, pod: pods.Pod) -> None:
        """Remove the pod's pending condition."""
        with self._lock:
            self._due.pop(pod.uid, None)
            if pod.pending is not None or pod.uid in self._written:
                self._due[pod.uid] = pod, None

    def run(self, stop: threading.Event) -> None:
        """Write what is due until `stop` is set."""
        while not self._clock.wait(stop, _INTERVAL_S):
            for _ in range(_WRITES_PER_S):
                if stop.is_set() or not self.write_next():
                    break

    def write_next(self) -> bool:
        """Write the oldest due condition; return whether one was written."""
        with self._lock:
            if not self._due:
                return False
            pod, condition = self._due.pop(next(iter(self._due)))
        try:
            pod_status.patch_status(self._writer, pod, pods.render_pending(pod, condition))
        except errors.NotFound:
            condition = None
        except errors.ApiError as error:
            _log.info("condition not written", pod=pod.key, error=str(error))
            self._requeue(pod, condition)
            return False
        with self._lock:
            self._record_written(pod.uid, has_condition=condition is not None)
        return True

    def _record_written(self, uid: ids.PodUid, *, has_condition: bool) -> None:
        """Record a condition until the pod shows it; of deleted pods the last ones stay."""
        self._written.pop(uid, None)
        if has_condition:
            self._written[uid] = None
        if len(self._written) > _MAX_WRITTEN:
            del self._written[next(iter(self._written))]

    def _requeue(self, pod: pods.Pod, condition: pods.PendingCondition | None) -> None:
        """Write the condition later, unless a newer one is due."""
        with self._lock:
            self._due.setdefault(pod.uid, (pod, condition))

    def _emit(
        self, regarding: event_recorder.ObjectRef, reason: reasons.Reason, message: str
    ) -> None:
        warning = reason not in _NORMAL
        self._recorder.event(regarding, reason.value, message, warning=warning)


def pod_ref(pod: pods.Pod) -> event_recorder.ObjectRef:
    """Return a pod, as events name it."""
    return event_recorder.ObjectRef("Pod", "v1", pod.namespace, pod.name, pod.uid)


def _claim_ref(claim: claims.Claim) -> event_recorder.ObjectRef:
    return event_recorder.ObjectRef(
        "ResourceClaim", "resource.k8s.io/v1", claim.namespace, claim.name, claim.uid
    )
