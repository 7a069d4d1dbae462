"""Values that were read a moment ago, for questions that come twice: a pod's at two webhooks."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from driver import clock

T = TypeVar("T")
_MOST = 1024


class RecentReads(Generic[T]):
    """Keeps values for `lasts_s` seconds, never None; threads may share it, and may read twice."""

    def __init__(self, time: clock.Clock, lasts_s: float) -> None:
        self._clock = time
        self._lasts_s = lasts_s
        self._values: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable, read: Callable[[], T | None]) -> T | None:
        """The value of a key, read where it is not known or too old."""
        now = self._clock.monotonic()
        cached = self._values.get(key)
        if cached is not None and now - cached[0] < self._lasts_s:
            return cached[1]
        value = read()
        if value is not None:
            if len(self._values) >= _MOST:
                self._values = {}
            self._values[key] = (now, value)
        return value
