"""Gives back what malloc has free: after a rush of calls glibc keeps pages between those in use."""

import ctypes
import threading
from collections.abc import Callable

from driver import clock

EVERY_S = 60.0


def trim() -> None:
    """malloc_trim(3) of glibc, the one C library that the driver's wheels are for."""
    ctypes.CDLL(None).malloc_trim(0)


class HeapTrimmer:
    """`run` is a thread's target; it takes about a millisecond each time."""

    def __init__(self, time: clock.Clock, give_back: Callable[[], None] = trim) -> None:
        self._clock = time
        self._give_back = give_back

    def run(self, stop: threading.Event) -> None:
        """Once a minute, until told to stop."""
        while not self._clock.wait(stop, EVERY_S):
            self._give_back()
