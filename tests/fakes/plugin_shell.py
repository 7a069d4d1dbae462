"""Pieces of a running plugin: its servers on threads of their own, and what it tells users."""

import threading
from pathlib import Path

from driver import clock
from driver.kube import events
from driver.kubeletplugin import metrics, registration, rpc, server, sockets

DRIVER = "gpu.ration.dev"


class Events:
    """Remembers what was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str, str]] = []

    def event(
        self,
        regarding: events.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: events.ObjectRef | None = None,
    ) -> None:
        assert warning
        assert related is None
        self.told.append((regarding.kind, regarding.name, reason, message))


class Shell:
    """Both servers of a plugin, on threads of their own."""

    def __init__(self, root: Path, service: server.DraService, counters: metrics.Metrics) -> None:
        self.paths = sockets.paths(root, DRIVER)
        self.registration = registration.Registration(DRIVER, self.paths.service, counters)
        self._service = service
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        settings = rpc.Settings(32, 0.2, clock.SystemClock())
        for name, path, add in (
            ("dra", self.paths.service, self._service.add_to),
            ("registration", self.paths.registration, self.registration.add_to),
        ):
            one = rpc.UnixServer(name, path, add, settings)
            thread = threading.Thread(target=one.run, args=(self._stop,))
            thread.start()
            assert one.serving.wait(5)
            self._threads.append(thread)

    def stop(self) -> None:
        self._stop.set()
        self._service.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
