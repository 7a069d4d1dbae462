"""Writer of Ration's own kinds and of evictions: on the write pool, fenced (D22)."""

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
    """Thread safe. Calls return at once; a refused write re-enqueues its item."""

    def __init__(
        self,
        tools: write_pool.WriteDeps,
        items: workqueue.WorkQueue[write_pool.WorkItem],
    ) -> None:
        self._writer = tools.writer
        self._deps = tools
        self._items = items

    def write_queue_status(self, queue: queues.Queue, status: Mapping[str, Any]) -> None:
        """Patch a Queue's status."""
        body = {"metadata": {"uid": queue.uid}, "status": status}
        self._submit(
            write_pool.QUEUES,
            lambda: self._writer.patch(gvr.QUEUES, queue.name, body, subresource="status"),
        )

    def write_reservation_status(
        self,
        reservation: reservations.Reservation,
        status: Mapping[str, Any],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Patch a Reservation's status and emit an event."""

        def write() -> None:
            body = {"metadata": {"uid": reservation.uid}, "status": status}
            self._writer.patch(
                gvr.RESERVATIONS,
                reservation.name,
                body,
                namespace=reservation.namespace,
                subresource="status",
            )
            self._deps.reporter.report_on(_ref(reservation), reason, message or reason.meaning)

        self._submit(_item(reservation), write)

    def create_reservation(
        self, namespace: str, body: Mapping[str, Any], status: Mapping[str, Any]
    ) -> None:
        """Create a Reservation that holds devices from the start.

        The held devices are a second write; nobody is evicted before it is done.
        """

        def write() -> None:
            created = self._writer.create(gvr.RESERVATIONS, dict(body), namespace)
            self._writer.patch(
                gvr.RESERVATIONS,
                created["metadata"]["name"],
                {"metadata": {"uid": created["metadata"]["uid"]}, "status": status},
                namespace=namespace,
                subresource="status",
            )

        name = fields.text(fields.mapping(body, "metadata"), "name")
        self._submit(write_pool.WorkItem("reservation", ids.Key(f"{namespace}/{name}")), write)

    def delete_reservation(self, reservation: reservations.Reservation) -> None:
        """Delete a Reservation of ours."""
        self._submit(
            _item(reservation),
            lambda: self._writer.delete(
                gvr.RESERVATIONS, reservation.name, reservation.namespace, uid=reservation.uid
            ),
        )

    def evict(
        self,
        item: write_pool.WorkItem,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Evict a pod and report the reason on it and its claims; `item` is retried if refused."""

        def write() -> None:
            self._deps.commit.evict(pod)
            self._deps.metrics.count_eviction(reason)
            _log.info("pod evicted", pod=pod.key, why=message)
            self._deps.reporter.warning(pod, pod_claims, reason, message)

        self._submit(item, write)

    def warn(
        self,
        pod: pods.Pod,
        pod_claims: tuple[claims.Claim, ...],
        reason: reasons.Reason,
        message: str,
    ) -> None:
        """Emit a Warning event on a pod and its claims."""
        self._deps.reporter.warning(pod, pod_claims, reason, message)

    def _submit(self, item: write_pool.WorkItem, act: Callable[[], object]) -> None:
        self._deps.pool.submit(self._write, item, act)

    def _write(self, item: write_pool.WorkItem, act: Callable[[], object]) -> None:
        try:
            act()
            self._items.forget(item)
        except errors.NotFound:
            return
        except errors.ApiError as error:
            _log.info("write refused", kind=item.kind, key=item.key, error=str(error))
            self._items.retry(item, error.retry_after_s or 0.0)


def _item(reservation: reservations.Reservation) -> write_pool.WorkItem:
    return write_pool.WorkItem("reservation", reservation.key)


def _ref(reservation: reservations.Reservation) -> recorder.ObjectRef:
    return recorder.ObjectRef(
        reservations.KIND, crd.VERSION, reservation.namespace, reservation.name, reservation.uid
    )
