"""Waiting for what other threads do, in real time, for component tests."""

import threading
from collections.abc import Callable

from driver import clock

_TICK_S = 0.01


def until(condition: Callable[[], object], within_s: float = 5.0) -> None:
    """Return as soon as `condition` holds; fail the test when it does not within `within_s`."""
    time, never = clock.SystemClock(), threading.Event()
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        never.wait(_TICK_S)
