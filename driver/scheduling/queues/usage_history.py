"""What queues used in the past, half of it forgotten after each half-life. Pure.

Kept as share-seconds: the dominant share that was used, times the seconds, of which after one
half-life one half counts. Use of `share` that goes on for ever comes to share x half-life / ln 2.
Moments are seconds since the epoch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

_LN2 = math.log(2)


@dataclass(slots=True)
class _Record:
    half_life_s: float
    updated_at: float | None = None
    usage_seconds: float = 0.0


class UsageHistory:
    """Of queues by name; those without a half-life have none."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def set_half_life(self, name: str, half_life_s: float) -> None:
        """A queue is there. Another half-life goes on from what is known; 0 forgets."""
        if half_life_s <= 0:
            self._records.pop(name, None)
            return
        known = self._records.get(name)
        if known is None:
            self._records[name] = _Record(half_life_s)
            return
        # The average stays, whatever the time over which it is taken.
        known.usage_seconds *= half_life_s / known.half_life_s
        known.half_life_s = half_life_s

    def forget(self, name: str) -> None:
        """A queue is gone."""
        self._records.pop(name, None)

    def resume(self, name: str, at: float, used: float) -> None:
        """What was written of a queue, where it is newer than what is known."""
        known = self._records.get(name)
        if known is not None and (known.updated_at is None or at > known.updated_at):
            known.updated_at, known.usage_seconds = at, used

    def advance(self, now: float, shares: Mapping[str, float]) -> None:
        """Time passed until `now`, with these shares in use since."""
        for name, one in self._records.items():
            self._advance(one, now, shares.get(name, 0.0))

    @staticmethod
    def _advance(one: _Record, now: float, share: float) -> None:
        passed = 0.0 if one.updated_at is None else now - one.updated_at
        if one.updated_at is None:
            one.updated_at = now
        if passed <= 0:
            return
        kept = math.exp2(-passed / one.half_life_s)
        one.usage_seconds = one.usage_seconds * kept + share * one.half_life_s / _LN2 * (1 - kept)
        one.updated_at = now

    def has_history(self, name: str) -> bool:
        """Whether a queue has a half-life."""
        return name in self._records

    def average(self, name: str) -> float:
        """The decayed average share of a queue, as of the last `advance`; 0 without a past."""
        one = self._records.get(name)
        return 0.0 if one is None else one.usage_seconds * _LN2 / one.half_life_s

    def usage_seconds(self, name: str) -> float | None:
        """Share-seconds to be written; None for a queue that has no half-life."""
        one = self._records.get(name)
        return None if one is None else one.usage_seconds
