"""`/metrics`, `/healthz` and `/readyz` of a process, on one small threaded HTTP server.

Health means progress, not life: a check returns None, or a message of what stalls.
"""

import http.server
import threading
from collections.abc import Callable, Mapping

import prometheus_client

from driver import errors

Check = Callable[[], str | None]
"""Returns None if all is well, else the problem."""

_PLAIN = "text/plain; charset=utf-8"
_IDLE_S = 30.0
_POLL_S = 1.0


class Telemetry:
    """Listens from construction on; `run` is a thread's target.

    `port` 0 takes a free one. Messages of `notes` are added to readiness, and do not fail it.
    Raises NodeFault if `address:port` cannot be bound.
    """

    def __init__(
        self,
        address: str,
        port: int,
        registry: prometheus_client.CollectorRegistry,
        *,
        health: Mapping[str, Check],
        ready: Mapping[str, Check],
        notes: Mapping[str, Check] | None = None,
    ) -> None:
        pages: Pages = {
            "/metrics": lambda: (
                200,
                prometheus_client.CONTENT_TYPE_LATEST,
                prometheus_client.generate_latest(registry),
            ),
            "/healthz": lambda: _run_checks(health),
            "/readyz": lambda: _run_checks(ready, notes or {}),
        }
        try:
            self._server = _Server((address, port), pages)
        except OSError as e:
            raise errors.NodeFault("listen on", f"{address}:{port}", str(e)) from e

    @property
    def port(self) -> int:
        """Return the port listened on."""
        return int(self._server.server_address[1])

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set; checked every second."""
        try:
            while not stop.is_set():
                self._server.handle_request()
        finally:
            self._server.server_close()


Response = tuple[int, str, bytes]
Pages = Mapping[str, Callable[[], Response]]


def _run_checks(checks: Mapping[str, Check], notes: Mapping[str, Check] | None = None) -> Response:
    problems = {name: check() for name, check in checks.items()}
    lines = [f"{name}: {problem or 'ok'}" for name, problem in problems.items()]
    messages = {name: note() for name, note in (notes or {}).items()}
    lines += [f"{name}: ok, but {text}" for name, text in messages.items() if text]
    code = 200 if all(problem is None for problem in problems.values()) else 503
    return code, _PLAIN, "\n".join([*lines, ""]).encode()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    timeout = _POLL_S

    def __init__(self, address: tuple[str, int], pages: Pages) -> None:
        self.pages = pages
        super().__init__(address, _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _IDLE_S

    def do_GET(self) -> None:
        """Serve one of the pages."""
        page = self.server.pages.get(self.path.split("?", 1)[0])
        code, kind, body = page() if page else (404, _PLAIN, b"not found\n")
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log scrapes."""
