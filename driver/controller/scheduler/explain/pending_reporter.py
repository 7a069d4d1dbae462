"""Reports why workloads are pending: when that changed, and again when its details are old."""

from collections.abc import Iterable

import structlog

from driver import ids, reasons
from driver.controller import metrics as controller_metrics
from driver.controller.commit import reporter, workload_writer
from driver.controller.scheduler import pending as scheduler_pending
from driver.controller.scheduler import state
from driver.controller.scheduler.explain import explanations, refresh
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import messages as explain_messages
from driver.scheduling.lifecycle import actions

_log = structlog.get_logger(__name__)


class PendingReporter:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        writers: workload_writer.WorkloadWriter,
        reports: reporter.Reporter,
        metrics: controller_metrics.Metrics,
        explained: explanations.Explanations,
        refreshes: refresh.MessageRefresh,
    ) -> None:
        self._context = context
        self._writers = writers
        self._reporter = reports
        self._metrics = metrics
        self._explanations = explained
        self._refresh = refreshes

    def unschedulable(
        self,
        pod: pods.Pod,
        due: actions.Decide,
        answer: allocator_types.Unschedulable,
        candidate: scheduler_pending.PendingWorkload | None = None,
    ) -> None:
        """Report a refusal when it changed or is old; release half-decided claims."""
        message = allocator_messages.unschedulable(answer)
        uid, memory, view = pod.uid, self._context.memory, self._context.view
        # Counts change with every pod that comes or goes: they are renewed, as the rest is.
        gist = (answer.blocker, answer.detail, answer.reasons)
        new = memory.message_keys.get(uid) != gist or memory.pending_reasons.get(uid) is None
        if new:
            memory.clear_messages(uid)
            memory.message_keys[uid] = gist
        lacks_advice = candidate is not None and uid in memory.unadvised
        if new or lacks_advice or self._needs_refresh(uid, reasons.Reason.NO_FIT):
            near = None
            if candidate is not None:
                near = self._explanations.find_nearest(candidate.workloads[0], answer)
            rest = self._explanations.describe(answer, near, candidate)
            text = explain_messages.join_sentence(message, rest)
            if new or (uid not in memory.unadvised and self._refresh.record(uid, text, view)):
                self._refresh.record(uid, text, view)
                self._explanations.record(pod, answer, near, text)
                no_fit = reasons.Reason.NO_FIT
                cause = (answer.blocker, answer.detail) if answer.blocker is not None else None
                self.report(pod, due.open_claims, no_fit, text, same_as=message, cause=cause)
        self._metrics.count_decision("no_fit")
        self._metrics.count_refusals(answer.reasons)
        self._ungate(pod)
        half = tuple(
            claim for claim in due.allocated_claims if actions.hold_node(pod, (claim,)) is not None
        )
        self._writers.release(pod, half)

    def pending(
        self,
        pod: pods.Pod,
        open_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
        note: str = "",
    ) -> None:
        """Report why a pod was not tried, once for each message."""
        self._metrics.count_decision("waits")
        self._metrics.count_refusals((reason,))
        uid, view = pod.uid, self._context.view
        new = self._context.memory.messages.get(uid) != message
        if new:
            self._context.memory.clear_messages(uid)
        text = explain_messages.join_sentence(message, note)
        if new or (self._needs_refresh(uid, reason) and self._refresh.record(uid, text, view)):
            self._refresh.record(uid, text, view)
            self.report(pod, open_claims, reason, text, same_as=message)
        if reason is reasons.Reason.NO_FIT:
            self._ungate(pod)

    def pending_gang(self, candidate: scheduler_pending.PendingWorkload, message: str) -> None:
        """Report on each pod that the gang fits nowhere, with the note on its queue."""
        note = self._explanations.note(candidate)
        for work in candidate.workloads:
            self.pending(work.pod, work.open_claims, reasons.Reason.NO_FIT, message, note)

    def report(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
        *,
        same_as: str = "",
        cause: reporter.PendingCause | None = None,
    ) -> None:
        """Report on a pod and its claims, and record it as the last message.

        `same_as` is the part of the message that makes it a new one.
        """
        memory = self._context.memory
        memory.messages[pod.uid] = same_as or message
        if not same_as:
            memory.message_keys.pop(pod.uid, None)
        self._refresh.prune(memory.messages)
        memory.pending_reasons[pod.uid] = reason
        self._reporter.unschedulable(pod, pod_claims, reason, message, cause)
        _log.info("not placed", pod=pod.key, reason=reason.value, answer=message)

    def placed(self, pod: pods.Pod, placement: allocator_types.Placement) -> None:
        """Drop what was reported for a pod, and record its placement for readers."""
        self._context.memory.clear_messages(pod.uid)
        self._explanations.record(pod, placement)

    def allocated(self, pod: pods.Pod, pod_claims: Iterable[claims.Claim]) -> None:
        """Remove the pending condition of a pod whose claims are all allocated."""
        if pod.pending is not None and all(claim.allocation is not None for claim in pod_claims):
            self._reporter.settled(pod)

    def event(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Report on a pod and its claims beside the message that is recorded."""
        self._reporter.event(pod, pod_claims, reason, message)

    def _ungate(self, pod: pods.Pod) -> None:
        labels = self._context.view.population.namespaces.get(pod.namespace, {})
        if actions.should_ungate(pod, labels):
            self._writers.ungate(pod)

    def _needs_refresh(self, uid: ids.PodUid, reason: reasons.Reason) -> bool:
        """Return whether to refresh a message; those of another component are left to it."""
        last = self._context.memory.pending_reasons.get(uid)
        return last is reason and self._refresh.is_due(uid, self._context.view)
