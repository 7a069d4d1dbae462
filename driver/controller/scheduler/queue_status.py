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


class Accounting:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.State,
        fair: engine.QueueEngine,
        charges: queue_usage.Charging,
        hands: object_writer.Scribe,
        counters: metrics.Metrics,
    ) -> None:
        self._counters = counters
        self._known = known
        self._engine = fair
        self._charges = charges
        self._hands = hands
        self._written: dict[str, tuple[float, object]] = {}

    def look(self) -> float | None:
        """Write what changed; seconds until it is to be looked at again, None without queues."""
        found = self._known.stores.teams.snapshot().values()
        if not found:
            self._written.clear()
            self._counters.show_queues({})
            return None
        self._known.bring()
        now = self._known.clock.now()
        self._charges.bring(now.timestamp())
        self._tell(found)
        return EVERY_S

    def _tell(self, found: Iterable[queues.Queue]) -> None:
        now, moment = self._known.clock.now(), self._known.clock.monotonic()
        standings = self._engine.queue_statuses(now.timestamp())
        faults = self._engine.tree.faults
        self._counters.show_queues(figures.of_standings(standings, self._engine.tree.accepted))
        for one in found:
            body = status.render(
                standings.get(one.name), faults.get(one.name), one.generation, now, one.status
            )
            last, said = self._written.get(one.name, (-_USAGE_S, None))
            stale = moment - last >= _USAGE_S and body != one.status
            new = not status.is_same_status(body, one.status) and body != said
            if new or stale:
                self._written[one.name] = moment, body
                self._hands.queue(one, {**dict.fromkeys(one.status), **body})
