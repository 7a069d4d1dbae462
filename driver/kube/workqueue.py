"""Work queue of keys: each processed at most once at a time, again if it changed meanwhile."""

import heapq
import itertools
import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

from driver import clock
from driver.kube import backoff

K = TypeVar("K", bound=Hashable)

RETRIES = backoff.Pace(base_s=0.05, max_s=60.0)
_IDLE_S = 60.0


class WorkQueue(Generic[K]):
    """Thread safe. A key taken by `get` is the taker's until `done`."""

    def __init__(
        self, clock: clock.Clock, jitter: backoff.Jitter, pace: backoff.Pace = RETRIES
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._pace = pace
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ready: dict[K, None] = {}
        self._processing: set[K] = set()
        self._dirty: set[K] = set()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._ticket = itertools.count()
        self._failures: dict[K, int] = {}
        self._shut = False

    def __len__(self) -> int:
        """Return the number of keys that can be taken now."""
        with self._lock:
            self._promote_due()
            return len(self._ready)

    def add(self, key: K) -> None:
        """Queue `key`; once more after `done` if it is being processed now."""
        with self._lock:
            self._add(key)

    def add_after(self, key: K, delay_s: float) -> None:
        """Queue `key` in `delay_s`; the earliest of several requests counts."""
        due = self._clock.monotonic() + delay_s
        with self._lock:
            if self._shut or self._due.get(key, due + 1) <= due:
                return
            self._due[key] = due
            heapq.heappush(self._later, (due, next(self._ticket), key))
            self._wake.set()

    def get(self, timeout_s: float | None = None) -> K | None:
        """Take the key that waits longest; None after `timeout_s`, or when shut down."""
        now = self._clock.monotonic()
        deadline = None if timeout_s is None else now + timeout_s
        while True:
            with self._lock:
                self._promote_due()
                if self._shut:
                    return None
                if self._ready:
                    return self._pop()
                wait_s = self._idle_s(deadline)
                if wait_s <= 0:
                    return None
                self._wake.clear()
            self._clock.wait(self._wake, wait_s)

    def done(self, key: K) -> None:
        """Return a taken `key`."""
        with self._lock:
            self._processing.discard(key)
            if key in self._dirty:
                self._dirty.discard(key)
                self._add(key)

    def retry(self, key: K, at_least_s: float = 0.0) -> float:
        """Requeue `key` after a failure, with back-off; return the seconds until then.

        `at_least_s` is the server's Retry-After.
        """
        with self._lock:
            failures = self._failures.get(key, 0) + 1
            self._failures[key] = failures
        wait_s = self._pace.wait_s(failures, self._jitter, at_least_s)
        self.add_after(key, wait_s)
        return wait_s

    def forget(self, key: K) -> None:
        """Reset the failures of `key` after a success."""
        with self._lock:
            self._failures.pop(key, None)

    def shut_down(self) -> None:
        """Drop the keys that wait, and take no more; every waiting `get` returns None."""
        with self._lock:
            self._shut = True
            self._ready.clear()
            self._wake.set()

    def _add(self, key: K) -> None:
        if self._shut:
            return
        if key in self._processing:
            self._dirty.add(key)
            return
        self._ready.setdefault(key)
        self._wake.set()

    def _pop(self) -> K:
        key = next(iter(self._ready))
        del self._ready[key]
        self._processing.add(key)
        return key

    def _promote_due(self) -> None:
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self._add(key)

    def _idle_s(self, deadline: float | None) -> float:
        """Return how long there is nothing to do; 0 or less after the taker's deadline."""
        now = self._clock.monotonic()
        idle_s = _IDLE_S if deadline is None else deadline - now
        if idle_s > 0 and self._later:
            idle_s = min(idle_s, max(self._later[0][0] - now, 0.001))
        return idle_s
