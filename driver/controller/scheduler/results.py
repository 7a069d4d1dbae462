"""Result handler: commits placements, and reports refusals when they change."""

from collections.abc import Callable, Iterable

import structlog

from driver import clock, ids, names, reasons
from driver.controller.commit import write_pool
from driver.controller.scheduler import in_flight, state
from driver.controller.scheduler.explain import holder_names, refresh
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, settings
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer, explanation, nearest_fit
from driver.scheduling.explain import messages as whatif_words
from driver.scheduling.lifecycle import actions, backfill_plan
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)


class ResultHandler:
    """On the decider's thread; writes run on the pool."""

    def __init__(
        self,
        context: state.SchedulerContext,
        hands: write_pool.WritePool,
        tools: write_pool.WriteDeps,
        adviser: explainer.FitExplainer,
        named: holder_names.HolderNames,
    ) -> None:
        self._context = context
        self._writers = hands
        self._tools = tools
        self.explainer = adviser
        self.holders = named
        self.message_refresh = refresh.MessageRefresh(context.clock)

    def commit(
        self,
        item: write_pool.WorkItem,
        workload: allocator_types.Workload,
        placement: allocator_types.Placement,
        *,
        gang: bool = False,
    ) -> None:
        """Commit a placement; a gang member is not bound before the others can be."""
        pod = workload.pod
        memory, view = self._context.memory, self._context.view
        stamped = clock.rfc3339(self._context.clock.now())
        allocations = allocation_result.build_allocations(view, workload, placement, stamped)
        if gang:
            allocations = allocation_result.with_binding_condition(
                allocations, names.GANG_READY, names.GANG_FAILED
            )
        decision = snapshot.InFlight(pod, placement.node, allocations)
        memory.begin_write(decision)
        view.begin_write(decision)
        memory.clear_messages(pod.uid)
        self.record_explanation(pod, placement)
        self._writers.allocate(item, write_pool.Decision(workload, placement, allocations))

    def report_unschedulable(
        self,
        pod: pods.Pod,
        due: actions.Decide,
        answer: allocator_types.Unschedulable,
        workload: allocator_types.Workload | None = None,
        *,
        note: Callable[[], str] | None = None,
    ) -> None:
        """Report a refusal when it changed or is old; release half-decided claims."""
        message = allocator_messages.unschedulable(answer)
        uid, view = pod.uid, self._context.view
        # Counts change with every pod that comes or goes: they are renewed, as the rest is.
        gist = (answer.blocker, answer.detail, answer.reasons)
        new = self._context.memory.message_keys.get(uid) != gist
        new |= self._context.memory.pending_reasons.get(uid) is None
        if new:
            self._context.memory.clear_messages(uid)
            self._context.memory.message_keys[uid] = gist
        if (
            new
            or self._lacks_advice(pod, workload)
            or self._needs_refresh(uid, reasons.Reason.NO_FIT)
        ):
            near = self._find_nearest(workload, answer)
            rest = self.describe_details(answer, near, note() if note is not None else "")
            owed = uid in self._context.memory.unadvised
            text = whatif_words.join_sentence(message, rest)
            if new or (not owed and self.message_refresh.record(uid, text, view)):
                self.message_refresh.record(uid, text, view)
                self.record_explanation(pod, answer, near, text)
                self.report(
                    pod,
                    due.open_claims,
                    reasons.Reason.NO_FIT,
                    text,
                    same_as=message,
                    answer=answer,
                )
        self._tools.metrics.count_decision("no_fit")
        self._tools.metrics.count_refusals(answer.reasons)
        self._ungate(pod)
        half = tuple(
            claim for claim in due.allocated_claims if actions.hold_node(pod, (claim,)) is not None
        )
        self._writers.release(pod, half)

    def report_pending(
        self,
        pod: pods.Pod,
        open_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
        note: str = "",
    ) -> None:
        """Report why a pod was not tried, once for each message."""
        self._tools.metrics.count_decision("waits")
        self._tools.metrics.count_refusals((reason,))
        uid, view = pod.uid, self._context.view
        new = self._context.memory.messages.get(uid) != message
        if new:
            self._context.memory.clear_messages(uid)
        text = whatif_words.join_sentence(message, note)
        if new or (
            self._needs_refresh(uid, reason) and self.message_refresh.record(uid, text, view)
        ):
            self.message_refresh.record(uid, text, view)
            self.report(pod, open_claims, reason, text, same_as=message)
        if reason is reasons.Reason.NO_FIT:
            self._ungate(pod)

    def report(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
        *,
        same_as: str = "",
        answer: allocator_types.Unschedulable | None = None,
    ) -> None:
        """Warn on a pod and its claims, and record it as the last message.

        The pod's condition names what of an `answer` holds on every node.
        """
        self._context.memory.messages[pod.uid] = same_as or message
        if not same_as:
            self._context.memory.message_keys.pop(pod.uid, None)
        self.message_refresh.prune(self._context.memory.messages)
        self._context.memory.pending_reasons[pod.uid] = reason
        self._tools.reporter.warning(pod, pod_claims, reason, message)
        if pod.node is None and answer is not None and answer.blocker is not None:
            self._tools.reporter.report_pending(pod, answer.blocker, answer.detail)
        elif pod.node is None:
            self._tools.reporter.report_pending(pod, reason, message)
        _log.info("not placed", pod=pod.key, reason=reason.value, answer=message)

    def report_allocated(self, pod: pods.Pod, pod_claims: Iterable[claims.Claim]) -> None:
        """Remove the pending condition of a pod whose claims are all allocated."""
        if pod.pending is not None and all(claim.allocation is not None for claim in pod_claims):
            self._tools.reporter.report_allocated(pod)

    def report_event(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Warn on a pod and its claims without recording it."""
        self._tools.reporter.warning(pod, pod_claims, reason, message)

    def report_provisioning(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
        *,
        new: bool,
    ) -> None:
        """Report the provisioning status of a refused pod in its condition.

        Emits an event only if it is `new`; patches the condition only if it differs.
        """
        if new:
            tell = self._tools.reporter
            warns = reason is reasons.Reason.NO_NODE_SHAPE_FITS
            (tell.warning if warns else tell.normal)(pod, pod_claims, reason, message)
            _log.info("not placed yet", pod=pod.key, reason=reason.value, answer=message)
        if new or self._context.memory.pending_reasons.get(pod.uid) is not reason:
            self._context.memory.pending_reasons[pod.uid] = reason
            self._tools.reporter.report_pending(pod, reason, message)

    def _ungate(self, pod: pods.Pod) -> None:
        labels = self._context.view.population.namespaces.get(pod.namespace, {})
        if actions.should_ungate(pod, labels):
            self._writers.ungate(pod)

    def _lacks_advice(self, pod: pods.Pod, workload: allocator_types.Workload | None) -> bool:
        return workload is not None and pod.uid in self._context.memory.unadvised

    def _needs_refresh(self, uid: ids.PodUid, reason: reasons.Reason) -> bool:
        """Return whether to refresh a message; those of another component are left to it."""
        return self._context.memory.pending_reasons.get(
            uid
        ) is reason and self.message_refresh.is_due(uid, self._context.view)

    def describe_details(
        self,
        answer: allocator_types.Unschedulable,
        near: nearest_fit.NearestFit | None,
        note: str = "",
        view: snapshot.Snapshot | None = None,
    ) -> str:
        """Return sentences beside a refusal: holders, nearest fit, queue and plan."""
        node = near.node if near is not None else None
        parts = (
            self.holders.describe_rejection(view or self._context.view, answer, node),
            whatif_words.nearest_fit_message(near) if near is not None else "",
            note,
        )
        return ". ".join(part for part in parts if part)

    def record_explanation(
        self,
        pod: pods.Pod,
        answer: explanation.Result,
        near: nearest_fit.NearestFit | None = None,
        text: str = "",
    ) -> explanation.Explanation:
        """Record an answer in full, for readers."""
        now = clock.rfc3339(self._context.clock.now())
        full = explanation.Explanation(pod.key, now, answer, near, text)
        self._context.memory.explanations[pod.uid] = full
        return full

    def _find_nearest(
        self, workload: allocator_types.Workload | None, answer: allocator_types.Unschedulable
    ) -> nearest_fit.NearestFit | None:
        """Return the nearest fit; deferred where it takes too long now."""
        if workload is None or answer.blocker is not None:
            return None
        uid = workload.pod.uid
        if not self.explainer.can_explain(self._context.view, workload):
            self._context.memory.unadvised.add(uid)
            return None
        self._context.memory.unadvised.discard(uid)
        return self.explainer.explain(self._context.view, workload, answer)


def build_result_handler(
    state_now: state.SchedulerContext,
    hands: write_pool.WritePool,
    tools: write_pool.WriteDeps,
    deciding: settings.Settings,
    plan: Callable[[], backfill_plan.BackfillPlan | None],
) -> ResultHandler:
    """Build a `ResultHandler`; `plan` returns the backfill plan."""
    current = in_flight.InFlightClaims(state_now)
    adviser = explainer.FitExplainer(deciding, current.claim, state_now.stores.pods.get)
    return ResultHandler(
        state_now, hands, tools, adviser, holder_names.HolderNames(state_now, current, plan)
    )
