"""The webhook's door: cheroot's threaded WSGI server, with TLS that cannot be held up.

Two things are done otherwise than cheroot does by itself. It shakes hands in the thread that
accepts, where one silent client stops all; here a connection waits in the selector until it says
something, and the handshake is the worker's. And its timeout is for each read, so that a client
that sends a byte now and then keeps a worker; here a request has one deadline for everything.
What is left to whoever can open many connections is to keep every worker until its deadline, over
and over; who may connect is for a NetworkPolicy.
"""

import logging
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import cheroot.errors
import cheroot.makefile
import cheroot.server
import cheroot.ssl
import cheroot.wsgi
import structlog

from driver import clock, errors
from driver.controller.admission import pem_context, review

_log = structlog.get_logger(__name__)

DEADLINE_S = 5.0
"""From the first byte to the last of a request; webhooks here have `timeoutSeconds: 5` at most."""
_THREADS = 32
_MOST_CONNECTIONS = 512
"""Silent ones included, which are closed after ten seconds."""
_SPARE = 64 << 10
"""Bytes of a body beyond what a review may have: they are refused with a reason, not cut off."""
_HEADERS = 16 << 10


class Handler(Protocol):
    """Answers a POST: status, and the body as JSON."""

    def __call__(self, body: bytes) -> tuple[int, bytes]:
        """Never raises but what ends the request: `TimeoutError` of its client."""
        ...


class Application:
    """WSGI: POST to one of the handlers' paths, GET /healthz."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def __call__(
        self, environ: Mapping[str, Any], start: Callable[[str, list[tuple[str, str]]], object]
    ) -> Iterable[bytes]:
        """Answer one request."""
        code, kind, body = self._answer(environ)
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        start(f"{code} {_WORDS.get(code, 'Error')}", headers)
        return [body]

    def _answer(self, environ: Mapping[str, Any]) -> tuple[int, str, bytes]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == "/healthz" and method in {"GET", "HEAD"}:
            return 200, _PLAIN, b"ok\n"
        handler = self._handlers.get(path)
        if handler is None:
            return 404, _PLAIN, b"not found\n"
        if method != "POST":
            return 405, _PLAIN, b"expected POST\n"
        code, body = handler(environ["wsgi.input"].read())
        return code, "application/json" if code == _OK else _PLAIN, body


_OK = 200
_PLAIN = "text/plain; charset=utf-8"
_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class Server:
    """Serves an application. Without a certificate every connection is closed at once.

    Port 0 is any that is free. Raises NodeFault where it cannot listen.
    """

    def __init__(
        self,
        address: tuple[str, int],
        application: Application,
        time: clock.Clock,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._tls = _Tls(time)
        self._server = _Http(address, application, deadline_s)
        self._server.ssl_adapter = self._tls
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
        self._tls.context = pem_context.of(certificate, key, _Socket)

    def run(self, stop: threading.Event) -> None:
        """Serve until `interrupt`, called once `stop` is set."""
        self._server.serve()
        if not stop.is_set():
            raise errors.NodeFault("serve", "the webhook", "the server ended by itself")

    def interrupt(self) -> None:
        """Take no more connections, and let requests end."""
        self._server.stop()


class _Socket(ssl.SSLSocket):
    """Every read and write ends at one deadline, which `begin` sets."""

    _clock: clock.Clock
    _until: float

    def begin(self, time: clock.Clock, deadline_s: float) -> None:
        self._clock, self._until = time, time.monotonic() + deadline_s
        self._hurry()

    def recv_into(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        self._hurry()
        return super().recv_into(*arguments, **more)

    def send(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        self._hurry()
        return super().send(*arguments, **more)

    def _hurry(self) -> None:
        left_s = self._until - self._clock.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")  # cheroot knows it by these words
        self.settimeout(left_s)


class _Tls(cheroot.ssl.Adapter):
    """Wraps sockets by the present context; the handshake is left to who reads first."""

    def __init__(self, time: clock.Clock) -> None:
        self.context: ssl.SSLContext | None = None
        self.clock = time

    def bind(self, sock: Any) -> Any:  # noqa: ANN401 - cheroot's sockets
        return sock

    def wrap(self, sock: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 - as above
        if self.context is None:
            sock.close()  # cheroot leaves it to the garbage collector
            raise cheroot.errors.FatalSSLAlert("there is no certificate yet")
        try:
            wrapped = self.context.wrap_socket(
                sock, server_side=True, do_handshake_on_connect=False
            )
        except OSError as error:  # gone before it began
            sock.close()
            raise cheroot.errors.FatalSSLAlert(str(error)) from error
        return wrapped, self.get_environ()

    def get_environ(self) -> dict[str, str]:
        return {"wsgi.url_scheme": "https", "HTTPS": "on"}

    def makefile(self, sock: Any, mode: str = "r", bufsize: int = -1) -> Any:  # noqa: ANN401 - as above
        return cheroot.makefile.MakeFile(sock, mode, bufsize)


class _Connection(cheroot.server.HTTPConnection):
    """One request is read, answered and written before its deadline, or the connection ends."""

    def communicate(self) -> Any:  # noqa: ANN401 - truth, by cheroot's own reckoning
        tls: _Tls = self.server.ssl_adapter
        try:
            self.socket.begin(tls.clock, self.server.deadline_s)
            if self.socket.version() is None:
                self.socket.do_handshake()
            return super().communicate()  # type: ignore[no-untyped-call]
        except OSError as error:  # scanners, health checks by TCP, clients that went away
            _log.debug("connection ended", error=str(error))
            return False


class _Http(cheroot.wsgi.Server):
    ConnectionClass = _Connection

    def __init__(
        self, address: tuple[str, int], application: Application, deadline_s: float
    ) -> None:
        super().__init__(
            address, application, numthreads=_THREADS, request_queue_size=128, server_name=""
        )
        self.deadline_s = deadline_s
        self.max_request_body_size = review.MOST_BYTES + _SPARE
        self.max_request_header_size = _HEADERS
        self.keep_alive_conn_limit = _MOST_CONNECTIONS

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
