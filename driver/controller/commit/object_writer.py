"""Writer of Ration's own kinds: on the write pool, fenced (D22)."""

from collections.abc import Mapping
from typing import Any

from driver import ids, reasons
from driver.controller import ports
from driver.controller.commit import reporter, write_pool
from driver.kube import gvr
from driver.resources import fields, queues, reservations


class ObjectWriter:
    """Thread safe. Calls return at once; a refused write re-enqueues its item."""

    def __init__(
        self, pool: write_pool.WritePool, writer: ports.Writer, reports: reporter.Reporter
    ) -> None:
        self._pool = pool
        self._writer = writer
        self._reporter = reports

    def write_queue_status(self, queue: queues.Queue, status: Mapping[str, Any]) -> None:
        """Patch a Queue's status."""
        body = {"metadata": {"uid": queue.uid}, "status": status}
        self._pool.submit(
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
            self._reporter.reservation_event(reservation, reason, message or reason.meaning)

        self._pool.submit(_item(reservation.key), write)

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
        self._pool.submit(_item(ids.Key(f"{namespace}/{name}")), write)

    def delete_reservation(self, reservation: reservations.Reservation) -> None:
        """Delete a Reservation of ours."""
        self._pool.submit(
            _item(reservation.key),
            lambda: self._writer.delete(
                gvr.RESERVATIONS, reservation.name, reservation.namespace, uid=reservation.uid
            ),
        )


def _item(reservation: ids.Key) -> write_pool.WorkItem:
    return write_pool.WorkItem("reservation", reservation)
