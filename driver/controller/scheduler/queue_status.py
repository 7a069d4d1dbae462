"""How queues stand, kept in their status: what they have, what is fair, who waits (D7)."""

from collections.abc import Iterable

from driver.controller import metrics
from driver.controller.commit import object_writer
from driver.controller.scheduler import queue_usage, state
from driver.controller.scheduler.metrics import queues as figures
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
        known: state.SchedulerContext,
        fair: engine.QueueEngine,
        charges: queue_usage.QueueUsage,
        hands: object_writer.ObjectWriter,
        counters: metrics.Metrics,
    ) -> None:
        self._counters = counters
        self._known = known
        self._engine = fair
        self._charges = charges
        self._hands = hands
        self._written: dict[str, tuple[float, object]] = {}

    def reconcile(self) -> float | None:
        """Write what changed; seconds until it is to be looked at again, None without queues."""
        found = self._known.stores.queues.snapshot().values()
        if not found:
            self._written.clear()
            self._counters.set_queue_values({})
            return None
        self._known.refresh_view()
        now = self._known.clock.now()
        self._charges.refresh(now.timestamp())
        self._tell(found)
        return EVERY_S

    def _tell(self, found: Iterable[queues.Queue]) -> None:
        now, moment = self._known.clock.now(), self._known.clock.monotonic()
        standings = self._engine.queue_statuses(now.timestamp())
        faults = self._engine.tree.faults
        self._counters.set_queue_values(figures.queue_values(standings, self._engine.tree.accepted))
        for one in found:
            body = status.render(
                standings.get(one.name), faults.get(one.name), one.generation, now, one.status
            )
            last, said = self._written.get(one.name, (-_USAGE_S, None))
            stale = moment - last >= _USAGE_S and body != one.status
            new = not status.is_same_status(body, one.status) and body != said
            if new or stale:
                self._written[one.name] = moment, body
                self._hands.write_queue_status(one, {**dict.fromkeys(one.status), **body})
