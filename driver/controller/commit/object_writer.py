"""Writes of our own kinds, and evictions for another's sake: on the pool, fenced (D22)."""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from driver import errors, ids, reasons
from driver.api import crd
from driver.controller.commit import write_pool
from driver.kube import gvr, workqueue
from driver.kube.events import recorder
from driver.resources import fields, queues, reservations
from driver.resources.core import pods
from driver.resources.dra import claims

_log = structlog.get_logger(__name__)


class ObjectWriter:
    """Thread safe. Every call returns at once; what was refused brings its item back."""

    def __init__(
        self,
        tools: write_pool.WriteDeps,
        items: workqueue.WorkQueue[write_pool.WorkItem],
    ) -> None:
        self._writer = tools.writer
        self._tools = tools
        self._items = items

    def write_queue_status(self, one: queues.Queue, status: Mapping[str, Any]) -> None:
        """Say how a Queue stands."""
        body = {"metadata": {"uid": one.uid}, "status": status}
        self._submit(
            write_pool.QUEUES,
            lambda: self._writer.patch(gvr.QUEUES, one.name, body, subresource="status"),
        )

    def write_reservation_status(
        self,
        one: reservations.Reservation,
        status: Mapping[str, Any],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Say how a Reservation stands, in its status and by an event."""

        def write() -> None:
            body = {"metadata": {"uid": one.uid}, "status": status}
            self._writer.patch(
                gvr.RESERVATIONS, one.name, body, namespace=one.namespace, subresource="status"
            )
            self._tools.reporter.report_on(_ref(one), reason, message or reason.meaning)

        self._submit(_item(one), write)

    def create_reservation(
        self, namespace: str, body: Mapping[str, Any], status: Mapping[str, Any]
    ) -> None:
        """Make a Reservation that holds something from the first moment on.

        What it holds is a second write; until that is done nobody is evicted for it.
        """

        def write() -> None:
            made = self._writer.create(gvr.RESERVATIONS, dict(body), namespace)
            self._writer.patch(
                gvr.RESERVATIONS,
                made["metadata"]["name"],
                {"metadata": {"uid": made["metadata"]["uid"]}, "status": status},
                namespace=namespace,
                subresource="status",
            )

        name = fields.text(fields.mapping(body, "metadata"), "name")
        self._submit(write_pool.WorkItem("reservation", ids.Key(f"{namespace}/{name}")), write)

    def delete_reservation(self, one: reservations.Reservation) -> None:
        """Delete a Reservation of ours."""
        self._submit(
            _item(one),
            lambda: self._writer.delete(gvr.RESERVATIONS, one.name, one.namespace, uid=one.uid),
        )

    def evict(
        self,
        item: write_pool.WorkItem,
        pod: pods.Pod,
        found: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Have a pod leave, and say why on it and its claims; `item` comes back if it may not."""

        def write() -> None:
            self._tools.commit.evict(pod)
            self._tools.metrics.count_eviction(reason)
            _log.info("pod evicted", pod=pod.key, why=message)
            self._tools.reporter.warning(pod, found, reason, message)

        self._submit(item, write)

    def warn(
        self,
        pod: pods.Pod,
        found: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Tell a pod and its claims something."""
        self._tools.reporter.warning(pod, found, reason, message)

    def _submit(self, item: write_pool.WorkItem, act: Callable[[], object]) -> None:
        self._tools.pool.submit(self._write, item, act)

    def _write(self, item: write_pool.WorkItem, act: Callable[[], object]) -> None:
        try:
            act()
            self._items.forget(item)
        except errors.NotFound:
            return
        except errors.ApiError as error:
            _log.info("write refused", kind=item.kind, key=item.key, error=str(error))
            self._items.retry(item, error.retry_after_s or 0.0)


def _item(one: reservations.Reservation) -> write_pool.WorkItem:
    return write_pool.WorkItem("reservation", one.key)


def _ref(one: reservations.Reservation) -> recorder.ObjectRef:
    return recorder.ObjectRef(reservations.KIND, crd.VERSION, one.namespace, one.name, one.uid)
