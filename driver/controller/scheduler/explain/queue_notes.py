"""Notes on the queue of a pending workload, and on a backfill plan for it or in its way."""

from driver.controller.scheduler import backfill, pending
from driver.controller.scheduler.explain import holder_names
from driver.scheduling.queues import engine
from driver.scheduling.queues import messages as queue_messages


class QueueNotes:
    """On the decider's thread."""

    def __init__(
        self,
        fair: engine.QueueEngine,
        first: backfill.BackfillReservation,
        holders: holder_names.HolderNames,
    ) -> None:
        self._engine = fair
        self._backfill = first
        self._holders = holders

    def describe(self, workload: pending.PendingWorkload) -> str:
        """Return the sentences; "" if there is nothing to say."""
        own = workload.item == self._backfill.item
        meets = workload.gang is not None and self._backfill.is_blocking
        plan = self._holders.describe_plan(own=own) if own or meets else ""
        if self._engine.tree.is_implicit_only:
            return plan
        leaf = self._engine.pod_queue(workload.first)
        share = queue_messages.share_message(leaf, self._engine.queue_status(leaf))
        return ". ".join(part for part in (share, plan) if part)
