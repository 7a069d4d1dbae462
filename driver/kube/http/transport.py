"""One HTTP call to the API server: credentials, time-outs, errors. Nothing is retried here.

Except: a rotated token is re-read, and a 401 is retried once with fresh credentials.
"""

import json
import threading
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

import urllib3

from driver import errors
from driver.kube.http import api_errors, credentials

_UNAUTHORIZED = 401
_NO_ANSWER = (urllib3.exceptions.HTTPError, OSError)


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `timeout_s` is (connect, read), where read limits each wait for bytes.

    A body of bytes is sent unchanged, any other as JSON.
    """

    method: str
    path: str
    timeout_s: tuple[float, float]
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = "application/json"
    accept: str = "application/json"


class Transport:
    """Thread safe; one per process."""

    def __init__(self, source: credentials.Credentials, user_agent: str) -> None:
        self._source = source
        self._user_agent = user_agent
        self._lock = threading.Lock()
        self._session = source.open()

    def read(self, call: Call) -> bytes:
        """Return the whole body of a 2xx response. Raises ApiError."""
        response = self.open(call)
        try:
            body: bytes = response.data
        except _NO_ANSWER as e:
            raise api_errors.unreachable(call.method, call.path, e) from e
        finally:
            response.release_conn()
        return body

    def open(self, call: Call) -> urllib3.BaseHTTPResponse:
        """Return a 2xx response with its body unread; the caller closes it. Raises ApiError."""
        session = self._current()
        response = self._send(session, call)
        if response.status == _UNAUTHORIZED:
            response.close()
            response = self._send(self._renew(session), call)
        if response.status // 100 == 2:  # noqa: PLR2004 - 2xx
            return response
        try:
            raise api_errors.from_response(response.status, response.headers, response.data)
        except _NO_ANSWER as e:
            raise api_errors.unreachable(call.method, call.path, e) from e
        finally:
            response.release_conn()

    def _send(self, session: credentials.Session, call: Call) -> urllib3.BaseHTTPResponse:
        headers = {
            "Accept": call.accept,
            "Content-Type": call.content_type,
            "User-Agent": self._user_agent,
        }
        if session.authorization:
            headers["Authorization"] = session.authorization
        query = urllib.parse.urlencode(call.query)
        url = f"{session.host}{call.path}" + (f"?{query}" if query else "")
        connect_s, read_s = call.timeout_s
        try:
            response = session.pool.request(
                call.method,
                url,
                body=_encode(call.body),
                headers=headers,
                timeout=urllib3.Timeout(connect=connect_s, read=read_s),
                preload_content=False,
            )
        except _NO_ANSWER as e:
            raise api_errors.unreachable(call.method, call.path, e) from e
        return response

    def _current(self) -> credentials.Session:
        session = self._session
        return session if self._source.stamp() == session.stamp else self._renew(session)

    def _renew(self, stale: credentials.Session) -> credentials.Session:
        """Return the session after `stale`; concurrent callers create a single new one.

        Invalid files were valid at the start, so they are being rewritten: the call is Unreachable,
        and a later one reads them again.
        """
        with self._lock:
            if self._session is stale:
                try:
                    self._session = self._source.open()
                except errors.BadInput as e:
                    raise api_errors.unreachable("READ", "credentials", e) from e
            return self._session


def _encode(body: object) -> bytes | None:
    """Encode JSON as Go does: no spaces, sorted keys.

    The server keeps opaque parameters byte for byte, and takes the same in another form for a
    change: a claim created with spaces in them cannot be patched any more (finalizers.py). Half a
    surrogate pair, which such parameters may hold, is written as the escape it came as.
    """
    if body is None or isinstance(body, bytes):
        return body
    text = json.dumps(body, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.encode(errors="backslashreplace")
