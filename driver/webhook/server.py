"""HTTP application of the webhook: reviews at their paths, and health."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from driver.runtime.https import server
from driver.webhook import admission_review

DEADLINE_S = 5.0
"""From the first byte to the last of a request; webhooks here have `timeoutSeconds: 5` at most."""
_SPARE = 64 << 10
"""Bytes of a body beyond what a review may have: they are refused with a reason, not cut off."""
LIMITS = server.Limits(DEADLINE_S, admission_review.MOST_BYTES + _SPARE)


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
