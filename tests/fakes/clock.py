"""A clock that moves only when told to, or when somebody waits."""

import datetime as dt
import threading

from driver import clock

SWIFT = 10
START = dt.datetime(2026, 11, 21, 9, 0, tzinfo=dt.UTC)


class FakeClock:
    """Waiting takes no real time: it moves the clock to the end of the wait."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.waits: list[float] = []

    def now(self) -> dt.datetime:
        return START + dt.timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return 1000.0 + self.elapsed_s

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        if not event.is_set():
            self.waits.append(timeout_s)
            self.advance(timeout_s)
        return event.is_set()

    def advance(self, seconds: float) -> None:
        self.elapsed_s += seconds


def no_jitter() -> float:
    """Return no jitter."""
    return 0.0


class Swift(clock.SystemClock):
    """The real one, ten times as fast: a handover's 30 s take 3."""

    def monotonic(self) -> float:
        return super().monotonic() * SWIFT

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return super().wait(event, timeout_s / SWIFT)


class Hasty(clock.SystemClock):
    """The real one, but that waits are a thousand times shorter: a minute takes some 60 ms."""

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return super().wait(event, timeout_s / 1000)
