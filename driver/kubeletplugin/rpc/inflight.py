"""Deduplicates work per claim and call, however often the kubelet retries.

The kubelet gives up after 45 s and retries. The work continues meanwhile, and the next call joins
it. A call that the kubelet cancelled cancels its work, unless another call waits for it too.
"""

import threading
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from driver import ids

T = TypeVar("T")
Work = Callable[[Callable[[], bool]], T]
"""Takes `cancelled`, which returns whether no call waits for the result any more."""


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """Running work; `waiters` counts the calls that wait for its result."""

    future: "futures.Future[T]" = field(default_factory=futures.Future)
    waiters: int = 0
    abandoned: bool = False

    def cancelled(self) -> bool:
        """Return whether the work should stop."""
        return self.abandoned


class InflightJobs(Generic[T]):
    """Thread safe; work runs on `pool`."""

    def __init__(self, pool: futures.Executor) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._running: dict[ids.ClaimUid, Job[T]] = {}

    def count(self) -> int:
        """Return the number of jobs that run or wait for a thread."""
        with self._lock:
            return len(self._running)

    def join(self, uid: ids.ClaimUid, work: Work[T]) -> Job[T]:
        """Return the running job of the claim, else a new one; the caller must `leave` it.

        An abandoned job is not joined: its result would be a cancellation.
        """
        with self._lock:
            job = self._running.get(uid)
            if job is not None and not job.abandoned:
                job.waiters += 1
                return job
            job = Job(waiters=1)
            self._running[uid] = job
        self._pool.submit(self._run, uid, job, work)
        return job

    def leave(self, job: Job[T], *, broken_off: bool) -> None:
        """Remove a waiter; the last one, if its call was cancelled, abandons the job."""
        with self._lock:
            job.waiters -= 1
            if broken_off and job.waiters == 0:
                job.abandoned = True

    def abandon(self, uid: ids.ClaimUid) -> None:
        """Stop the claim's work where possible."""
        with self._lock:
            job = self._running.get(uid)
            if job is not None:
                job.abandoned = True

    def abandon_all(self) -> None:
        """Stop all work where possible."""
        with self._lock:
            for job in self._running.values():
                job.abandoned = True

    def _run(self, uid: ids.ClaimUid, job: Job[T], work: Work[T]) -> None:
        try:
            result = work(job.cancelled)
        except BaseException as e:  # noqa: BLE001 - raised to every waiter
            self._forget(uid, job)
            job.future.set_exception(e)
        else:
            self._forget(uid, job)
            job.future.set_result(result)

    def _forget(self, uid: ids.ClaimUid, job: Job[T]) -> None:
        with self._lock:
            if self._running.get(uid) is job:
                del self._running[uid]
