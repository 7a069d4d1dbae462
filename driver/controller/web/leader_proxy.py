"""Forwards requests of a standby to the leader."""

import ssl
from collections.abc import Callable
from pathlib import Path

import flask
import structlog
import urllib3

from driver.controller.web.auth import guard

_log = structlog.get_logger(__name__)
_TIMEOUT = urllib3.Timeout(connect=1.0, read=4.0)
_KEPT = ("Content-Type", "Content-Length", "Allow", "WWW-Authenticate")


class LeaderProxy:
    """Requests the leader by its pod's address. `certificate` is served by both and trusted."""

    def __init__(
        self, leader: Callable[[], str], port: int, certificate: Path | None = None
    ) -> None:
        self._leader = leader
        self._port = port
        self._certificate = certificate
        self._plain = urllib3.PoolManager(retries=False, timeout=_TIMEOUT)

    def __call__(self, path: str, token: str) -> flask.Response | None:
        """Its answer; None where it is not reached."""
        address = self._leader()
        if not address:
            return None
        host = f"[{address}]" if ":" in address else address
        scheme = "https" if self._certificate else "http"
        url = f"{scheme}://{host}:{self._port}{path}"
        headers = {guard.FORWARDED: "1", "Authorization": f"Bearer {token}"}
        try:
            answer = self._pool().request("GET", url, headers=headers, redirect=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            _log.info("leader not reached", url=f"{scheme}://{host}:{self._port}", error=str(error))
            return None
        headers_kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
        return flask.Response(answer.data, answer.status, headers_kept)

    def _pool(self) -> urllib3.PoolManager:
        """Return a pool that trusts the current certificate: it is rotated."""
        if self._certificate is None:
            return self._plain
        context = ssl.create_default_context(cadata=self._certificate.read_text())
        # It is for the Service's name, and may be nobody's root: that very one is expected.
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return urllib3.PoolManager(
            retries=False, timeout=_TIMEOUT, ssl_context=context, assert_hostname=False
        )
