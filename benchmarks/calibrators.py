"""Fixed work, measured with every suite: it says how fast the machine was just then.

A figure without a reference is compared with an older one by what these took in both runs. None of
them is code of ours, and none must ever change.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np

from benchmarks import timing

_ROUNDS, _WRITES, _CALLS = 21, 3, 15
"""Writes and calls are of a round."""
_NAMES = ("python", "cpu", "numpy", "fsync", "grpc")
_KIB = 1024


def measure() -> dict[str, float]:
    """Milliseconds of each, medians: `python`, `numpy`, `fsync`, `grpc`.

    `cpu` is the loop of `python` in processor time, which others on the machine hardly touch. All
    take turns for a second: what the machine did for a moment is in few rounds of each.
    """
    taken: dict[str, list[float]] = {name: [] for name in _NAMES}
    with _writing() as write, _calling() as call:
        for _ in range(_ROUNDS):
            began = time.thread_time()
            taken["python"].append(timing.wall_ms(_loop))
            taken["cpu"].append(1000 * (time.thread_time() - began))
            taken["numpy"].append(timing.wall_ms(_sort))
            taken["fsync"] += [timing.wall_ms(write) for _ in range(_WRITES)]
            taken["grpc"] += [timing.wall_ms(call) for _ in range(_CALLS)]
    return {name: round(statistics.median(ms), 4) for name, ms in taken.items()}


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
