"""Tracks claims after Prepare: reports readiness, and rechecks transient refusals (D8).

The kubelet retries a minute or more after a refusal. When a check finds that the claim would be
prepared now, that is reported; the controller then makes the kubelet retry at once. A check cannot
see every cause: a claim refused again right after is checked with back-off.

Readiness is reported at the next check: pods that start together get the processor first, and a
claim that is gone by then costs no call.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import structlog

from driver import clock, errors, ids, names, reasons
from driver.kube import backoff
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint

_log = structlog.get_logger(__name__)
EVERY_S: Final = 2.0
WATCH_S: Final = 600.0
"""After the last refusal; the kubelet has come back several times by then."""
MAX_WATCHED: Final = 256
"""Claims watched at once; the one refused longest ago is dropped first."""
_AFTER_A_CLEARING = backoff.Pace(base_s=EVERY_S, max_s=60.0)

Check = Callable[[ports.ClaimRef], ports.Refused | None]
"""Returns whether a claim would be refused now; changes nothing. Raises RationError if unknown."""


@dataclass(slots=True)
class _Watched:
    """A claim refused at `since` and checked from `due` on (monotonic seconds)."""

    ref: ports.ClaimRef
    since: float
    due: float
    clearings: int
    cleared: bool = False


class ReadinessTracker:
    """Thread safe; only `run` and `check_due` wait."""

    def __init__(self, conditions: ports.Conditions, check: Check, time: clock.Clock) -> None:
        self._conditions = conditions
        self._check = check
        self._clock = time
        self._lock = threading.Lock()
        self._watched: dict[ids.ClaimUid, _Watched] = {}
        self._ready: dict[ids.ClaimUid, ports.ClaimRef] = {}

    def set_prepared(self, ref: ports.ClaimRef) -> None:
        """Record that the claim is ready."""
        with self._lock:
            self._watched.pop(ref.uid, None)
            self._ready[ref.uid] = ref

    def set_refused(
        self, ref: ports.ClaimRef, reason: reasons.Reason, message: str, *, permanent: bool = False
    ) -> None:
        """Record a refusal, transient or `permanent`."""
        with self._lock:
            self._ready.pop(ref.uid, None)
            previous = self._watched.pop(ref.uid, None)
            if not permanent:
                self._watch(ref, previous.clearings if previous else 0)
            self._report(ref, reason, message, holds=False, permanent=permanent)

    def remove(self, ref: ports.ClaimRef) -> None:
        """Forget an unprepared claim; the API server drops its status with the allocation."""
        with self._lock:
            self._watched.pop(ref.uid, None)
            self._ready.pop(ref.uid, None)

    def restore(self, records: Iterable[checkpoint.Record]) -> None:
        """Report claims prepared before this process, in case the last one could not."""
        for record in records:
            if record.state is checkpoint.State.COMPLETED:
                self.set_prepared(record.claim)

    def run(self, stop: threading.Event) -> None:
        """Check until stopped; a thread's target."""
        while not self._clock.wait(stop, EVERY_S):
            self.check_due(stop)

    def check_due(self, stop: threading.Event) -> None:
        """Report ready claims, and check each claim that is due once."""
        self._report_ready()
        for watched in self._due_claims():
            if stop.is_set():
                return
            try:
                refusal = self._check(watched.ref)
            except errors.NotFound:
                self.remove(watched.ref)
            except errors.Unreachable:
                return  # nor would the API server answer for the others
            except errors.RationError as e:
                _log.debug("refusal not looked at", claim_uid=watched.ref.uid, error=str(e))
            else:
                self._apply_check(watched, refusal)

    def _report_ready(self) -> None:
        with self._lock:
            for ref in self._ready.values():
                self._report(ref, reasons.Reason.PREPARED, "ready on its node", holds=True)
            self._ready.clear()

    def _apply_check(self, watched: _Watched, refusal: ports.Refused | None) -> None:
        with self._lock:
            if self._watched.get(watched.ref.uid) is not watched:
                return  # the kubelet was here meanwhile
            if refusal is None:
                watched.cleared = True
                watched.clearings += 1
                text = "would be prepared now"
                self._report(watched.ref, reasons.Reason.REFUSAL_CLEARED, text, holds=None)
                _log.info("refusal cleared", claim_uid=watched.ref.uid, times=watched.clearings)
            elif refusal.reason is reasons.Reason.CLAIM_REPLACED:
                del self._watched[watched.ref.uid]

    def _due_claims(self) -> tuple[_Watched, ...]:
        now = self._clock.monotonic()
        with self._lock:
            for uid in [
                u for u, watched in self._watched.items() if now - watched.since >= WATCH_S
            ]:
                del self._watched[uid]
            return tuple(
                watched
                for watched in self._watched.values()
                if not watched.cleared and watched.due <= now
            )

    def _watch(self, ref: ports.ClaimRef, clearings: int) -> None:
        now = self._clock.monotonic()
        pause_s = _AFTER_A_CLEARING.wait_s(clearings + 1, backoff.no_jitter)
        while len(self._watched) >= MAX_WATCHED:
            del self._watched[next(iter(self._watched))]
        self._watched[ref.uid] = _Watched(ref, now, now + pause_s, clearings)

    def _report(
        self,
        ref: ports.ClaimRef,
        reason: reasons.Reason,
        message: str,
        *,
        holds: bool | None,
        permanent: bool = False,
    ) -> None:
        update = ports.ConditionUpdate(names.CONDITION_READY, holds, reason, message, permanent)
        self._conditions.set_condition(ref, update)
