"""Returns malloc's free memory: after a burst of calls glibc keeps pages between those in use."""

import ctypes
import threading
from collections.abc import Callable

from driver import clock

EVERY_S = 60.0


def trim() -> None:
    """Call glibc's malloc_trim(3), the one C library that the driver's wheels are for."""
    ctypes.CDLL(None).malloc_trim(0)


class HeapTrimmer:
    """`run` is a thread's target; it takes about a millisecond each time."""

    def __init__(self, time: clock.Clock, trim_heap: Callable[[], None] = trim) -> None:
        self._clock = time
        self._give_back = trim_heap

    def run(self, stop: threading.Event) -> None:
        """Trim once a minute, until stopped."""
        while not self._clock.wait(stop, EVERY_S):
            self._give_back()
