"""Results of scheduling: placements are assumed in the view, written, and confirmed."""

from collections.abc import Iterable
from dataclasses import replace

from driver import clock, ids, names, reasons
from driver.controller import metrics as controller_metrics
from driver.controller.commit import decisions, write_pool
from driver.controller.scheduler import pending, state
from driver.controller.scheduler.explain import pending_reporter
from driver.controller.scheduler.queues import queue_usage
from driver.kube import workqueue
from driver.scheduling.allocator import allocation_result
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.lifecycle import actions
from driver.scheduling.snapshot import snapshot


class ResultHandler:
    """On the decider's thread; writes run on the pool."""

    def __init__(
        self,
        context: state.SchedulerContext,
        writer: decisions.DecisionWriter,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        usage: queue_usage.QueueUsage,
        reporter: pending_reporter.PendingReporter,
        metrics: controller_metrics.Metrics,
    ) -> None:
        self._context = context
        self._writer = writer
        self._items = items
        self._usage = usage
        self._reporter = reporter
        self._metrics = metrics

    def place(
        self,
        candidate: pending.PendingWorkload,
        workload: allocator_types.Workload,
        placement: allocator_types.Placement,
    ) -> bool:
        """Commit a pod's placement if its queue may have the devices; else report why not."""
        why = self.over_limit(candidate, placement.assignments)
        if why:
            limit = reasons.Reason.QUEUE_LIMIT_EXCEEDED
            self._reporter.pending(workload.pod, workload.open_claims, limit, why)
            return False
        self._context.memory.waiting.pop(candidate.item, None)
        self.commit(candidate.item, workload, placement)
        return True

    def over_limit(
        self,
        candidate: pending.PendingWorkload,
        assignments: Iterable[allocator_types.DeviceAssignment],
    ) -> str:
        """Return why the workload's queue may not have these devices; "" if it may."""
        leaf = self._usage.pod_queue(candidate.first)
        return self._usage.limit_message(leaf, (pick.result for pick in assignments))

    def commit(
        self,
        item: write_pool.WorkItem,
        workload: allocator_types.Workload,
        placement: allocator_types.Placement,
        *,
        gang: bool = False,
    ) -> None:
        """Commit a placement; a gang member is not bound before the others can be."""
        view = self._context.view
        # kube-scheduler gives up a binding that seems to last for 600 s: a clock that is an hour
        # behind would stamp one that has timed out before its pod was there.
        stamped = max(clock.rfc3339(self._context.clock.now()), workload.pod.created)
        allocations = allocation_result.build_allocations(view, workload, placement, stamped)
        if gang:
            allocations = allocation_result.with_binding_condition(
                allocations, names.GANG_READY, names.GANG_FAILED
            )
        decision = decisions.Decision(
            workload.pod,
            placement.node,
            allocations,
            workload,
            placement,
            scheduler_allocations=allocation_result.build_scheduler_allocations(
                view, workload, placement
            ),
            opens_gate=not gang and workload.pod.gates == (names.ALLOCATION_GATE,),
        )
        self._context.memory.begin_write(decision)
        view.begin_write(decision)
        self._reporter.placed(workload.pod, placement)
        self._writer.allocate(item, decision)

    def finish_writes(self) -> None:
        """Apply the results of finished writes."""
        memory, now = self._context.memory, self._context.clock.monotonic()
        for done in self._writer.drain_results():
            pod, decision = done.decision.pod, done.decision
            if done.in_doubt:
                # Its devices stay taken: a write without an answer may have happened, or yet will.
                memory.in_doubt[done.item.key] = replace(decision, doubtful=True)
                self._items.retry(done.item)
                continue
            self._end_write(pod.uid)
            if done.error is None:
                waited_s = self._context.clock.now().timestamp() - pending.parse_time(pod.created)
                self._metrics.pod_seconds.observe(max(0.0, waited_s))
                memory.placed[pod.uid] = actions.WrittenPod(decision.node, now, pod.verdict.message)
                self._items.forget(done.item)
                self._items.add(done.item)
            else:
                self._items.retry(done.item)

    def _end_write(self, uid: ids.PodUid) -> None:
        """End a write: its claims are read from the caches again."""
        decision = self._context.memory.end_write(uid)
        if decision is not None:
            for key in decision.allocations:
                self._context.updater.mark_changed("claim", key)
            self._context.refresh_view().end_write(decision)

    def repeat_write(self, item: write_pool.WorkItem) -> bool:
        """Repeat a pod's write without an answer; return whether there is one.

        If another allocator manages its devices by now, it is withdrawn.
        """
        decision = self._context.memory.in_doubt.pop(item.key, None)
        if decision is None:
            return False
        if self._context.is_stale():
            self._context.memory.in_doubt[item.key] = decision
            self._items.add_after(item, actions.STALE_RETRY_S)
            return True
        devices = (pick.device for pick in decision.placement.assignments)
        if snapshot.all_managed(self._context.refresh_view(), devices):
            self._writer.allocate(item, decision)
        else:
            self._writer.withdraw(item, decision)
        return True
