"""Keeps a store equal to the API server's objects: list, then watch, repeatedly (D15).

The stream is never trusted (kubernetes-client/python #1148, kubespawner #209): silence is detected,
a gap is closed by a new list, failures back off, and the age of the last message is known.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from driver import clock, errors
from driver.kube import backoff, gvr, store
from driver.kube import client as kube_client
from driver.kube.http import json_decode, watch_stream

T = TypeVar("T")
log = structlog.get_logger(__name__)

_SILENT_WATCHES = 2


class Stream(Protocol):
    """Events of a watch, as `watch_stream.Watch`."""

    def __iter__(self) -> "Stream": ...
    def __next__(self) -> watch_stream.WatchEvent: ...
    def interrupt(self) -> None:
        """Break the stream off, from another thread."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Source(Protocol):
    """A kind that can be listed and watched."""

    @property
    def name(self) -> str:
        """Return the name for logs and metrics: `resourceclaims`."""
        ...

    def list(self) -> kube_client.Walk:
        """List all objects."""
        ...

    def watch(self, version: str, timeout_s: int, read_timeout_s: float) -> Stream:
        """Watch changes after `version`."""
        ...


@dataclass(frozen=True, slots=True)
class ListWatch:
    """One kind of object, all of it or a selection, decoded by `bulk` where it is given."""

    client: kube_client.KubeClient
    resource: gvr.Resource
    namespace: str | None = None
    field_selector: str = ""
    label_selector: str = ""
    bulk: json_decode.Bulk | None = None

    @property
    def name(self) -> str:
        """Return the resource's plural."""
        return self.resource.plural

    def list(self) -> kube_client.Walk:
        """List in pages of 500."""
        return self.client.walk(
            self.resource,
            namespace=self.namespace,
            field_selector=self.field_selector,
            label_selector=self.label_selector,
            bulk=self.bulk,
        )

    def watch(self, version: str, timeout_s: int, read_timeout_s: float) -> Stream:
        """Watch with bookmarks."""
        return self.client.watch(
            self.resource,
            namespace=self.namespace,
            field_selector=self.field_selector,
            label_selector=self.label_selector,
            version=version,
            timeout_s=timeout_s,
            read_timeout_s=read_timeout_s,
            bulk=self.bulk,
        )


def _ignore_invalid(_key: object, _error: errors.BadInput) -> None:
    return


PACE = backoff.Pace(base_s=1.0, max_s=30.0)


@dataclass(frozen=True, slots=True)
class Options:
    """Seconds and hooks.

    `watch_s`: the server ends each watch after this and up to half as much again. `silence_s`: a
    stream without a message is dead; bookmarks come about each 60 s. `settled_s`: a watch that
    lived this long is no failure, however it ended, nor is one that was requested to end earlier
    and did. A watch with an event does not increase the back-off. `relist_s`: after this and up to
    half as much again everything is listed anew, because nothing else detects an event that a watch
    lost. `on_invalid` is called for every object that `parse` refuses with BadInput.
    """

    watch_s: float = 240.0
    silence_s: float = 70.0
    settled_s: float = 5.0
    relist_s: float = 1800.0
    pace: backoff.Pace = PACE
    jitter: backoff.Jitter = backoff.no_jitter
    on_invalid: store.OnInvalid = _ignore_invalid


class Reflector(Generic[T]):
    """One thread for one kind: `run` is its target."""

    def __init__(
        self,
        source: Source,
        target: store.Store[T],
        parse: Callable[[gvr.Object], T],
        clock: clock.Clock,
        options: Options | None = None,
    ) -> None:
        self._source = source
        self._store = target
        self._clock = clock
        self._options = options or Options()
        self._backoff = backoff.Backoff(self._options.pace, self._options.jitter)
        self._version: str | None = None
        self._silent_watches = 0
        self._relist_at = math.inf
        self._last_heard = -math.inf
        self._progressed = False
        self._stream: Stream | None = None
        self._stopping = False
        self.synced = threading.Event()
        target.set_parser(parse, self._options.on_invalid)

    def age_s(self) -> float:
        """Return the seconds since the last message from the server; infinite before the first."""
        return self._clock.monotonic() - self._last_heard

    def interrupt(self) -> None:
        """Make `run` return now, after its stop was set, instead of at the next frame."""
        self._stopping = True
        stream = self._stream
        if stream is not None:
            stream.interrupt()

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set. Only an internal fault ends it otherwise."""
        while not stop.is_set():
            wait_s = self._round(stop)
            self._clock.wait(stop, wait_s)

    def _round(self, stop: threading.Event) -> float:
        """List if needed, watch once; return the seconds before the next round."""
        started = self._clock.monotonic()
        timeout_s, retry_after_s = math.inf, None
        self._progressed = False
        try:
            if self._version is None:
                self._list()
            elif self._clock.monotonic() >= self._relist_at:
                self._relist()
            started = self._clock.monotonic()
            timeout_s = self._watch_s()
            self._watch(stop, timeout_s)
        except errors.ApiError as e:
            if not stop.is_set():
                self._handle_error(e)
            retry_after_s = e.retry_after_s
        lived_s = self._clock.monotonic() - started
        settled = lived_s >= min(self._options.settled_s, timeout_s) and self._heard(started)
        if settled or self._progressed:
            self._backoff.reset()
        if settled and retry_after_s is None:
            return 0.0
        return self._backoff.after_failure(retry_after_s)

    def _heard(self, since: float) -> bool:
        return self._last_heard > since

    def _handle_error(self, error: errors.ApiError) -> None:
        """Decide where to continue: from the last version, or from a new list.

        A cut connection, 429 and 5xx say nothing about our version, so the watch continues from the
        last version seen. Any other error may mean that the version is gone or wrong.
        """
        resumable = isinstance(
            error, errors.Unreachable | errors.TooManyRequests | errors.ServerError
        )
        if not resumable or self._silent_watches >= _SILENT_WATCHES:
            self._version = None
        forbidden = isinstance(error, errors.Forbidden)
        log_method = log.warning if forbidden else log.info
        log_method("watch broken", kind=self._source.name, error=str(error), resume=self._version)

    def _relist(self) -> None:
        """Compare with a whole listing; if that fails, the watch continues.

        A watch can lose an event silently: the object of a lost DELETED would stay for ever.
        """
        try:
            self._list()
        except errors.ApiError as e:
            self._relist_at = self._clock.monotonic() + self._options.pace.max_s
            log.info("not listed anew", kind=self._source.name, error=str(e))

    def _list(self) -> None:
        listing = self._source.list()
        self._last_heard = self._clock.monotonic()
        options = self._options
        self._relist_at = self._last_heard + options.relist_s * (1 + options.jitter() / 2)
        missed = self._store.replace(listing.items, int(listing.version))
        if missed:
            log.warning("watch had lost events", kind=self._source.name, objects=missed)
        self._version = listing.version
        self._silent_watches = 0
        self.synced.set()
        log.debug("listed", kind=self._source.name, count=len(self._store))

    def _watch_s(self) -> int:
        """Return the next watch's timeout: it ends before the next listing is due."""
        options = self._options
        timeout_s = options.watch_s * (1 + options.jitter() / 2)
        return max(1, int(min(timeout_s, self._relist_at - self._clock.monotonic())))

    def _watch(self, stop: threading.Event, timeout_s: int) -> None:
        version = self._version or ""
        stream = self._source.watch(version, timeout_s, self._options.silence_s)
        self._silent_watches += 1
        self._stream = stream
        try:
            if self._stopping:
                return
            for event in stream:
                self._apply_event(event)
                if stop.is_set():
                    return
            # The server ended it, and would have sent any event before.
            self._last_heard = self._clock.monotonic()
        finally:
            self._stream = None
            stream.close()

    def _apply_event(self, event: watch_stream.WatchEvent) -> None:
        self._last_heard = self._clock.monotonic()
        self._silent_watches = 0
        self._progressed = True
        version = gvr.object_version(event.object)
        match event.type:
            case watch_stream.EventType.BOOKMARK:
                self._store.bookmark(version)
            case watch_stream.EventType.DELETED:
                self._store.apply(event.object, deleted=True)
            case watch_stream.EventType.ADDED | watch_stream.EventType.MODIFIED:
                self._store.apply(event.object)
        self._version = str(max(version, int(self._version or 0)))
