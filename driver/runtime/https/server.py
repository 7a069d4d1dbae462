"""cheroot's threaded WSGI server, which no client can hold up.

Two things are done otherwise than cheroot does by itself. It shakes hands in the thread that
accepts, where one silent client stops all; here a connection waits in the selector until it says
something, and the handshake is the worker's. And its timeout is for each read, so that a client
that sends a byte now and then keeps a worker; here a request has one deadline for everything.
What is left to whoever can open many connections is to keep every worker until its deadline, over
and over; who may connect is for a NetworkPolicy.
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
    """What a client may take.

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

    Port 0 is any that is free. Raises NodeFault where it cannot listen.
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
        """The port listened on."""
        return int(self._server.bind_addr[1])

    @property
    def ready(self) -> bool:
        """Whether there is a certificate."""
        return self._tls.context is not None

    def use(self, certificate: bytes, key: bytes) -> None:
        """Serve this certificate (PEM) from the next connection on; those there are go on.

        Raises:
            BadInput: they are not a certificate and its key; what was served goes on.
        """
        self._tls.context = pem_context.server_context(certificate, key, sockets.Secure)

    def run(self, stop: threading.Event) -> None:
        """Serve until `interrupt`, called once `stop` is set."""
        self._server.serve()
        if not stop.is_set():
            raise errors.NodeFault("serve on", f"port {self.port}", "the server ended by itself")

    def interrupt(self) -> None:
        """Take no more connections, and let requests end."""
        self._server.stop()


class _Connection(cheroot.server.HTTPConnection):
    """One request is read, answered and written before its deadline, or the connection ends."""

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
        """Close what cannot be bound."""
        try:
            found = cheroot.wsgi.Server.bind_socket(socket_, bind_addr)  # type: ignore[no-untyped-call]
        except OSError:
            socket_.close()
            raise
        return found

    def process_conn(self, conn: Any) -> None:  # noqa: ANN401 - cheroot's connection
        """Give it to a worker once it has said something."""
        if conn.last_used is not None:
            super().process_conn(conn)
        elif self.can_add_keepalive_connection:
            self.put_conn(conn)
        else:
            conn.close()

    def error_log(self, msg: str = "", level: int = 20, traceback: bool = False) -> None:  # noqa: FBT001, FBT002 - cheroot's signature
        # Clients that go away are no news.
        shown = level if level >= logging.WARNING else logging.DEBUG
        _log.log(shown, "server", message=msg, exc_info=traceback)
