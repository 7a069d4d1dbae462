"""Milliseconds that a call takes."""

import time
from collections.abc import Callable


def wall_ms(act: Callable[[], object]) -> float:
    """Call `act`; return the time by the clock."""
    return _measure(act, time.perf_counter)


def thread_ms(act: Callable[[], object]) -> float:
    """Call `act`; return the processor time of this thread."""
    return _measure(act, time.thread_time)


def _measure(act: Callable[[], object], now: Callable[[], float]) -> float:
    began = now()
    act()
    return 1000 * (now() - began)
