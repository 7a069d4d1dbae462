"""A gRPC server on a Unix socket, run as a thread of the process."""

import threading
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path

import grpc
import structlog

from driver import clock, errors
from driver.kubeletplugin.host import sockets

_log = structlog.get_logger(__name__)
_POLL_S = 1.0
AddServices = Callable[[grpc.Server], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """`workers`: calls served at once. `grace_s`: time for running calls at the end."""

    workers: int
    grace_s: float
    clock: clock.Clock


class UnixServer:
    """`run` is a thread's target; it returns early if the server ends by itself."""

    def __init__(self, name: str, path: Path, add: AddServices, settings: Settings) -> None:
        self._name = name
        self._path = path
        self._add = add
        self._settings = settings
        self.serving = threading.Event()
        """Set once the socket has its name and is answered."""

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set, then let running calls end.

        Raises:
            NodeFault: the socket cannot be bound.
        """
        server, owned = self._start()
        self.serving.set()
        _log.info("serving", server=self._name, socket=str(self._path))
        try:
            while not self._settings.clock.wait(stop, _POLL_S):
                if not server.wait_for_termination(0):
                    _log.error("server ended by itself", server=self._name)
                    return
        finally:
            removed = owned.remove()
            server.stop(self._settings.grace_s).wait()
            _log.info("server stopped", server=self._name, socket_removed=removed)

    def _start(self) -> tuple[grpc.Server, sockets.OwnedSocket]:
        """Bind under the hidden name and serve before the socket gets its name."""
        bound = sockets.bind_path(self._path)
        pool = futures.ThreadPoolExecutor(
            self._settings.workers, thread_name_prefix=f"grpc-{self._name}"
        )
        server = grpc.server(pool, options=(("grpc.so_reuseport", 0),))
        self._add(server)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            bound.unlink(missing_ok=True)
            server.add_insecure_port(f"unix:{bound}")
            server.start()
        except (OSError, RuntimeError) as e:
            raise errors.NodeFault("serve at", str(self._path), str(e)) from e
        try:
            return server, sockets.publish(self._path)
        except errors.NodeFault:
            bound.unlink(missing_ok=True)
            server.stop(None).wait()
            raise
