"""Pod scheduler: reconciles and places pods that belong to no gang and are not bound."""

from dataclasses import replace

import structlog

from driver.controller import metrics as controller_metrics
from driver.controller.commit import workload_writer, write_pool
from driver.controller.scheduler import pending, results, state
from driver.controller.scheduler.explain import pending_reporter
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.lifecycle import actions
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)


class PodScheduler:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        writers: workload_writer.WorkloadWriter,
        outcomes: results.ResultHandler,
        reporter: pending_reporter.PendingReporter,
        metrics: controller_metrics.Metrics,
    ) -> None:
        self._context = context
        self._writers = writers
        self._results = outcomes
        self._reporter = reporter
        self._metrics = metrics
        self._allocator = dra_allocator.Allocator(context.settings.allocator)

    def prepare(self) -> None:
        """Compute what every decision needs of the nodes, once the caches are filled."""
        self._allocator.prepare(self._context.refresh_view())

    def reconcile(
        self, item: write_pool.WorkItem, pod: pods.Pod, pod_claims: tuple[claims.Claim, ...]
    ) -> pending.PendingWorkload | float | None:
        """Return the workload if claims are to be allocated; else do what is due.

        A number is the seconds until the next reconcile.
        """
        now, patience = self._context.clock.monotonic(), self._context.settings.patience
        self._context.memory.unbound.add(pod.uid)
        placed = self._observe_placed(pod, pod_claims, now)
        due = actions.pod_action(pod, pod_claims, placed, now, patience)
        if isinstance(due, actions.Decide):
            if self._context.is_writing(due.open_claims):
                return None  # another pod's decision; the claim's change brings this pod back
            wait_s = (
                actions.STALE_RETRY_S
                if self._context.is_stale()
                else self._context.settle_delay_s(pod, due.open_claims)
            )
            if wait_s > 0:
                return wait_s
            split = self._context.split_claims(pod, due.open_claims)
            if isinstance(split, allocator_types.Unschedulable):
                self._context.memory.waiting[item] = None
                self._reporter.unschedulable(pod, due, split)
                return None
            if split:
                workload = split.workload(pod, due.allocated_claims)
                return pending.PendingWorkload(item, (workload,))
            due = actions.pod_action(pod, due.allocated_claims, placed, now, patience)
        self._context.memory.waiting.pop(item, None)
        self._reporter.allocated(pod, pod_claims)
        return self._act(pod, due)

    def schedule(self, candidate: pending.PendingWorkload) -> pending.ScheduleResult:
        """Decide for a workload, and commit or report the result."""
        candidate, workload = self._avoiding(candidate)
        with self._metrics.decision_seconds.time():
            answer = self._allocator.decide(self._context.view, workload)
        if isinstance(answer, allocator_types.Placement):
            placed = self._results.place(candidate, workload, answer)
            return pending.ScheduleResult.PLACED if placed else pending.ScheduleResult.LIMITED
        due = actions.Decide(workload.open_claims, workload.allocated_claims)
        self._reporter.unschedulable(workload.pod, due, answer, candidate)
        return pending.ScheduleResult.UNSCHEDULABLE

    def try_on_view(self, candidate: pending.PendingWorkload, view: snapshot.Snapshot) -> bool:
        """Decide on another view; without a fit nothing is reported."""
        candidate, workload = self._avoiding(candidate)
        answer = dra_allocator.allocate(view, workload, self._context.settings.allocator)
        if isinstance(answer, allocator_types.Placement):
            return self._results.place(candidate, workload, answer)
        return False

    def _avoiding(
        self, candidate: pending.PendingWorkload
    ) -> tuple[pending.PendingWorkload, allocator_types.Workload]:
        """Return the candidate and its workload with the nodes to avoid now."""
        (work,) = candidate.workloads
        work = replace(work, avoided_nodes=self._context.avoided_nodes(work.pod))
        return replace(candidate, workloads=(work,)), work

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
        _log.info("allocation cleared", pod=pod.key, node=back.node, scheduler=back.message)
        self._writers.release_refused(pod, back.claims, message)
        return None
