"""Reconciles claims: node refusals, idle GPUs, holds that have served, unused allocations."""

from driver.controller.commit import workload_writer, write_pool
from driver.controller.scheduler import state
from driver.controller.scheduler.eviction import claim_remediation, idle_reclaim
from driver.kube import workqueue
from driver.resources.dra import claims
from driver.scheduling.lifecycle import actions


class ClaimReconciler:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        writers: workload_writer.WorkloadWriter,
        remediation: claim_remediation.ClaimRemediation,
        idle: idle_reclaim.IdleReclaim,
    ) -> None:
        self._context = context
        self._items = items
        self._writers = writers
        self._remediation = remediation
        self._idle = idle

    def reconcile(self, item: write_pool.WorkItem) -> float | None:
        """Reconcile a claim; return the seconds until the next reconcile."""
        memory = self._context.memory
        memory.gang_condition_versions.pop(item.key, None)
        claim = self._context.stores.claims.get(item.key)
        if claim is None:
            memory.unreserved.pop(item.key, None)
            self._remediation.forget(item.key)
            self._items.forget(item)
            return None
        waits_s = (
            self._remediation.reconcile(claim),
            self._idle.reconcile(claim),
            self._release(claim),
        )
        return min((wait_s for wait_s in waits_s if wait_s is not None), default=None)

    def _release(self, claim: claims.Claim) -> float | None:
        """Drop holds that have served, and an allocation that no pod uses."""
        now, context = self._context.clock.monotonic(), self._context
        since = self._unreserved_since(claim, now)
        match actions.claim_action(
            claim, context.stores.pods.get, since, now, context.settings.patience
        ):
            case actions.DropHolds(holds=holds):
                self._writers.drop_holds(claim, holds)
            case actions.ClearUnused():
                context.memory.unreserved.pop(claim.key, None)
                self._writers.clear((claim,))
            case actions.Recheck(after_s=after_s):
                return after_s
            case actions.Nothing():
                pass
        return None

    def _unreserved_since(self, claim: claims.Claim, now: float) -> float | None:
        memory = self._context.memory
        if not actions.is_unused(claim, self._context.refresh_view()):
            memory.unreserved.pop(claim.key, None)
            return None
        return memory.unreserved.setdefault(claim.key, now)
