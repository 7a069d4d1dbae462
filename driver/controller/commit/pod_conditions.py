"""Writes the pod condition `ration.dev/Allocated` while pods are pending (D19).

Updates are coalesced per pod (latest wins) and limited to 20 per second.
"""

import threading
from collections.abc import Mapping

import structlog

from driver import clock, errors, ids
from driver.controller import ports
from driver.kube import client, gvr
from driver.resources.core import pods

_log = structlog.get_logger(__name__)
_WRITES_PER_S = 20
_INTERVAL_S = 1.0


class ConditionWriter:
    """`report_pending` and `report_allocated` from any thread; `run` is a thread's target."""

    def __init__(self, hand: ports.Writer, time: clock.Clock) -> None:
        self._writer = hand
        self._clock = time
        self._lock = threading.Lock()
        self._due: dict[ids.PodUid, tuple[pods.Pod, pods.PendingCondition | None]] = {}
        self._written: set[ids.PodUid] = set()

    def report_pending(self, pod: pods.Pod, reason: str, message: str) -> None:
        """Set the condition: the pod is pending, for `reason`."""
        since = clock.rfc3339(self._clock.now())
        desired = pods.build_pending(reason, message, pod.pending.since if pod.pending else since)
        with self._lock:
            self._due.pop(pod.uid, None)
            if pod.pending != desired:
                self._due[pod.uid] = pod, desired

    def report_allocated(self, pod: pods.Pod) -> None:
        """Remove the condition: the pod is no longer pending."""
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
            self._patch(pod, pods.render_pending(pod, condition))
        except errors.NotFound:
            condition = None
        except errors.ApiError as error:
            _log.info("condition not written", pod=pod.key, error=str(error))
            self._requeue(pod, condition)
            return False
        with self._lock:
            (self._written.discard if condition is None else self._written.add)(pod.uid)
        return True

    def _patch(self, pod: pods.Pod, body: Mapping[str, object]) -> None:
        self._writer.patch(
            gvr.PODS,
            pod.name,
            body,
            namespace=pod.namespace,
            subresource="status",
            kind=client.PatchType.STRATEGIC,
        )

    def _requeue(self, pod: pods.Pod, condition: pods.PendingCondition | None) -> None:
        """Write the condition later, unless a newer one is due."""
        with self._lock:
            self._due.setdefault(pod.uid, (pod, condition))
