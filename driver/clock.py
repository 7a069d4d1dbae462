"""Clocks. Everything that waits or stamps a time takes one, so that tests own time."""

import datetime as dt
import math
import threading
import time
from typing import Protocol

MAX_DRIFT_S = 5.0
"""Difference of the clocks between two calls above which the wall clock was stepped."""


class Clock(Protocol):
    """Wall time for stamps, monotonic time for durations, and waiting."""

    def now(self) -> dt.datetime:
        """Aware UTC wall time, for stamps only."""
        ...

    def monotonic(self) -> float:
        """Seconds that never step back, for durations and deadlines."""
        ...

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Wait until `event` is set or `timeout_s` has passed; return whether it is set."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> dt.datetime:
        """Aware UTC wall time."""
        return dt.datetime.now(dt.UTC)  # noqa: TID251 - this is the clock

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic()  # noqa: TID251 - this is the clock

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Wait on the event itself."""
        return event.wait(timeout_s)


def rfc3339(moment: dt.datetime) -> str:
    """Return `2026-11-21T09:00:00Z`: whole seconds, as metav1.Time is written."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: dt.datetime) -> str:
    """Return `2026-11-21T09:00:00.000000Z`, as metav1.MicroTime (Leases, events.k8s.io)."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class ElapsedTime:
    """Time since stamps of the wall clock, which a step of that clock does not lengthen.

    A step shows as a difference to the monotonic clock between two calls.
    """

    def __init__(self, source: Clock) -> None:
        self._clock = source
        self._wall, self._monotonic = source.now(), source.monotonic()
        self._started, self._stepped = self._monotonic, -math.inf

    def seconds_since(self, stamp: dt.datetime) -> float:
        """Return the seconds since a stamp, at most those since the last step.

        For a stamp of the future, which another clock or this one before a step gave, return the
        seconds since the step or else since the start.
        """
        wall = self._observe()
        passed = (wall - stamp).total_seconds()
        steady = self._monotonic - self._stepped
        if passed < 0:
            return min(steady, self._monotonic - self._started)
        return min(passed, steady)

    def _observe(self) -> dt.datetime:
        """Compare the clocks, and return the wall time."""
        wall, monotonic = self._clock.now(), self._clock.monotonic()
        drift = (wall - self._wall).total_seconds() - (monotonic - self._monotonic)
        if abs(drift) > MAX_DRIFT_S:
            self._stepped = monotonic
        self._wall, self._monotonic = wall, monotonic
        return wall
