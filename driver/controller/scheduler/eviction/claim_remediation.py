"""Acts on claims that nodes refused; `lifecycle.claim_remediation` decides. Paced per owner.

Owned by the decider's thread; writes run on the pool.
"""

from typing import assert_never

from driver import clock, ids, reasons
from driver.controller.commit import reporter, workload_writer
from driver.controller.informers import stores
from driver.resources.dra import claims
from driver.scheduling.lifecycle import claim_remediation, eviction_backoff


class ClaimRemediation:
    """Reconciles one claim at a time. Its state may be lost."""

    def __init__(
        self,
        caches: stores.Stores,
        hands: workload_writer.WorkloadWriter,
        reports: reporter.Reporter,
        rules: claim_remediation.RemediationRules,
        time: clock.Clock,
    ) -> None:
        self._caches = caches
        self._writers = hands
        self._reporter = reports
        self._rules = rules
        self._clock = time
        self._pacing = eviction_backoff.EvictionBackoff()
        self._reported: dict[ids.Key, str] = {}

    def reconcile(self, claim: claims.Claim) -> float | None:
        """Act on the claim's pods; return the seconds until the next reconcile."""
        if not claim.device_statuses:
            self.forget(claim.key)
            return None
        acts = claim_remediation.actions_for(
            claim,
            stores.consumer_pods(self._caches, claim),
            self._clock.now(),
            self._rules,
        )
        waits = [self._act(claim, act) for act in acts]
        return min((wait for wait in waits if wait is not None), default=None)

    def forget(self, claim: ids.Key) -> None:
        """Forget a claim that is gone or has no device status."""
        self._reported.pop(claim, None)

    def _act(self, claim: claims.Claim, act: claim_remediation.Action) -> float | None:
        match act:
            case claim_remediation.RetryPrepare(pod=pod, cleared_at=stamp):
                self._writers.retry_prepare(claim, pod, stamp)
            case claim_remediation.Evict():
                return self._evict(claim, act)
            case claim_remediation.ReportKept(pod=pod, since=since, message=message):
                if self._reported.get(claim.key) != since:
                    self._reported[claim.key] = since
                    self._reporter.event(
                        pod, (claim,), reasons.Reason.EVICTION_NOT_ALLOWED, message
                    )
            case claim_remediation.Recheck(after_s=after_s):
                return after_s
            case _:
                assert_never(act)
        return None

    def _evict(self, claim: claims.Claim, act: claim_remediation.Evict) -> float | None:
        now = self._clock.monotonic()
        left_s = self._pacing.remaining_s(act.owner.uid, now)
        if left_s > 0:
            return left_s
        self._pacing.record_eviction(act.owner.uid, now)
        text = f"Evicted, so that {act.owner.kind} {act.owner.name} makes another: {act.message}"
        self._writers.evict_user(claim, act.pod, text)
        # What a disruption budget forbids now is tried again, at this owner's pace.
        return self._pacing.remaining_s(act.owner.uid, now)
