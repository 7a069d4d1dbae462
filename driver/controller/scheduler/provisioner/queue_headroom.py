"""Queue headroom during planning: limits against usage plus the planned devices."""

from driver.scheduling.queues import engine
from driver.scheduling.queues import messages as queue_messages
from driver.scheduling.queues import resources as queue_resources


class QueueHeadroom:
    """On the decider's thread. `reset` restores the actual usage."""

    def __init__(self, fair: engine.QueueEngine) -> None:
        self._engine = fair
        self._taken: list[str] = []

    def reset(self) -> None:
        """Drop the planned usage."""
        for index, leaf in enumerate(self._taken):
            self._engine.charge_hypothetical(("brought", index), leaf, None)
        self._taken.clear()

    def reserve(self, leaf: str, taken: queue_resources.Amounts) -> str:
        """Add planned usage to a queue: "" if allowed, else why not, and nothing is added."""
        if self._engine.tree.is_implicit_only:
            return ""
        over = self._engine.exceeded_limit(leaf, taken)
        if over is not None:
            return queue_messages.limit_message(over)
        self._engine.charge_hypothetical(("brought", len(self._taken)), leaf, taken)
        self._taken.append(leaf)
        return ""
