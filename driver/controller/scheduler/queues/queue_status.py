"""Writes Queue status: allocation, fair share, pending workloads (D7)."""

from collections.abc import Iterable

from driver.controller import metrics
from driver.controller.commit import object_writer
from driver.controller.scheduler import state
from driver.controller.scheduler.metrics import queues as figures
from driver.controller.scheduler.queues import queue_usage
from driver.resources import queues
from driver.scheduling.queues import engine, status

EVERY_S = 2.0
"""What changed is written no more often."""
_USAGE_S = 30.0
"""What changes with time alone is written no more often."""


class QueueStatusWriter:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        fair: engine.QueueEngine,
        charges: queue_usage.QueueUsage,
        hands: object_writer.ObjectWriter,
        counters: metrics.Metrics,
    ) -> None:
        self._counters = counters
        self._context = context
        self._engine = fair
        self._usage = charges
        self._writer = hands
        self._written: dict[str, tuple[float, object]] = {}

    def reconcile(self) -> float | None:
        """Write changed statuses; return the seconds until the next, None without queues."""
        live = self._context.stores.queues.snapshot().values()
        if not live:
            self._written.clear()
            self._counters.set_queue_values({})
            return None
        self._context.refresh_view()
        now = self._context.clock.now()
        self._usage.refresh(now.timestamp())
        self._write_changed(live)
        return EVERY_S

    def _write_changed(self, live: Iterable[queues.Queue]) -> None:
        now, moment = self._context.clock.now(), self._context.clock.monotonic()
        standings = self._engine.queue_statuses(now.timestamp())
        faults = self._engine.tree.faults
        self._counters.set_queue_values(figures.queue_values(standings, self._engine.tree.accepted))
        for queue in live:
            body = status.render(
                standings.get(queue.name),
                faults.get(queue.name),
                queue.generation,
                now,
                queue.status,
            )
            last, written = self._written.get(queue.name, (-_USAGE_S, None))
            stale = moment - last >= _USAGE_S and body != queue.status
            new = not status.is_same_status(body, queue.status) and body != written
            if new or stale:
                self._written[queue.name] = moment, body
                self._writer.write_queue_status(queue, {**dict.fromkeys(queue.status), **body})
