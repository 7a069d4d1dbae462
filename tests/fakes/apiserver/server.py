"""The API server's door: start it, point a client at it, look at what was asked, break it."""

import http.server
import socket
import threading
from pathlib import Path
from typing import Any, Self, TypeAlias

import yaml

from driver.kube import gvr
from tests.fakes.apiserver import faults, handler, rules, state, storage

Object = dict[str, Any]
Peer: TypeAlias = Any
"""What socketserver calls a request: the connection's socket."""


class _Listener(http.server.ThreadingHTTPServer):
    """Remembers its connections, so that they can be dropped."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, shared: state.State) -> None:
        self.state = shared
        self.sockets: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), handler.Handler)

    def process_request(self, request: Peer, client_address: object) -> None:
        self.sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Peer) -> None:
        self.sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Peer, client_address: object) -> None:
        """A client that went away is no news."""

    def drop(self) -> None:
        for connection in list(self.sockets):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class ApiServer:
    """`with ApiServer() as server: client.KubeClient.connect(server.kubeconfig(tmp_path), ...)`.

    `bookmark_s`: how often a quiet watch gets a bookmark. `page`: upper bound of a list's limit.
    """

    def __init__(self, bookmark_s: float = 0.2) -> None:
        self.storage = storage.Storage()
        self.faults = faults.Faults()
        self._state = state.State(self.storage, self.faults, bookmark_s)
        self._listener: _Listener | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> list[faults.Request]:
        """All requests so far, in order of arrival."""
        return list(self._state.requests)

    def watches(self) -> list[faults.Request]:
        return [r for r in self.requests if r.is_watch]

    def lists(self) -> list[faults.Request]:
        return [r for r in self.requests if faults.lists(r)]

    def allow_tokens(self, *tokens: str) -> None:
        """Answer 401 to everybody else from now on."""
        self._state.tokens = set(tokens)

    def deny_with(self, policy: state.Policy) -> None:
        """Add an admission policy: a text refuses the write with 403."""
        self._state.policies.append(policy)

    def up(self) -> None:
        """Listen, on the same port as before."""
        self._state.closed.clear()
        self._listener = _Listener(self._port, self._state)
        self._port = self._listener.server_address[1]
        threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def down(self) -> None:
        """Stop listening and drop every connection; objects stay."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        self._state.closed.set()
        with self.storage.changed:
            self.storage.changed.notify_all()
        listener.shutdown()
        listener.server_close()
        listener.drop()

    def drop_connections(self) -> None:
        """Drop all connections as a proxy that restarts."""
        if self._listener is not None:
            self._listener.drop()

    def forget(self, retained: int = 1000) -> None:
        """Keep but the last requests and changes, for runs of hours; slower watches get 410."""
        del self._state.requests[:-retained]
        self.storage.trim(retained)

    def kubeconfig(self, folder: Path, token_file: Path | None = None) -> Path:
        """Write a kubeconfig that points here."""
        user = {} if token_file is None else {"tokenFile": str(token_file)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "fake", "user": user}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        }
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def pretend(self, git_version: str) -> None:
        """Be a server of that version: `v1.36.3`."""
        self._state.git_version = git_version

    def lack(self, *rights: str) -> None:
        """Rights, `patch pods`, that no account has that somebody asks about."""
        self._state.lacking |= {*rights}

    def say(self, path: str, text: str) -> None:
        """Set the answer of a pod's log or port: `/api/v1/.../pods/a/log?container=main`."""
        self._state.texts[path] = text

    def put(self, kind: gvr.Resource, obj: Object) -> Object:
        """Write an object as it is, status and all, past every rule."""
        return self.storage.put((kind.group, kind.plural), obj)

    def read(self, kind: gvr.Resource, name: str, namespace: str = "") -> Object | None:
        """The object now, if there is one."""
        try:
            return self.storage.get((kind.group, kind.plural), (namespace, name))
        except rules.Refusal:
            return None

    def all(self, kind: gvr.Resource) -> list[Object]:
        return self.storage.all((kind.group, kind.plural), None)[0]

    def remove(self, kind: gvr.Resource, name: str, namespace: str = "") -> Object:
        """Drop an object at once, whatever its finalizers say."""
        return self.storage.remove((kind.group, kind.plural), (namespace, name))
