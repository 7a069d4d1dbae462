"""Who works on what: one caller a claim, one caller a GPU, over threads and processes (D9).

Two plugins run side by side during a rolling update, so a GPU's lock is a thread's lock and a
flock file, taken together; the kernel lets go of the file when a process dies.
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from driver import clock, errors, ids
from driver.files import durable, flock

WAIT_S = 30.0
"""Longest wait for a GPU: a refusal must be out within the kubelet's 45 s."""
_POLL_S = 0.05


class Locks:
    """Locks of claims (this process) and of GPUs (files `<uuid>.lock` in `directory`)."""

    def __init__(self, directory: Path, clock: clock.Clock, wait_s: float = WAIT_S) -> None:
        self._directory = directory
        self._clock = clock
        self._wait_s = wait_s
        self._guard = threading.Lock()
        self._threads: dict[str, threading.Lock] = {}
        self._users: dict[str, int] = {}

    @contextlib.contextmanager
    def claim(self, uid: ids.ClaimUid) -> Iterator[None]:
        """Hold a claim. Raises NodeFault after the wait."""
        with self._thread(f"claim {uid}", self._clock.monotonic() + self._wait_s):
            yield

    @contextlib.contextmanager
    def gpus(self, uuids: Iterable[ids.GpuUuid], *, wait_s: float | None = None) -> Iterator[None]:
        """Hold GPUs, taken in sorted order, so that two callers cannot wait for each other.

        `wait_s` is for those with less patience. Raises NodeFault after the wait.
        """
        patience_s = self._wait_s if wait_s is None else wait_s
        deadline = self._clock.monotonic() + patience_s
        with contextlib.ExitStack() as held:
            for uuid in sorted(set(uuids)):
                held.enter_context(self._thread(f"GPU {uuid}", deadline))
                held.enter_context(self._file(self._directory / f"{uuid}.lock", deadline))
            yield

    @contextlib.contextmanager
    def _thread(self, name: str, deadline: float) -> Iterator[None]:
        with self._guard:
            lock = self._threads.setdefault(name, threading.Lock())
            self._users[name] = self._users.get(name, 0) + 1
        try:
            if not lock.acquire(timeout=max(0.0, deadline - self._clock.monotonic())):
                raise errors.NodeFault("lock", name, f"was busy for {self._wait_s:g} s")
            try:
                yield
            finally:
                lock.release()
        finally:
            self._forget(name)

    def _forget(self, name: str) -> None:
        with self._guard:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._threads[name]

    @contextlib.contextmanager
    def _file(self, path: Path, deadline: float) -> Iterator[None]:
        try:
            durable.make_folder(path.parent)
            file = path.open("ab")
        except OSError as e:
            raise errors.NodeFault("lock", str(path), str(e)) from e
        with file:
            while not flock.taken(file.fileno()):
                if self._clock.monotonic() >= deadline:
                    raise errors.NodeFault("lock", str(path), f"was busy for {self._wait_s:g} s")
                self._clock.wait(threading.Event(), _POLL_S)
            yield
