"""Usage history of queues, with exponential decay by a half-life. Pure.

Kept as share-seconds: the dominant share that was used, times the seconds, of which after one
half-life one half counts. Constant use of `share` converges to share x half-life / ln 2. Times are
seconds since the epoch.
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
    """History of queues by name; queues without a half-life have none."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def set_half_life(self, name: str, half_life_s: float) -> None:
        """Set the half-life of a queue. The average stays; 0 drops the history."""
        if half_life_s <= 0:
            self._records.pop(name, None)
            return
        record = self._records.get(name)
        if record is None:
            self._records[name] = _Record(half_life_s)
            return
        # The average does not depend on the half-life.
        record.usage_seconds *= half_life_s / record.half_life_s
        record.half_life_s = half_life_s

    def forget(self, name: str) -> None:
        """Drop the history of a deleted queue."""
        self._records.pop(name, None)

    def resume(self, name: str, timestamp: float, used: float) -> None:
        """Restore the written history of a queue, if it is newer."""
        record = self._records.get(name)
        if record is not None and (record.updated_at is None or timestamp > record.updated_at):
            record.updated_at, record.usage_seconds = timestamp, used

    def advance(self, now: float, shares: Mapping[str, float]) -> None:
        """Advance to `now`, with these shares in use since."""
        for name, record in self._records.items():
            self._advance(record, now, shares.get(name, 0.0))

    @staticmethod
    def _advance(record: _Record, now: float, share: float) -> None:
        passed = 0.0 if record.updated_at is None else now - record.updated_at
        if record.updated_at is None:
            record.updated_at = now
        if passed <= 0:
            return
        decay = math.exp2(-passed / record.half_life_s)
        record.usage_seconds = record.usage_seconds * decay + share * record.half_life_s / _LN2 * (
            1 - decay
        )
        record.updated_at = now

    def has_history(self, name: str) -> bool:
        """Return whether a queue has a half-life."""
        return name in self._records

    def average(self, name: str) -> float:
        """Return the decayed average share of a queue as of the last `advance`; else 0."""
        record = self._records.get(name)
        return 0.0 if record is None else record.usage_seconds * _LN2 / record.half_life_s

    def usage_seconds(self, name: str) -> float | None:
        """Return the share-seconds to write; None for a queue without a half-life."""
        record = self._records.get(name)
        return None if record is None else record.usage_seconds
