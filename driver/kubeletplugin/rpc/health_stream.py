"""The kubelet's watch on the devices' health, v1 and v1alpha1 (KEP-4680): what `kubectl` shows.

A stream holds a thread for as long as it lives, so streams have a pool of their own: gRPC takes
it from the handler (`experimental_thread_pool`), and Prepare never waits for one. Without that
they would still be few among the server's workers.
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
"""For streams beyond the limit, which are refused at once."""


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """One published device; `healthy` is None where it cannot be told, `message` why not True."""

    pool: str
    device: str
    healthy: bool | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """`limit` streams at once; every device again after `period_s`, good for `timeout_s`.

    The kubelet holds one stream, and two for a moment while it connects anew.
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
    """Tells every watcher of all devices: at once, on `changed`, and now and then. Thread safe."""

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
        """Serve on `server`."""
        threads = self._settings.limit + _SPARE_THREADS
        pool = futures.ThreadPoolExecutor(threads, thread_name_prefix="health-stream")
        for version in _VERSIONS:
            watch = _WatchHandler(self, version.messages, pool)
            functools.partial(version.add, SimpleNamespace(NodeWatchResources=watch))(server)

    def notify(self) -> None:
        """Have every stream tell the devices again, now."""
        with self._lock:
            for wake in self._wakes:
                wake.set()

    def close(self) -> None:
        """End every stream; later ones end at once."""
        self._closed = True
        self.notify()

    def stream_count(self) -> int:
        """How many streams there are."""
        with self._lock:
            return len(self._wakes)

    def watch(self, context: grpc.ServicerContext) -> Iterator[Sequence[DeviceHealth]]:
        """All devices, again and again, until the watcher leaves or we close."""
        wake = threading.Event()
        if not self._open_stream(wake):
            text = f"there are {self._settings.limit} streams already"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        try:
            context.add_callback(wake.set)
            while True:
                wake.clear()  # before what it stands for is looked at
                if self._closed or not context.is_active():
                    return
                yield self._devices()
                self._clock.wait(wake, self._settings.period_s)
        finally:
            self._close_stream(wake)

    def render(self, messages: Any, devices: Sequence[DeviceHealth]) -> Any:  # noqa: ANN401 - of a version
        """The message of one version."""
        now = int(self._clock.now().timestamp())
        return messages.NodeWatchResourcesResponse(
            devices=[
                messages.DeviceHealth(
                    device=messages.DeviceIdentifier(pool_name=one.pool, device_name=one.device),
                    health=_health_status(messages, healthy=one.healthy),
                    last_updated_time=now,
                    health_check_timeout_seconds=self._settings.timeout_s,
                    message=one.message[:_MESSAGE_LIMIT],
                )
                for one in devices
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
