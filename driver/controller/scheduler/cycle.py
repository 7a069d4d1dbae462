"""Scheduling cycle: serves pending workloads in the order of their queues."""

from collections.abc import Iterator, Sequence

from driver.controller.commit import write_pool
from driver.controller.scheduler import backfill, pending, state, workload_scheduler
from driver.controller.scheduler.explain import refresh
from driver.controller.scheduler.queues import pending_order

_PLACED = pending.ScheduleResult.PLACED
_STRANDED_S = 5.0
"""Between two looks at a bound pod whose node has no room for its claims."""


class SchedulingCycle:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        order: pending_order.PendingOrder,
        workloads: workload_scheduler.WorkloadScheduler,
        first: backfill.BackfillReservation,
        refreshes: refresh.MessageRefresh,
        guard: pending.Guard,
    ) -> None:
        self._context = context
        self._order = order
        self._workloads = workloads
        self._backfill = first
        self._refresh = refreshes
        self._guard = guard
        self._release_count = 0
        self._scanned_revision = -1

    def run(
        self, due: Sequence[pending.PendingWorkload]
    ) -> Iterator[tuple[write_pool.WorkItem, float]]:
        """Schedule due workloads; yield items to enqueue again, each after some seconds."""
        waiting = self._context.memory.waiting
        for workload in due:
            waiting[workload.item] = workload
        self._context.refresh_view()
        if self._backfill.refresh() or self._needs_full_pass(due):
            # What is free now is for the first in order, whoever is due.
            yield write_pool.WAKE, 0.0
            return
        yield from self._run_pass(due)
        if waiting and (
            self._context.view.revision != self._scanned_revision or self._refresh.is_behind
        ):
            # Nothing may wake those who wait, and what they were told may be old.
            yield write_pool.WAKE, refresh.REFRESH_S

    def _needs_full_pass(self, due: Sequence[pending.PendingWorkload]) -> bool:
        """Return, once per release of devices, whether workloads that are not due are pending."""
        freed = self._context.view.release_count
        if not due or freed == self._release_count:
            return False
        self._release_count = freed
        return not self._covers_pending(due)

    def _covers_pending(self, due: Sequence[pending.PendingWorkload]) -> bool:
        waiting = self._context.memory.waiting
        return len(due) >= sum(candidate is not None for candidate in waiting.values())

    def _run_pass(
        self, due: Sequence[pending.PendingWorkload]
    ) -> Iterator[tuple[write_pool.WorkItem, float]]:
        """Schedule the due workloads in order."""
        if not due:
            return
        complete = self._covers_pending(due)
        if complete:
            self._refresh.begin_pass()
        self._order.refresh()
        self._backfill.release()
        placed = False
        for candidate, later in self._iterate_due(due):
            served = pending.ScheduleResult.LIMITED
            with self._guard(candidate.item):
                served = self._schedule_workload(candidate)
                self._update_backfill(candidate, served, later=later)
            placed |= served is _PLACED
            again_s = self._retry_after_s(candidate)
            if again_s is not None and served is not _PLACED:
                yield candidate.item, again_s
            self._order.refresh()
        self._backfill.hold()
        if complete and not placed:
            self._scanned_revision = self._context.view.revision
        turns_in = self._backfill.expires_in_s()
        if turns_in is not None:
            yield write_pool.WAKE, turns_in
        yield from ((item, 0.0) for item in self._workloads.drain_used_reservations())

    def _iterate_due(
        self, due: Sequence[pending.PendingWorkload]
    ) -> Iterator[tuple[pending.PendingWorkload, bool]]:
        """Yield due workloads in order, and whether an earlier one holds capacity."""
        by_item = {workload.item: workload for workload in due}
        first = (
            self._context.memory.waiting.get(self._backfill.item) if self._backfill.item else None
        )
        for workload in self._order.in_order({**by_item, **({first.item: first} if first else {})}):
            if workload.item in by_item:
                yield workload, self._backfill.is_blocking
            elif not self._backfill.is_blocking:
                self._backfill.block(workload.item)

    def _update_backfill(
        self, workload: pending.PendingWorkload, served: pending.ScheduleResult, *, later: bool
    ) -> None:
        """Reserve the earliest start for the first workload that fits nowhere."""
        if workload.item == self._backfill.item:
            if served is pending.ScheduleResult.RESTING:
                self._backfill.block(workload.item)
            elif served is not pending.ScheduleResult.UNSCHEDULABLE:
                self._backfill.drop()
        if served is pending.ScheduleResult.UNSCHEDULABLE and not later:
            self._backfill.reserve(workload, starves=self._starves_in(workload) == 0.0)

    def _starves_in(self, candidate: pending.PendingWorkload) -> float | None:
        """Return the seconds to the workload's starvation bound, 0 past it; None: no bound."""
        bound_s = self._backfill.starvation_bound_s(queues=self._order.has_queues)
        if bound_s is None:
            return None
        now = self._context.clock.now().timestamp()
        return max(self._order.since(candidate) + bound_s - now, 0.0)

    def _retry_after_s(self, workload: pending.PendingWorkload) -> float | None:
        """Return the seconds until a back-off, a gang's rest or a preemption pause ends."""
        if workload.is_bound:
            return _STRANDED_S
        now, memory = self._context.clock.monotonic(), self._context.memory
        ends = [memory.refused.next_retry(work.pod, now) for work in workload.workloads]
        starves_in = self._starves_in(workload)
        more = (
            memory.resting.get(workload.item),
            memory.retry_at.pop(workload.item, None),
            self._backfill.next_attempt(workload.item),
            now + starves_in if starves_in else None,
        )
        ends_ahead = [end for end in (*ends, *more) if end is not None and end > now]
        return min(ends_ahead) - now if ends_ahead else None

    def _schedule_workload(self, workload: pending.PendingWorkload) -> pending.ScheduleResult:
        """Schedule a workload, unless a claim of it is being written.

        A second decision for a claim would hide the first one's devices. The claim's change
        enqueues this pod again.
        """
        if self._context.is_writing(workload.open_claims):
            return pending.ScheduleResult.RESTING
        return self._workloads.schedule(workload)
