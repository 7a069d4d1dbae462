"""Pod scheduler: reconciles and places pods that belong to no gang."""

from dataclasses import replace

import structlog

from driver import ids, reasons
from driver.controller.commit import write_pool
from driver.controller.scheduler import pending, results, state
from driver.controller.scheduler.eviction import bound_pods
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator, ownership, settings
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.lifecycle import actions
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)


class PodScheduler:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        hands: write_pool.WritePool,
        tools: write_pool.WriteDeps,
        placer: results.ResultHandler,
        deciding: settings.Settings,
        patience: actions.BindTimeouts,
    ) -> None:
        self._context = context
        self._writers = hands
        self._tools = tools
        self._results = placer
        self._settings = deciding
        self._allocator = dra_allocator.Allocator(deciding)
        self._patience = patience
        self._owners = ownership.OwnershipResolver()
        self._bound = bound_pods.BoundPods(context, hands, tools, placer, self._owners)

    def reconcile(
        self,
        item: write_pool.WorkItem,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        *,
        stale: bool,
    ) -> pending.PendingWorkload | float | None:
        """Return the workload if claims are to be allocated; else do what is due.

        A number is the seconds until the next reconcile.
        """
        if pod.node is not None:
            return self._reconcile_bound(item, pod, pod_claims, stale=stale)
        now = self._context.clock.monotonic()
        self._context.memory.unbound.add(pod.uid)
        placed = self._observe_placed(pod, pod_claims, now)
        due = actions.pod_action(pod, pod_claims, placed, now, self._patience)
        if isinstance(due, actions.Decide):
            if any(claim.key in self._context.memory.writing for claim in due.open_claims):
                return None  # another pod's decision; the claim's change brings this pod back
            wait_s = (
                actions.STALE_RETRY_S
                if stale
                else self._context.settle_delay_s(pod, due.open_claims)
            )
            if wait_s > 0:
                return wait_s
            mine = self.managed_claims(pod, due.open_claims)
            if isinstance(mine, allocator_types.Unschedulable):
                self._context.memory.waiting[item] = None
                self._results.report_unschedulable(pod, due, mine)
                return None
            if mine:
                return pending.PendingWorkload(
                    item, (allocator_types.Workload(pod, mine, due.allocated_claims),)
                )
            due = actions.pod_action(pod, due.allocated_claims, placed, now, self._patience)
        self._context.memory.waiting.pop(item, None)
        self._results.report_allocated(pod, pod_claims)
        return self._act(pod, due)

    def _reconcile_bound(
        self,
        item: write_pool.WorkItem,
        pod: pods.Pod,
        held: tuple[claims.Claim, ...],
        *,
        stale: bool,
    ) -> pending.PendingWorkload | float | None:
        """Return the workload if a bound pod's claims are to be allocated on its node."""
        due = self._bound.reconcile(item, pod, held, stale=stale)
        if not isinstance(due, pending.PendingWorkload):
            self._context.memory.waiting.pop(item, None)
            self._results.report_allocated(pod, held)
        return due

    def _schedule_bound(
        self, candidate: pending.PendingWorkload, vet: pending.QuotaCheck
    ) -> pending.ScheduleResult:
        """Allocate on the pod's own node, or report why not."""
        (workload,) = candidate.workloads
        node = str(workload.pod.node)
        view = reservation_overlay.WithoutReservations(self._context.view, (), [ids.NodeName(node)])
        answer = dra_allocator.allocate(view, workload, self._settings)
        if isinstance(answer, allocator_types.Placement):
            placed = self._commit(candidate, workload, answer, vet)
            return pending.ScheduleResult.PLACED if placed else pending.ScheduleResult.STRANDED
        self._bound.give_up(
            workload.pod, workload.open_claims, allocator_messages.unschedulable_on_node(answer)
        )
        return pending.ScheduleResult.STRANDED

    def schedule(
        self, candidate: pending.PendingWorkload, vet: pending.QuotaCheck
    ) -> pending.ScheduleResult:
        """Decide for a workload, and commit or report the result."""
        if candidate.is_bound:
            return self._schedule_bound(candidate, vet)
        workload = self._workload(candidate)
        with self._tools.metrics.decision_seconds.time():
            answer = self._allocator.decide(self._context.view, workload)
        if isinstance(answer, allocator_types.Placement):
            placed = self._commit(candidate, workload, answer, vet)
            return pending.ScheduleResult.PLACED if placed else pending.ScheduleResult.LIMITED
        due = actions.Decide(workload.open_claims, workload.allocated_claims)
        self._results.report_unschedulable(workload.pod, due, answer, workload, note=candidate.note)
        return pending.ScheduleResult.UNSCHEDULABLE

    def try_on_view(
        self, candidate: pending.PendingWorkload, view: snapshot.Snapshot, vet: pending.QuotaCheck
    ) -> bool:
        """Decide on another view; without a fit nothing is reported."""
        if candidate.is_bound:
            return False
        workload = self._workload(candidate)
        answer = dra_allocator.allocate(view, workload, self._settings)
        if isinstance(answer, allocator_types.Placement):
            return self._commit(candidate, workload, answer, vet)
        return False

    def _workload(self, candidate: pending.PendingWorkload) -> allocator_types.Workload:
        (workload,) = candidate.workloads
        return replace(workload, avoided_nodes=self._context.avoided_nodes(workload.pod))

    def _commit(
        self,
        candidate: pending.PendingWorkload,
        workload: allocator_types.Workload,
        answer: allocator_types.Placement,
        vet: pending.QuotaCheck,
    ) -> bool:
        why = vet(pick.result for pick in answer.assignments)
        if why:
            self._results.report_pending(
                workload.pod, workload.open_claims, reasons.Reason.QUEUE_LIMIT_EXCEEDED, why
            )
            return False
        self._context.memory.waiting.pop(candidate.item, None)
        self._results.commit(candidate.item, workload, answer)
        return True

    def managed_claims(
        self, pod: pods.Pod, open_claims: tuple[claims.Claim, ...]
    ) -> tuple[claims.Claim, ...] | allocator_types.Unschedulable:
        """Return the pod's open claims that the controller allocates."""
        return self._owners.managed_claims(self._context.refresh_view(), pod, open_claims)

    def _observe_placed(
        self, pod: pods.Pod, pod_claims: tuple[claims.Claim, ...], now: float
    ) -> actions.WrittenPod | None:
        node = actions.hold_node(pod, pod_claims)
        if node is None:
            return None
        written_pod, allocated = (
            self._context.memory.placed.get(pod.uid),
            actions.last_allocated(pod, pod_claims),
        )
        placed = actions.observe(written_pod, pod, node, now, allocated)
        self._context.memory.placed[pod.uid] = placed
        return placed

    def _act(self, pod: pods.Pod, due: actions.Action) -> float | None:
        match due:
            case actions.Recheck(after_s=after_s):
                return after_s
            case actions.ReleaseAllocation() as back:
                return self._clear_refused(pod, back)
            case actions.RemoveReservation(claims=reserved):
                self._context.memory.placed.pop(pod.uid, None)
                self._writers.unreserve_pod(pod, reserved)
            case actions.Ungate():
                self._writers.ungate(pod)
            case _:
                pass
        return None

    def _clear_refused(self, pod: pods.Pod, back: actions.ReleaseAllocation) -> float | None:
        wait_s = self._context.unreserve_delay_s(back.claims)
        if wait_s > 0:
            return wait_s
        lasts_s = self._context.record_refusal(pod, back.node, back.message)
        self._context.memory.placed.pop(pod.uid, None)
        message = (
            f"Freed the devices on {back.node}, excluded for {lasts_s:.0f} s at least: "
            f'kube-scheduler refused the pod there: "{back.message}"'
        )
        reason = reasons.Reason.ALLOCATION_CLEARED
        self._tools.reporter.warning(pod, back.claims, reason, message)
        self._tools.metrics.count_decision("taken_back")
        _log.info("allocation cleared", pod=pod.key, node=back.node, scheduler=back.message)
        self._writers.release(pod, back.claims)
        return None
