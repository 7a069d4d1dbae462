"""The kubelet's watch on device health, v1 and v1alpha1 (KEP-4680), which `kubectl` shows.

A stream holds a thread as long as it lives, so streams have a pool of their own: gRPC takes it from
the handler (`experimental_thread_pool`), and Prepare never waits for one. Without it they would
still be few among the server's workers.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import grpc
import structlog

from driver import clock
from driver.pb import (
    health_v1_pb2,
    health_v1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
)

_log = structlog.get_logger(__name__)
_MESSAGE_LIMIT = 1024
_SPARE_THREADS = 4
"""Threads for streams beyond the limit, which are refused at once."""


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """One published device; `healthy` is None if unknown, `message` the reason if not True."""

    pool: str
    device: str
    healthy: bool | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """At most `limit` streams; every device is resent after `period_s`, valid for `timeout_s`.

    The kubelet holds one stream, and two for a moment while it reconnects.
    """

    limit: int = 8
    period_s: float = 10.0
    timeout_s: int = 30


@dataclass(frozen=True, slots=True)
class _Version:
    messages: Any
    add: Callable[..., None]


_VERSIONS: Final = (
    _Version(health_v1_pb2, health_v1_pb2_grpc.add_DRAResourceHealthServicer_to_server),
    _Version(health_v1alpha1_pb2, health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server),
)


class HealthStreams:
    """Streams all devices to every watcher: at once, on `notify`, and periodically. Thread safe."""

    def __init__(
        self,
        devices: Callable[[], Sequence[DeviceHealth]],
        clock: clock.Clock,
        pace: StreamSettings | None = None,
    ) -> None:
        self._devices = devices
        self._clock = clock
        self._settings = pace or StreamSettings()
        self._lock = threading.Lock()
        self._wakes: set[threading.Event] = set()
        self._closed = False

    def add_to(self, server: grpc.Server) -> None:
        """Register on `server`."""
        threads = self._settings.limit + _SPARE_THREADS
        pool = futures.ThreadPoolExecutor(threads, thread_name_prefix="health-stream")
        for version in _VERSIONS:
            watch = _WatchHandler(self, version.messages, pool)
            functools.partial(version.add, SimpleNamespace(NodeWatchResources=watch))(server)

    def notify(self) -> None:
        """Make every stream send the devices again now."""
        with self._lock:
            for wake in self._wakes:
                wake.set()

    def close(self) -> None:
        """End every stream; later ones end at once."""
        self._closed = True
        self.notify()

    def stream_count(self) -> int:
        """Return the number of open streams."""
        with self._lock:
            return len(self._wakes)

    def watch(self, context: grpc.ServicerContext) -> Iterator[Sequence[DeviceHealth]]:
        """Yield all devices repeatedly, until the watcher leaves or the service closes."""
        wake = threading.Event()
        if not self._open_stream(wake):
            text = f"there are {self._settings.limit} streams already"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        try:
            context.add_callback(wake.set)
            while True:
                wake.clear()  # before the devices are read
                if self._closed or not context.is_active():
                    return
                yield self._devices()
                self._clock.wait(wake, self._settings.period_s)
        finally:
            self._close_stream(wake)

    def render(self, messages: Any, devices: Sequence[DeviceHealth]) -> Any:  # noqa: ANN401 - of a version
        """Return the message of one version."""
        now = int(self._clock.now().timestamp())
        return messages.NodeWatchResourcesResponse(
            devices=[
                messages.DeviceHealth(
                    device=messages.DeviceIdentifier(
                        pool_name=device.pool, device_name=device.device
                    ),
                    health=_health_status(messages, healthy=device.healthy),
                    last_updated_time=now,
                    health_check_timeout_seconds=self._settings.timeout_s,
                    message=device.message[:_MESSAGE_LIMIT],
                )
                for device in devices
            ]
        )

    def _open_stream(self, wake: threading.Event) -> bool:
        with self._lock:
            if len(self._wakes) >= self._settings.limit:
                return False
            self._wakes.add(wake)
        _log.debug("health stream opened")
        return True

    def _close_stream(self, wake: threading.Event) -> None:
        with self._lock:
            self._wakes.discard(wake)
        _log.debug("health stream ended")


class _WatchHandler:
    """The handler of one version."""

    def __init__(
        self,
        streams: HealthStreams,
        messages: Any,  # noqa: ANN401 - a module
        pool: futures.ThreadPoolExecutor,
    ) -> None:
        self._streams = streams
        self._messages = messages
        self.experimental_thread_pool = pool  # gRPC's server runs the handler there

    def __call__(self, _request: object, context: grpc.ServicerContext) -> Iterator[Any]:
        """NodeWatchResources."""
        for devices in self._streams.watch(context):
            yield self._streams.render(self._messages, devices)


def _health_status(messages: Any, *, healthy: bool | None) -> int:  # noqa: ANN401 - a module
    if healthy is None:
        return int(messages.UNKNOWN)
    return int(messages.HEALTHY if healthy else messages.UNHEALTHY)
