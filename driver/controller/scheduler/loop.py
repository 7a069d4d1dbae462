"""Scheduling loop: one thread, one batch of keys at a time: view -> decide -> commit (D4).

Level-triggered: a key only requests a reconcile. Writes run on a pool; a decision in flight is
laid over the view until the server has answered.
"""

import contextlib
import threading
from collections.abc import Iterator

import structlog

from driver.controller import metrics as controller_metrics
from driver.controller.commit import write_pool
from driver.controller.scheduler import collector, cycle, results
from driver.controller.scheduler.provisioner import node_provisioning
from driver.kube import workqueue

_log = structlog.get_logger(__name__)
_BATCH = 256
_IDLE_S = 1.0
Items = workqueue.WorkQueue[write_pool.WorkItem]


class Guard:
    """Guards the loop: a failing item does not stop the others, and is retried."""

    def __init__(self, items: Items, metrics: controller_metrics.Metrics) -> None:
        self._items = items
        self._metrics = metrics

    @contextlib.contextmanager
    def __call__(self, item: write_pool.WorkItem) -> Iterator[None]:
        """Guard what is done for an item."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it is, the others go on
            _log.exception("turn failed", kind=item.kind, key=item.key)
            self._metrics.failed_turns.inc()
            self._items.retry(item)


class SchedulingLoop:
    """Everything but writes runs on the thread of `run`."""

    def __init__(
        self,
        items: Items,
        outcomes: results.ResultHandler,
        collect: collector.Collector,
        turns: cycle.SchedulingCycle,
        provisioning: node_provisioning.NodeProvisioning | None,
    ) -> None:
        self._items = items
        self._results = outcomes
        self._collector = collect
        self._cycle = turns
        self._provisioning = provisioning

    def run(self, stop: threading.Event) -> None:
        """Process items until `stop` is set."""
        while not stop.is_set():
            first = self._items.get(_IDLE_S)
            if first is not None:
                self.process([first, *self._drain_queue()])

    def process(self, batch: list[write_pool.WorkItem]) -> None:
        """Process a batch: what it makes pending is scheduled in one cycle."""
        self._results.finish_writes()
        pending = self._collector.collect(batch)
        for item, again_s in self._cycle.run(pending):
            self._items.add_after(item, again_s)
        if self._provisioning is not None:
            self._provisioning.run(batch)
        for item in batch:
            self._items.done(item)

    def _drain_queue(self) -> list[write_pool.WorkItem]:
        items: list[write_pool.WorkItem] = []
        while len(items) < _BATCH and (item := self._items.get(0.0)) is not None:
            items.append(item)
        return items
