"""Work items, and the pool of threads that runs their writes (D4)."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import NamedTuple

import structlog

from driver import errors, ids
from driver.kube import backoff, workqueue

_log = structlog.get_logger(__name__)


class WorkItem(NamedTuple):
    """A key to look at: `kind` is `pod`, `gang`, `claim`, `reservation`, `node`, `faults` on one.

    `marks` are those of a node (`provisioning.marks`).

    All of a kind are `nodes`, `queues`, and `wake`: all that waits.
    """

    kind: str
    key: ids.Key


RETRIES = backoff.Pace(base_s=0.05, max_s=10.0)
"""After a failure. The longest wait is that of kube-scheduler's queue (podMaxBackoffSeconds): what
is in the way, such as a server that is away, does not get better by a pod's waiting a minute more.
"""
WAKE = WorkItem("wake", ids.Key(""))
"""Look at every waiting pod again."""
QUEUES = WorkItem("queues", ids.Key(""))
"""Look at how queues stand."""
NODES = WorkItem("nodes", ids.Key(""))
"""Look at every node's condition again."""
PROVISIONING = WorkItem("provisioning", ids.Key(""))
"""Look whether nodes are to be asked for."""


class WritePool:
    """Thread safe. Calls return at once; a refused write brings its item back to the queue.

    `side_threads` run what a write has done meanwhile; they never wait for a thread of either pool.
    """

    def __init__(
        self,
        threads: futures.Executor,
        side_threads: futures.Executor,
        items: workqueue.WorkQueue[WorkItem],
    ) -> None:
        self._threads = threads
        self._side_threads = side_threads
        self._items = items

    def submit(self, item: WorkItem, act: Callable[[], object]) -> None:
        """Run a write of an item."""
        self._threads.submit(self._write, item, act)

    def run(self, act: Callable[[], object]) -> None:
        """Run a write that handles its failures itself."""
        self._threads.submit(act)

    @contextlib.contextmanager
    def meanwhile(self, act: Callable[[], object]) -> Iterator[None]:
        """Run `act`, which handles its failures itself, beside the block, and wait for its end."""
        done = self._side_threads.submit(act)
        try:
            yield
        finally:
            futures.wait((done,))

    def _write(self, item: WorkItem, act: Callable[[], object]) -> None:
        try:
            act()
            self._items.forget(item)
        except errors.NotFound:
            return
        except errors.ApiError as error:
            _log.info("write refused", kind=item.kind, key=item.key, error=str(error))
            self._items.retry(item, error.retry_after_s or 0.0)
