"""What queues may have beyond what they have now, while it is weighed which nodes to ask for."""

from driver.scheduling.queues import engine
from driver.scheduling.queues import messages as queue_messages
from driver.scheduling.queues import resources as queue_resources


class QueueHeadroom:
    """On the decider's thread. After the last `reset` queues have what they have."""

    def __init__(self, fair: engine.QueueEngine) -> None:
        self._engine = fair
        self._taken: list[str] = []

    def reset(self) -> None:
        """Nothing was taken yet."""
        for index, leaf in enumerate(self._taken):
            self._engine.charge_hypothetical(("brought", index), leaf, None)
        self._taken.clear()

    def reserve(self, leaf: str, taken: queue_resources.Amounts) -> str:
        """Count so much more for a queue: "" where it may have it, else why not, and it has not."""
        if self._engine.tree.is_implicit_only:
            return ""
        over = self._engine.exceeded_limit(leaf, taken)
        if over is not None:
            return queue_messages.limit_message(over)
        self._engine.charge_hypothetical(("brought", len(self._taken)), leaf, taken)
        self._taken.append(leaf)
        return ""
