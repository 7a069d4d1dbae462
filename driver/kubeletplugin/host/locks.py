"""Locks of claims and GPUs: one caller each, over threads and processes (D9).

Two plugins run side by side during a rolling update, so a GPU's lock is a thread's lock and a flock
file, taken together; the kernel releases the file's lock when a process dies.
"""

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from driver import clock, errors, ids
from driver.runtime.files import atomic, flock

WAIT_S = 30.0
"""Longest wait for a GPU: a refusal must be out within the kubelet's 45 s."""
_POLL_S = 0.05
_MODE = 0o666


@dataclass(frozen=True, slots=True)
class _Wait:
    """Deadline of a wait, and its length."""

    until: float
    lasts_s: float

    def timeout_text(self) -> str:
        return f"was busy for {self.lasts_s:g} s"


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
        """Hold a claim's lock. Raises NodeFault on timeout."""
        with self._thread_lock(f"claim {uid}", self._wait(self._wait_s)):
            yield

    @contextlib.contextmanager
    def gpus(self, uuids: Iterable[ids.GpuUuid], *, wait_s: float | None = None) -> Iterator[None]:
        """Hold GPUs' locks, taken in sorted order, so that two callers cannot deadlock.

        `wait_s` shortens the wait. Raises NodeFault on timeout.
        """
        wait = self._wait(self._wait_s if wait_s is None else wait_s)
        with contextlib.ExitStack() as stack:
            for uuid in sorted(set(uuids)):
                stack.enter_context(self._thread_lock(f"GPU {uuid}", wait))
                stack.enter_context(self._file_lock(self._directory / f"{uuid}.lock", wait))
            yield

    def _wait(self, lasts_s: float) -> _Wait:
        return _Wait(self._clock.monotonic() + lasts_s, lasts_s)

    @contextlib.contextmanager
    def _thread_lock(self, name: str, wait: _Wait) -> Iterator[None]:
        with self._guard:
            lock = self._threads.setdefault(name, threading.Lock())
            self._users[name] = self._users.get(name, 0) + 1
        try:
            if not lock.acquire(timeout=max(0.0, wait.until - self._clock.monotonic())):
                raise errors.NodeFault("lock", name, wait.timeout_text())
            try:
                yield
            finally:
                lock.release()
        finally:
            self._drop_user(name)

    def _drop_user(self, name: str) -> None:
        with self._guard:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._threads[name]

    @contextlib.contextmanager
    def _file_lock(self, path: Path, wait: _Wait) -> Iterator[None]:
        try:
            file = _open(path)
        except OSError as e:
            raise errors.NodeFault("lock", str(path), str(e)) from e
        try:
            while not flock.try_lock(file):
                if self._clock.monotonic() >= wait.until:
                    raise errors.NodeFault("lock", str(path), wait.timeout_text())
                self._clock.wait(threading.Event(), _POLL_S)
            yield
        finally:
            os.close(file)


def _open(path: Path) -> int:
    """Open a file for its lock; create it, and its folder. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, _MODE)
    except FileNotFoundError:
        atomic.make_folder(path.parent)
        return os.open(path, flags, _MODE)
