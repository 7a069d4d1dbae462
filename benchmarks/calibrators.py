"""Fixed work, measured with every suite: it says how fast the machine was just then.

A figure without a reference is compared with an older one by what these took in both runs. None of
them is code of ours, and none must ever change.

A neighbour on the host slows what misses the processor's caches for minutes: half as slow again, as
our decisions are, where a loop that stays in them takes the same as ever. `memory` misses them.
"""

import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np

from benchmarks import timing

_ROUNDS, _WRITES, _CALLS = 21, 3, 15
"""Writes and calls are of a round."""
_NAMES = ("python", "cpu", "memory", "numpy", "fsync", "grpc")
_KIB = 1024
_PLACES, _STEPS = 1_000_000, 60_000
"""Of `memory`: 40 MiB of Python's integers, in an order that no processor foresees."""
_BRIEF_ROUNDS = 3


def measure() -> dict[str, float]:
    """Milliseconds of each, medians: `python`, `memory`, `numpy`, `fsync`, `grpc`.

    `cpu` is the loop of `python` in processor time, which others on the machine hardly touch, and
    `memory` is in it too. All take turns for a second: what the machine did for a moment is in few
    rounds of each.
    """
    walk = _walker()
    taken: dict[str, list[float]] = {name: [] for name in _NAMES}
    with _writing() as write, _calling() as call:
        for _ in range(_ROUNDS):
            _add_loop(taken)
            taken["memory"].append(timing.thread_ms(walk))
            taken["numpy"].append(timing.wall_ms(_sort))
            taken["fsync"] += [timing.wall_ms(write) for _ in range(_WRITES)]
            taken["grpc"] += [timing.wall_ms(call) for _ in range(_CALLS)]
    return {name: round(statistics.median(ms), 4) for name, ms in taken.items()}


def measure_briefly() -> dict[str, float]:
    """Milliseconds of `python`, `cpu` and `memory` alone, medians, within a seventh of a second.

    For between the rounds of a suite: the machine is slow for seconds in either way.
    """
    walk = _walker()
    taken: dict[str, list[float]] = {"python": [], "cpu": [], "memory": []}
    for _ in range(_BRIEF_ROUNDS):
        _add_loop(taken)
        taken["memory"].append(timing.thread_ms(walk))
    return {name: round(statistics.median(ms), 4) for name, ms in taken.items()}


def measure_loop() -> dict[str, float]:
    """Milliseconds of `cpu` alone, once: for a process whose memory is measured."""
    return {"cpu": round(timing.thread_ms(_loop), 4)}


def _add_loop(taken: Mapping[str, list[float]]) -> None:
    """Measure the loop by the clock and in processor time."""
    began = time.thread_time()
    taken["python"].append(timing.wall_ms(_loop))
    taken["cpu"].append(1000 * (time.thread_time() - began))


@functools.cache
def _walker() -> Callable[[], None]:
    """Go on from where the last walk ended: what it read lately is still in the caches."""
    following, index = places(_PLACES), 0

    def walk() -> None:
        nonlocal index
        for _ in range(_STEPS):
            index = following[index]

    return walk


def places(count: int) -> tuple[int, ...]:
    """Return a single cycle over so many places, each of which holds the next."""
    order = np.random.default_rng(1).permutation(count)
    following = np.empty(count, dtype=np.int64)
    following[order] = np.roll(order, -1)
    return tuple(following.tolist())


def _loop() -> int:
    total = 0
    for number in range(300_000):
        total += number * number % 7
    return total


def _sort() -> float:
    """One thread, whatever the linear algebra behind numpy does."""
    values = (np.arange(400_000, dtype=np.float64) * 7919.0) % 100_003.0
    return float(np.sort(values)[::7].sum())


@contextmanager
def _writing() -> Iterator[Callable[[], None]]:
    """2 KiB, written whole and for good; /var/tmp is on a disk where /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        path, data = Path(made) / "file", os.urandom(2 * _KIB)
        folder = os.open(made, os.O_RDONLY)

        def write() -> None:
            part = path.with_suffix(".new")
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            os.fsync(folder)

        try:
            yield write
        finally:
            os.close(folder)


@contextmanager
def _calling() -> Iterator[Callable[[], None]]:
    """130 bytes there and back, by a Unix socket."""
    with tempfile.TemporaryDirectory() as made, futures.ThreadPoolExecutor(2) as pool:
        address = f"unix://{made}/echo.sock"
        server = grpc.server(pool)
        echo = grpc.unary_unary_rpc_method_handler(lambda request, _: request, bytes, bytes)
        served = grpc.method_handlers_generic_handler("echo", {"Echo": echo})
        server.add_generic_rpc_handlers((served,))
        server.add_insecure_port(address)
        server.start()
        with grpc.insecure_channel(address) as channel:
            ask = channel.unary_unary("/echo/Echo", bytes, bytes)
            data = b"x" * 130
            ask(data, timeout=10)
            yield lambda: ask(data, timeout=10)
        server.stop(None).wait()
