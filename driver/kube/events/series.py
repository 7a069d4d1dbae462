"""Decides the Event to write: a new one, an incremented count, or none. Pure.

Events are events.k8s.io/v1; the server's limits are in its validation (note 1024 bytes,
`series.count` at least 2, only `series` may change later).
"""

import collections
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from driver import clock
from driver.kube import gvr

NOTE_LIMIT = 1024
WINDOW_S = 600.0
BURST = 20
REFILL_S = 30.0
_MAX_ENTRIES = 4096
_NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The object an event is about."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def to_reference(self) -> gvr.Object:
        """Return a core/v1 ObjectReference."""
        written = {
            "kind": self.kind,
            "apiVersion": self.api_version,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {k: v for k, v in written.items() if v}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A reported event: `time` on the wall clock, `monotonic_s` on the monotonic clock."""

    regarding: ObjectRef
    reason: str
    message: str
    warning: bool
    related: ObjectRef | None
    time: dt.datetime
    monotonic_s: float


@dataclass(frozen=True, slots=True)
class Create:
    """Write this new Event."""

    namespace: str
    body: gvr.Object


@dataclass(frozen=True, slots=True)
class Increment:
    """Patch the series of an existing Event; `create` is for when it is gone."""

    namespace: str
    name: str
    body: gvr.Object
    create: Create


K = TypeVar("K")
V = TypeVar("V")
_Same = tuple[ObjectRef, str, str]


@dataclass(slots=True)
class _Series:
    namespace: str
    name: str
    count: int
    last_s: float


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_s: float


class EventSeries:
    """Recently written events; one per recorder, used by one thread.

    Both maps are in order of last use, the oldest first. A bucket unused for its refill time equals
    a new one.
    """

    def __init__(self, component: str, instance: str) -> None:
        self._component = component
        self._instance = instance
        self._series: collections.OrderedDict[_Same, _Series] = collections.OrderedDict()
        self._buckets: collections.OrderedDict[ObjectRef, _Bucket] = collections.OrderedDict()
        self._serial = 0

    @property
    def entry_count(self) -> int:
        """Return the number of events and objects remembered."""
        return len(self._series) + len(self._buckets)

    def next_write(self, occurrence: Occurrence) -> Create | Increment | None:
        """Return the write; None if the object has had too many events."""
        if not self._take_token(occurrence):
            return None
        create = self._create(occurrence)
        key = (occurrence.regarding, occurrence.reason, occurrence.message)
        current = self._series.pop(key, None)
        if current is None or occurrence.monotonic_s - current.last_s > WINDOW_S:
            name = create.body["metadata"]["name"]
            self._series[key] = _Series(create.namespace, name, 1, occurrence.monotonic_s)
            _trim(self._series, lambda entry: occurrence.monotonic_s - entry.last_s > WINDOW_S)
            return create
        current.count += 1
        current.last_s = occurrence.monotonic_s
        self._series[key] = current
        series = {"count": current.count, "lastObservedTime": clock.rfc3339_micro(occurrence.time)}
        return Increment(current.namespace, current.name, {"series": series}, create)

    def recreated(self, occurrence: Occurrence, create: Create) -> None:
        """Record that the Event of a series was gone, and `create` was written instead."""
        key = (occurrence.regarding, occurrence.reason, occurrence.message)
        name = create.body["metadata"]["name"]
        self._series[key] = _Series(create.namespace, name, 1, occurrence.monotonic_s)

    def _create(self, occurrence: Occurrence) -> Create:
        regarding = occurrence.regarding
        namespace = regarding.namespace or "default"
        self._serial += 1
        stamp = int(occurrence.time.timestamp() * 1_000_000)
        name = f"{regarding.name[:_NAME_LIMIT]}.{stamp:x}.{self._serial:x}"
        body: gvr.Object = {
            "apiVersion": gvr.EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": clock.rfc3339_micro(occurrence.time),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": occurrence.reason,
            "reason": occurrence.reason,
            "type": "Warning" if occurrence.warning else "Normal",
            "regarding": regarding.to_reference(),
            "note": _truncate(occurrence.message),
        }
        if occurrence.related is not None:
            body["related"] = occurrence.related.to_reference()
        return Create(namespace, body)

    def _take_token(self, occurrence: Occurrence) -> bool:
        """Take from the object's token bucket: `BURST` at once, then one per `REFILL_S`."""
        now = occurrence.monotonic_s
        bucket = self._buckets.pop(occurrence.regarding, None) or _Bucket(BURST, now)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.filled_s) / REFILL_S)
        bucket.filled_s = now
        self._buckets[occurrence.regarding] = bucket
        _trim(self._buckets, lambda entry: now - entry.filled_s > BURST * REFILL_S)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _truncate(message: str) -> str:
    """Truncate to 1024 bytes, the server's limit, without cutting a character in two."""
    raw = message.encode()
    if len(raw) <= NOTE_LIMIT:
        return message
    return raw[: NOTE_LIMIT - 3].decode(errors="ignore") + "..."


def _trim(entries: collections.OrderedDict[K, V], is_spent: Callable[[V], bool]) -> None:
    """Forget the oldest entries that are spent, and those above the limit."""
    while len(entries) > _MAX_ENTRIES or is_spent(next(iter(entries.values()))):
        entries.popitem(last=False)
