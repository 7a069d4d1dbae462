"""Events for users, written in the background: reporting never blocks and never fails."""

import collections
import threading
from typing import Protocol, assert_never

import structlog

from driver import clock, errors
from driver.kube import backoff, client, gvr
from driver.kube.events import series

log = structlog.get_logger(__name__)

ObjectRef = series.ObjectRef

QUEUE = 1000
FLUSH_S = 2.0
PACE = backoff.Pace(base_s=1.0, max_s=30.0)
_TRIES = 3
_IDLE_S = 60.0


class Recorder(Protocol):
    """Records events on objects, as EventRecorder does; never blocks."""

    def event(
        self,
        regarding: ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: ObjectRef | None = None,
    ) -> None:
        """Record an event on an object."""
        ...


class EventRecorder:
    """`component` is the reporter (`ration-controller`), `instance` its pod's name.

    `dropped` counts events that were never written: queue full, object too noisy, server refused.
    """

    def __init__(
        self,
        kube: client.KubeClient,
        component: str,
        instance: str,
        clock: clock.Clock,
        jitter: backoff.Jitter = backoff.no_jitter,
    ) -> None:
        self._client = kube
        self._flush_client = kube.with_timeout(FLUSH_S / 2)
        self._clock = clock
        self._jitter = jitter
        self._series = series.EventSeries(component, instance)
        self._lock = threading.Lock()
        self._pending: collections.deque[series.Occurrence] = collections.deque()
        self._wake = threading.Event()
        self.dropped = 0

    def event(
        self,
        regarding: ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: ObjectRef | None = None,
    ) -> None:
        """Report an event of `regarding`, in words for its owner; `reason` is CamelCase."""
        time, monotonic_s = self._clock.now(), self._clock.monotonic()
        occurrence = series.Occurrence(
            regarding, reason, message, warning, related, time, monotonic_s
        )
        with self._lock:
            if len(self._pending) >= QUEUE:
                self.dropped += 1
                return
            self._pending.append(occurrence)
        self._wake.set()

    def interrupt(self) -> None:
        """Wake `run` after its stop was set."""
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        """Write until `stop` is set, then flush for at most two seconds."""
        while not stop.is_set():
            occurrence = self._pop()
            if occurrence is None:
                self._clock.wait(self._wake, _IDLE_S)
                self._wake.clear()
            else:
                self._write(occurrence, stop)
        self._flush()

    def _flush(self) -> None:
        deadline = self._clock.monotonic() + FLUSH_S
        while (occurrence := self._pop()) is not None:
            try:
                if self._clock.monotonic() < deadline:
                    self._send(self._flush_client, occurrence, self._series.next_write(occurrence))
                else:
                    self.dropped += 1
            except errors.ApiError:
                self.dropped += 1
        log.debug("events flushed", dropped=self.dropped)

    def _pop(self) -> series.Occurrence | None:
        with self._lock:
            return self._pending.popleft() if self._pending else None

    def _write(self, occurrence: series.Occurrence, stop: threading.Event) -> None:
        """Try a few times, then drop the event."""
        write = self._series.next_write(occurrence)
        pause = backoff.Backoff(PACE, self._jitter)
        for _ in range(_TRIES):
            try:
                self._send(self._client, occurrence, write)
            except (errors.Unreachable, errors.TooManyRequests, errors.ServerError) as e:
                self._clock.wait(stop, pause.after_failure(e.retry_after_s))
            except errors.ApiError as e:
                log.info("event refused", reason=occurrence.reason, error=str(e))
                break
            else:
                return
        self.dropped += 1

    def _send(
        self,
        kube: client.KubeClient,
        occurrence: series.Occurrence,
        write: series.Create | series.Increment | None,
    ) -> None:
        match write:
            case None:
                self.dropped += 1
            case series.Create(namespace, body):
                kube.create(gvr.EVENTS, body, namespace)
            case series.Increment(namespace, name, body, create):
                try:
                    kube.patch(gvr.EVENTS, name, body, namespace=namespace)
                except errors.NotFound:  # events live for an hour
                    kube.create(gvr.EVENTS, create.body, namespace)
                    self._series.recreated(occurrence, create)
            case _:
                assert_never(write)
