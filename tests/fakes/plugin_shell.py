"""Pieces of a running plugin: its servers on threads of their own, and what it tells users."""

import threading
from pathlib import Path

import grpc

from driver import clock, errors, ids
from driver.devices import model
from driver.kube.events import recorder
from driver.kubeletplugin import metrics
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.rpc import dra_service, health_stream, registration, unix_server

DRIVER = "gpu.ration.dev"


class Events:
    """Remembers what was told: warnings, and what is no warning apart."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str, str]] = []
        self.good_news: list[tuple[str, str, str, str]] = []

    def event(
        self,
        regarding: recorder.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: recorder.ObjectRef | None = None,
    ) -> None:
        assert related is None
        reported = self.told if warning else self.good_news
        reported.append((regarding.kind, regarding.name, reason, message))


class Shell:
    """Both servers of a plugin, on threads of their own."""

    def __init__(
        self,
        root: Path,
        service: dra_service.DraService,
        streams: health_stream.HealthStreams,
        counters: metrics.Metrics,
    ) -> None:
        self.paths = sockets.socket_paths(root, DRIVER)
        self.registration = registration.Registration(DRIVER, self.paths.service, counters)
        self._service = service
        self._streams = streams
        self.workers = 32
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        settings = unix_server.Settings(self.workers, 0.2, clock.SystemClock())
        for name, path, add in (
            ("dra", self.paths.service, self._add_to),
            ("registration", self.paths.registration, self.registration.add_to),
        ):
            server = unix_server.UnixServer(name, path, add, settings)
            thread = threading.Thread(target=server.run, args=(self._stop,))
            thread.start()
            assert server.serving.wait(5)
            self._threads.append(thread)

    def _add_to(self, grpc_server: grpc.Server) -> None:
        self._service.add_to(grpc_server)
        self._streams.add_to(grpc_server)

    def stop(self) -> None:
        self._stop.set()
        self._streams.close()
        self._service.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()


def inventory(count: int, brand: str = "NVIDIA") -> model.Inventory:
    """GPUs at 0000:01:00.0 and on."""
    return model.Inventory(
        tuple(
            model.Gpu(
                uuid=ids.GpuUuid(f"GPU-{index:08d}-0000-0000-0000-000000000000"),
                pci=ids.PciAddress(f"0000:{index + 1:02x}:00.0"),
                minor=index,
                product="NVIDIA H100 80GB HBM3",
                brand=brand,
                architecture="Hopper",
                cuda_capability=(9, 0),
                driver_version="580.82.07",
                cuda_driver_version=(13, 0),
                memory_bytes=85_520_809_984,
            )
            for index in range(count)
        )
    )


class Gpus:
    """Inventory of the node's GPUs, or the error of reading it."""

    def __init__(self, result: model.Inventory) -> None:
        self.found: model.Inventory | errors.DeviceFault = result
        self.looks = 0

    def before(self) -> None:
        """A test puts here what a look should wait for."""

    def look(self) -> model.Inventory:
        self.looks += 1
        self.before()
        if isinstance(self.found, errors.DeviceFault):
            raise self.found
        return self.found
