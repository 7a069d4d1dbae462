"""Exponential back-off of evictions per owner, while its next pods fare no better.

Pure but for its state, which may be lost: then one eviction comes too early.
"""

from dataclasses import dataclass

FIRST_S = 10.0
MAX_S = 300.0
_QUIET_S = 2 * MAX_S
"""Time after its pause when an owner's back-off starts anew."""


@dataclass(frozen=True, slots=True)
class _Pause:
    until: float
    lasts_s: float


class EvictionBackoff:
    """Back-off by the owner's UID; times are monotonic seconds."""

    def __init__(self) -> None:
        self._pauses: dict[str, _Pause] = {}

    def remaining_s(self, owner: str, now: float) -> float:
        """Return the seconds until the next eviction is allowed; 0 or less: now."""
        pause = self._pauses.get(owner)
        return 0.0 if pause is None else pause.until - now

    def record_eviction(self, owner: str, now: float) -> None:
        """Record an eviction: the next one has to wait, each time for longer."""
        self._pauses = {
            uid: pause for uid, pause in self._pauses.items() if now - pause.until < _QUIET_S
        }
        previous = self._pauses.get(owner)
        lasts_s = min(previous.lasts_s * 2, MAX_S) if previous else FIRST_S
        self._pauses[owner] = _Pause(now + lasts_s, lasts_s)
