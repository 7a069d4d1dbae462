"""Order of pending workloads: by their queues; without queues by priority, age and name."""

from collections.abc import Iterator, Mapping

from driver.controller.commit import write_pool
from driver.controller.scheduler import pending, state
from driver.controller.scheduler.eviction import reservations
from driver.controller.scheduler.queues import queue_usage
from driver.scheduling.queues import engine, order


class PendingOrder:
    """On the decider's thread: `refresh` before each use that follows a placement."""

    def __init__(
        self,
        context: state.SchedulerContext,
        fair: engine.QueueEngine,
        usage: queue_usage.QueueUsage,
        reservation_controller: reservations.ReservationController,
    ) -> None:
        self._context = context
        self._engine = fair
        self._usage = usage
        self._reservations = reservation_controller

    @property
    def has_queues(self) -> bool:
        """True if there is a Queue object."""
        return not self._engine.tree.is_implicit_only

    def refresh(self) -> None:
        """Report what was placed since to the queues."""
        self._usage.refresh(self._now())

    def queue(self, workload: pending.PendingWorkload) -> str:
        """Return the workload's queue: a gang's is that of its first pod."""
        return self._engine.pod_queue(workload.first)

    def since(self, workload: pending.PendingWorkload) -> float:
        """Return since when a workload is pending, in seconds since the epoch."""
        return pending.parse_time(self._reservations.pending_since(workload))

    def all_in_order(self) -> list[pending.PendingWorkload]:
        """Return all pending workloads as if each were scheduled in turn."""
        everyone = self._everyone()
        if not self.has_queues:
            return sorted(everyone, key=self._priority_key)
        by_item = {workload.item: workload for workload in everyone}
        return [
            by_item[entry.key]
            for entry in self._engine.hypothetical_order(
                map(self._queue_entry, everyone), self._now()
            )
            if isinstance(entry.key, write_pool.WorkItem)
        ]

    def in_order(
        self, workloads: Mapping[write_pool.WorkItem, pending.PendingWorkload]
    ) -> Iterator[pending.PendingWorkload]:
        """Yield workloads in order, each next one by the charges so far."""
        if not self.has_queues:
            yield from sorted(workloads.values(), key=self._priority_key)
            return
        everyone = map(self._queue_entry, self._everyone())
        for entry in self._engine.schedule_order(everyone, self._now()):
            workload = (
                workloads.get(entry.key) if isinstance(entry.key, write_pool.WorkItem) else None
            )
            if workload is not None:
                yield workload

    def _everyone(self) -> list[pending.PendingWorkload]:
        waiting = self._context.memory.waiting.values()
        return [workload for workload in waiting if workload is not None]

    def _queue_entry(self, workload: pending.PendingWorkload) -> order.PendingEntry:
        requested = self._engine.requested_amounts(self._context.view, workload.open_claims)
        return order.PendingEntry(
            workload.item,
            self.queue(workload),
            workload.priority,
            self.since(workload),
            requested,
        )

    def _priority_key(self, workload: pending.PendingWorkload) -> tuple[int, str, str]:
        """Return the sort key: priority, age and name."""
        return -workload.priority, self._reservations.pending_since(workload), workload.item.key

    def _now(self) -> float:
        return self._context.clock.now().timestamp()
