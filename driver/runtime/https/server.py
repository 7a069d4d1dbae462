"""cheroot's threaded WSGI server, hardened against slow clients.

It differs from plain cheroot in two ways. cheroot does the TLS handshake in the accepting thread,
where one silent client blocks all; here a connection waits in the selector until it sends
something, and a worker does the handshake. And cheroot's timeout is per read, so that a client that
sends a byte now and then keeps a worker; here a request has one deadline.

A client that opens many connections can still occupy every worker until its deadline, repeatedly;
restrict who may connect by a NetworkPolicy.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cheroot.server
import cheroot.wsgi
import structlog

from driver import clock, errors
from driver.runtime.https import pem_context, sockets

_log = structlog.get_logger(__name__)

Application = Callable[..., Any]
"""Any WSGI application."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a client.

    `deadline_s`: from the first byte to the last of a request. `connections`: silent ones included,
    which are closed after ten seconds. Bytes of a body and of the headers.
    """

    deadline_s: float
    body: int
    headers: int = 16 << 10
    threads: int = 32
    connections: int = 512


class Server:
    """Serves an application; with TLS, every connection is closed until there is a certificate.

    Port 0 takes any free port. Raises NodeFault if it cannot listen.
    """

    def __init__(
        self,
        address: tuple[str, int],
        application: Application,
        time: clock.Clock,
        limits: Limits,
        *,
        tls: bool = True,
    ) -> None:
        self._tls = sockets.Tls()
        self._server = _Http(address, application, limits)
        self._server.time = time
        self._server.ssl_adapter = self._tls if tls else sockets.Adapter()
        try:
            self._server.prepare()
        except OSError as error:
            host, port = address
            raise errors.NodeFault("listen on", f"{host}:{port}", str(error)) from error

    @property
    def port(self) -> int:
        """Return the port listened on."""
        return int(self._server.bind_addr[1])

    @property
    def ready(self) -> bool:
        """Return whether there is a certificate."""
        return self._tls.context is not None

    def use(self, certificate: bytes, key: bytes) -> None:
        """Serve this certificate (PEM) from the next connection on; open ones continue.

        Raises:
            BadInput: they are not a certificate and its key; the old certificate stays.
        """
        self._tls.context = pem_context.server_context(certificate, key, sockets.Secure)

    def run(self, stop: threading.Event) -> None:
        """Serve until `interrupt`, called once `stop` is set."""
        self._server.serve()
        if not stop.is_set():
            raise errors.NodeFault("serve on", f"port {self.port}", "the server ended by itself")

    def interrupt(self) -> None:
        """Accept no more connections, and let requests end."""
        self._server.stop()


class _Connection(cheroot.server.HTTPConnection):
    """A request is read, answered and written before its deadline, or the connection ends."""

    def communicate(self) -> Any:  # noqa: ANN401 - truth, by cheroot's own reckoning
        try:
            self.socket.set_deadline(self.server.time, self.server.limits.deadline_s)
            self.socket.handshake()
            return super().communicate()  # type: ignore[no-untyped-call]
        except OSError as error:  # scanners, health checks by TCP, clients that went away
            _log.debug("connection ended", error=str(error))
            return False


class _Http(cheroot.wsgi.Server):
    ConnectionClass = _Connection
    time: clock.Clock

    def __init__(self, address: tuple[str, int], application: Application, limits: Limits) -> None:
        super().__init__(
            address,
            application,
            numthreads=limits.threads,
            request_queue_size=128,
            server_name="",
        )
        self.limits = limits
        self.max_request_body_size = limits.body
        self.max_request_header_size = limits.headers
        self.keep_alive_conn_limit = limits.connections

    @staticmethod
    def bind_socket(socket_: Any, bind_addr: Any) -> Any:  # noqa: ANN401 - cheroot's sockets
        """Close the socket if it cannot be bound."""
        try:
            bound = cheroot.wsgi.Server.bind_socket(socket_, bind_addr)  # type: ignore[no-untyped-call]
        except OSError:
            socket_.close()
            raise
        return bound

    def process_conn(self, conn: Any) -> None:  # noqa: ANN401 - cheroot's connection
        """Hand a connection to a worker once it has sent something."""
        if conn.last_used is not None:
            super().process_conn(conn)
        elif self.can_add_keepalive_connection:
            self.put_conn(conn)
        else:
            conn.close()

    def error_log(self, msg: str = "", level: int = 20, traceback: bool = False) -> None:  # noqa: FBT001, FBT002 - cheroot's signature
        # Clients that go away are no news.
        log_level = level if level >= logging.WARNING else logging.DEBUG
        _log.log(log_level, "server", message=msg, exc_info=traceback)
