import ctypes
import os
import threading
from pathlib import Path

from driver.runtime import malloc
from tests.fakes import clock as fake_clock

PIECE = 100_000
"""Bytes: less than what malloc asks the system for by itself."""
PIECES = 600
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of memory that the process has in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def test_freed_memory_between_used_pieces_returns_to_the_system() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    settings = [libc.malloc(PIECE) for _ in range(PIECES)]
    for entry in settings:
        ctypes.memset(entry, 1, PIECE)
    for entry in settings[::2]:
        libc.free(entry)
    previous = resident()
    malloc.trim()
    after = resident()
    for entry in settings[1::2]:
        libc.free(entry)
    assert previous - after > PIECE * PIECES // 3


def test_it_is_given_back_once_a_minute_until_the_end() -> None:
    time, stop = fake_clock.FakeClock(), threading.Event()
    times: list[float] = []

    def give_back() -> None:
        times.append(time.elapsed_s)
        if len(times) == 3:
            stop.set()

    malloc.HeapTrimmer(time, give_back).run(stop)
    assert times == [60.0, 120.0, 180.0]
