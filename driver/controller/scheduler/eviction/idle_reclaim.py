"""Idle GPUs: reported, or reclaimed, by the policy of the pods' queue (D7)."""

import structlog

from driver import reasons
from driver.controller.commit import reporter, workload_writer, write_pool
from driver.controller.informers import stores
from driver.controller.scheduler import state
from driver.resources import durations, queues
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.preemption import faulty, idle, victims
from driver.scheduling.queues import engine

_log = structlog.get_logger(__name__)
_RETRY_S = 60.0
"""What was evicted and is still there is looked at again."""


class IdleReclaim:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        fair: engine.QueueEngine,
        book: victims.VictimIndex,
        hands: workload_writer.WorkloadWriter,
        reports: reporter.Reporter,
    ) -> None:
        self._context = context
        self._engine = fair
        self._victims = book
        self._writer = hands
        self._reporter = reports
        self._reported: dict[victims.VictimKey, str] = {}

    def reconcile(self, claim: claims.Claim) -> float | None:
        """Act on the pods of a claim; return the seconds until the next reconcile."""
        if not any(status.activity is not None for status in claim.device_statuses):
            return None
        waits = [
            self._reconcile_victim(key)
            for key in sorted({self._victims.victim_key(p) for p in self._users(claim)})
        ]
        return min((status for status in waits if status is not None), default=None)

    def _users(self, claim: claims.Claim) -> list[pods.Pod]:
        users = stores.claim_users(self._context.stores, claim.key)
        return [pod for pod in users if pod.node and not pod.deleting]

    def _reconcile_victim(self, key: victims.VictimKey) -> float | None:
        unit = self._victims.all_victims(self._context.refresh_view()).get(key)
        if unit is None:
            return None
        leaf = self._engine.pod_queue(unit.pods[0].pod)
        policy = self._engine.queue(leaf).idle
        since = (
            idle.idle_since(unit, self._context.stores.claims.get) if policy is not None else None
        )
        if policy is None or since is None:
            self._reported.pop(key, None)
            return None
        idle_s = (self._context.clock.now() - since).total_seconds()
        if idle_s < policy.after_s:
            return policy.after_s - idle_s
        return self._act(unit, leaf, policy, idle_s)

    def _act(
        self, unit: victims.Victim, leaf: str, policy: queues.IdleReclaim, idle_s: float
    ) -> float | None:
        """Report once, or evict until gone if an owner would recreate the pods."""
        idle_text = durations.format_duration(idle_s)
        words = (
            f"{unit.description} did nothing with its GPUs for {idle_text}; "
            f"queue {leaf} allows {durations.format_duration(policy.after_s)}"
        )
        stays = faulty.irreplaceable_reason(unit)
        if policy.action == "evict" and not stays:
            _log.info("idle", unit=unit.name, idle_s=idle_s)
            self._report(unit, reasons.Reason.IDLE_EVICTED, f"Evicted: {words}")
            return _RETRY_S
        message = f"{words}: {stays}" if policy.action == "evict" else words
        if self._reported.get(unit.key) != leaf:
            live = self._victims.all_victims(self._context.view)
            self._reported = {key: name for key, name in self._reported.items() if key in live}
            self._reported[unit.key] = leaf
            self._report(unit, reasons.Reason.IDLE, message)
        return None

    def _report(self, unit: victims.Victim, reason: reasons.Reason, words: str) -> None:
        for holder in unit.pods:
            pod_claims = stores.pod_claims(self._context.stores, holder.pod)
            if reason is reasons.Reason.IDLE_EVICTED:
                item = (
                    write_pool.WorkItem("claim", pod_claims[0].key)
                    if pod_claims
                    else write_pool.WAKE
                )
                self._writer.evict(item, holder.pod, pod_claims, reason, words)
            else:
                self._reporter.event(holder.pod, pod_claims, reason, words)
