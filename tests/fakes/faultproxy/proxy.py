"""The shell of the proxy: real connections, one thread each; what happens is `plan`'s to say.

It speaks plain HTTP to its client and HTTP or HTTPS to the server. The bearer token goes through
as it comes, so the server sees who really asks; who is known by a client certificate cannot use it.
"""

import collections
import http.server
import socket
import struct
import threading
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

import urllib3
import yaml

from driver import clock
from tests.fakes.faultproxy import own_lease, plan, relay

PATIENCE = urllib3.Timeout(connect=5, read=600)
"""With the server: a watch on which nothing happens is quiet for a minute."""
_CLOCK = clock.SystemClock()
_RESET = struct.pack("ii", 1, 0)
_HOP = frozenset({"host", "connection", "content-length", "transfer-encoding", "keep-alive"})
_NOT_ASKED = _HOP | {"accept-encoding"}
"""The relay splits a watch into lines, and since 1.37 a compressed one has none."""
Peer: TypeAlias = Any
"""What socketserver calls a request: the connection's socket."""


class FaultProxy:
    """`with FaultProxy(url, chooser, authority) as proxy: proxy.kubeconfig(folder, token_file)`.

    `authority` is a file with the server's certificate authority, for an https `url`. `token` goes
    with requests that bring none: clients in Go send theirs over TLS alone.
    """

    def __init__(
        self, url: str, chooser: plan.Chooser, authority: Path | None = None, token: str = ""
    ) -> None:
        self._url = url
        self._token = token
        self._chooser = chooser
        trusted = None if authority is None else str(authority)
        self.pool = urllib3.PoolManager(maxsize=64, retries=False, ca_certs=trusted)
        self.closed = threading.Event()
        self.faults: collections.Counter[str] = collections.Counter()
        self.requests: collections.Counter[str] = collections.Counter()
        self.broken: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()
        self._hole_ends = 0.0
        self._refused: frozenset[str] = frozenset()
        self.lease: own_lease.OwnLease | None = None
        self._streams: set[urllib3.BaseHTTPResponse] = set()
        self._listener = _Listener(self)

    def __enter__(self) -> Self:
        serve, poll = self._listener.serve_forever, {"poll_interval": 0.05}
        threading.Thread(target=serve, kwargs=poll, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self._listener.shutdown()
        self._listener.server_close()
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            _end(stream)
        self.pool.clear()

    @property
    def url(self) -> str:
        """Return where clients ask."""
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def kubeconfig(self, folder: Path, token_file: Path | None = None) -> Path:
        """Write a kubeconfig that points here."""
        user = {} if token_file is None else {"tokenFile": str(token_file)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "proxy", "user": user}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        }
        path = folder / "proxy.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def refuse(self, *tokens: str) -> None:
        """Answer 401 to these tokens from now on, as after a rotation."""
        self._refused = frozenset(tokens)

    def keep_lease(self, lease: own_lease.OwnLease) -> None:
        """Before the client starts: its Lease is ours to answer for."""
        self.lease = lease

    def choose(self, chooser: plan.Chooser) -> None:
        """Follow another plan from now on; the numbers go on."""
        self._chooser = chooser

    # For the connections' threads.

    def meets(self, kind: plan.Kind) -> tuple[int, plan.Fault | None]:
        """The next request of a kind: its number and its fault."""
        with self._lock:
            number = self.requests[kind.value]
            self.requests[kind.value] += 1
        fault = self._chooser.of_request(kind, number)
        self.count(fault)
        return number, fault

    def frame_fault(self, watch: int, frame: int, *, bookmark: bool) -> plan.FrameFault | None:
        """Return what happens to a frame."""
        fault = self._chooser.of_frame(watch, frame, bookmark=bookmark)
        self.count(fault, " bookmark" if bookmark else "")
        return fault

    def count(self, fault: plan.Fault | plan.FrameFault | None, more: str = "") -> None:
        if fault is not None:
            with self._lock:
                self.faults[plan.name_of(fault) + more] += 1

    def tell_broken(self, kind: plan.Kind, error: Exception) -> None:
        """A connection broke that no plan has broken."""
        with self._lock:
            self.broken[f"{kind.value}: {type(error).__name__}: {error}"[:120]] += 1

    def is_refused(self, authorization: str) -> bool:
        return authorization.removeprefix("Bearer ") in self._refused

    def dig(self, seconds: float) -> None:
        """Nothing passes for so long."""
        self._hole_ends = max(self._hole_ends, _CLOCK.monotonic() + seconds)

    def pass_hole(self) -> None:
        """Wait until there is no black hole."""
        while not self.closed.is_set() and (left := self._hole_ends - _CLOCK.monotonic()) > 0:
            self.closed.wait(left)

    def send(self, handler: "Handler", body: bytes) -> urllib3.BaseHTTPResponse:
        """Forward a request; the answer's body is unread."""
        headers = forwarded(dict(handler.headers))
        if self._token:
            headers.setdefault("Authorization", f"Bearer {self._token}")
        answer = self.pool.request(
            handler.command, self._url + handler.path, headers=headers, body=body or None,
            preload_content=False, decode_content=False, timeout=PATIENCE,
        )  # fmt: skip
        with self._lock:
            self._streams.add(answer)
        return answer

    def release(self, answer: urllib3.BaseHTTPResponse, *, broken: bool) -> None:
        with self._lock:
            self._streams.discard(answer)
        if broken:
            answer.close()
        else:
            answer.release_conn()


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), Handler)

    def shutdown_request(self, request: Peer) -> None:
        """Close without a word first: with a linger of 0 that is a reset."""
        request.close()

    def handle_error(self, request: Peer, client_address: object) -> None:
        """A client or a server that went away is no news here."""


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """The proxy counts instead."""

    @property
    def proxy(self) -> FaultProxy:
        return self.server.proxy  # type: ignore[attr-defined,no-any-return]

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        lease = self.proxy.lease
        if lease is not None and lease.is_asked(url.path, self.command):
            self._say(*lease.answer(self.command, body))
            return
        kind = plan.kind_of(self.command, url.path, query)
        number, fault = self.proxy.meets(kind)
        if self.proxy.is_refused(self.headers.get("Authorization", "")):
            self._refuse(plan.Answer(401, "Unauthorized"))
            return
        if isinstance(fault, plan.BlackHole):
            self.proxy.dig(fault.seconds)
        self.proxy.pass_hole()
        match fault:
            case plan.Answer():
                self._refuse(fault)
            case plan.ResetBefore():
                self.reset()
            case plan.HalfOpen(seconds):
                self.proxy.closed.wait(seconds)
                self.reset()
            case plan.Slow(seconds):
                self.proxy.closed.wait(seconds)
                self._forward(kind, number, body)
            case _:
                self._forward(kind, number, body, lost=isinstance(fault, plan.ResetAfter))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 - http.server's names

    def _forward(self, kind: plan.Kind, number: int, body: bytes, *, lost: bool = False) -> None:
        try:
            answer = self.proxy.send(self, body)
        except urllib3.exceptions.HTTPError:
            self.reset()
            return
        broken = True
        try:
            if kind is plan.Kind.WATCH and answer.status == 200 and not lost:
                relay.Relay(self, answer, number).run()
            else:
                self._answer(answer, lost=lost)
                broken = False
        except (urllib3.exceptions.HTTPError, OSError) as error:
            self.proxy.tell_broken(kind, error)
            self.reset()
        finally:
            self.proxy.release(answer, broken=broken)

    def _answer(self, answer: urllib3.BaseHTTPResponse, *, lost: bool) -> None:
        data = answer.data
        self.proxy.pass_hole()
        if lost:
            self.reset()
            return
        self.send_response_only(answer.status)
        for key, value in answer.headers.items():
            if key.lower() not in _HOP:
                self.send_header(key, value)
        self._body(data)

    def _refuse(self, fault: plan.Answer) -> None:
        self.send_response_only(fault.status)
        if fault.retry_after_s:
            self.send_header("Retry-After", str(fault.retry_after_s))
        self.send_header("Content-Type", "application/json")
        self._body(relay.status(fault.status, fault.reason))

    def _say(self, code: int, body: bytes) -> None:
        self.send_response_only(code)
        self.send_header("Content-Type", "application/json")
        self._body(body)

    def _body(self, data: bytes) -> None:
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def reset(self) -> None:
        """Let the connection end by a reset."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the request's headers that the server gets, so that its answer comes uncompressed."""
    return {key: value for key, value in headers.items() if key.lower() not in _NOT_ASKED}


def _end(stream: urllib3.BaseHTTPResponse) -> None:
    """Wake the thread that reads it."""
    try:
        stream.shutdown()
    except (ValueError, RuntimeError, OSError, AttributeError):
        return
