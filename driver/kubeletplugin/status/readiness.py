"""What becomes of a claim after Prepare: it is said, and a refusal that may pass is watched (D8).

The kubelet comes back a minute or more after a refusal. When a look finds that the claim would go
now, that is said too; the controller then has the kubelet come at once. A look cannot see every
cause: a claim that is refused again right after is looked at later and later.

That a claim is ready is said at the next look: pods that start together have the processor first,
and a claim that is gone by then costs no call.
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
"""Claims watched at once; the one that was refused longest ago is dropped first."""
_AFTER_A_CLEARING = backoff.Pace(base_s=EVERY_S, max_s=60.0)

Check = Callable[[ports.ClaimRef], ports.Refused | None]
"""Whether a claim would be refused now; changes nothing. Raises RationError: it cannot be said."""


@dataclass(slots=True)
class _Watched:
    """A claim that was refused at `since` and is looked at from `due` on (monotonic seconds)."""

    ref: ports.ClaimRef
    since: float
    due: float
    clearings: int
    cleared: bool = False


class ReadinessTracker:
    """Thread safe; nothing but `run` and `look` waits for anything."""

    def __init__(self, conditions: ports.Conditions, check: Check, time: clock.Clock) -> None:
        self._conditions = conditions
        self._check = check
        self._clock = time
        self._lock = threading.Lock()
        self._watched: dict[ids.ClaimUid, _Watched] = {}
        self._ready: dict[ids.ClaimUid, ports.ClaimRef] = {}

    def set_prepared(self, ref: ports.ClaimRef) -> None:
        """The claim is ready."""
        with self._lock:
            self._watched.pop(ref.uid, None)
            self._ready[ref.uid] = ref

    def set_refused(
        self, ref: ports.ClaimRef, reason: reasons.Reason, message: str, *, permanent: bool = False
    ) -> None:
        """The claim is not ready, for a reason that may pass or, `permanent`, will not."""
        with self._lock:
            self._ready.pop(ref.uid, None)
            before = self._watched.pop(ref.uid, None)
            if not permanent:
                self._watch(ref, before.clearings if before else 0)
            self._report(ref, reason, message, holds=False, permanent=permanent)

    def remove(self, ref: ports.ClaimRef) -> None:
        """The claim is done with here; the API server drops what was said with the allocation."""
        with self._lock:
            self._watched.pop(ref.uid, None)
            self._ready.pop(ref.uid, None)

    def restore(self, records: Iterable[checkpoint.Record]) -> None:
        """These were prepared before this process: say so, in case the last one had no time to."""
        for record in records:
            if record.state is checkpoint.State.COMPLETED:
                self.set_prepared(record.claim)

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop; a thread's target."""
        while not self._clock.wait(stop, EVERY_S):
            self.check_due(stop)

    def check_due(self, stop: threading.Event) -> None:
        """Say what is ready, and ask once for each claim that is due."""
        self._report_ready()
        for one in self._due_claims():
            if stop.is_set():
                return
            try:
                answer = self._check(one.ref)
            except errors.NotFound:
                self.remove(one.ref)
            except errors.Unreachable:
                return  # nor would the API server answer for the others
            except errors.RationError as e:
                _log.debug("refusal not looked at", claim_uid=one.ref.uid, error=str(e))
            else:
                self._apply_check(one, answer)

    def _report_ready(self) -> None:
        with self._lock:
            for ref in self._ready.values():
                self._report(ref, reasons.Reason.PREPARED, "ready on its node", holds=True)
            self._ready.clear()

    def _apply_check(self, one: _Watched, answer: ports.Refused | None) -> None:
        with self._lock:
            if self._watched.get(one.ref.uid) is not one:
                return  # the kubelet was here meanwhile
            if answer is None:
                one.cleared = True
                one.clearings += 1
                text = "would be prepared now"
                self._report(one.ref, reasons.Reason.REFUSAL_CLEARED, text, holds=None)
                _log.info("refusal cleared", claim_uid=one.ref.uid, times=one.clearings)
            elif answer.reason is reasons.Reason.CLAIM_REPLACED:
                del self._watched[one.ref.uid]

    def _due_claims(self) -> tuple[_Watched, ...]:
        now = self._clock.monotonic()
        with self._lock:
            for uid in [u for u, one in self._watched.items() if now - one.since >= WATCH_S]:
                del self._watched[uid]
            return tuple(
                one for one in self._watched.values() if not one.cleared and one.due <= now
            )

    def _watch(self, ref: ports.ClaimRef, clearings: int) -> None:
        now = self._clock.monotonic()
        pause_s = _AFTER_A_CLEARING.wait_s(clearings + 1, _no_jitter)
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
        word = ports.ConditionUpdate(names.CONDITION_READY, holds, reason, message, permanent)
        self._conditions.set_condition(ref, word)


def _no_jitter() -> float:
    return 0.0
