"""Waiting for what other threads do, in real time, for component tests."""

import threading
from collections.abc import Callable
from typing import TypeVar

from driver import clock

_TICK_S = 0.01
WITHIN_S = 20.0
"""Long: machines are slow at times, and what holds is not waited for."""

Value = TypeVar("Value")
Holds = Callable[[Value], bool]


def until(condition: Callable[[], object], within_s: float = WITHIN_S) -> None:
    """Return as soon as `condition` holds; fail the test when it does not within `within_s`."""
    time, never = clock.SystemClock(), threading.Event()
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        never.wait(_TICK_S)


def value(
    read: Callable[[], Value | None], holds: Holds[Value], within_s: float = WITHIN_S
) -> Value:
    """The first value read that `holds`; the failure of the test shows the last."""
    time, never = clock.SystemClock(), threading.Event()
    deadline = time.monotonic() + within_s
    while (result := read()) is None or not holds(result):
        assert time.monotonic() < deadline, f"not within {within_s} s: {result!r}"
        never.wait(_TICK_S)
    return result
