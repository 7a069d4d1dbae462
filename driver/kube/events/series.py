"""Which Event to write for what happened: a new one, a raised count, or none. Pure.

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
        """As core/v1 ObjectReference."""
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
    """What somebody reported, and when: `at` on the wall, `at_s` on the monotonic clock."""

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
    """Patch the series of an Event that is there; `create` is for when it is gone."""

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
    """Remembers what was written lately; one per recorder, used by one thread.

    Both are in the order of last use, the oldest first. A bucket that nobody used for as long as it
    takes to fill is as good as none.
    """

    def __init__(self, component: str, instance: str) -> None:
        self._component = component
        self._instance = instance
        self._series: collections.OrderedDict[_Same, _Series] = collections.OrderedDict()
        self._buckets: collections.OrderedDict[ObjectRef, _Bucket] = collections.OrderedDict()
        self._serial = 0

    @property
    def entry_count(self) -> int:
        """How many events and objects it keeps in mind."""
        return len(self._series) + len(self._buckets)

    def next_write(self, happening: Occurrence) -> Create | Increment | None:
        """What to write; None when the object has had too many events."""
        if not self._take_token(happening):
            return None
        create = self._create(happening)
        same = (happening.regarding, happening.reason, happening.message)
        known = self._series.pop(same, None)
        if known is None or happening.monotonic_s - known.last_s > WINDOW_S:
            name = create.body["metadata"]["name"]
            self._series[same] = _Series(create.namespace, name, 1, happening.monotonic_s)
            _trim(self._series, lambda one: happening.monotonic_s - one.last_s > WINDOW_S)
            return create
        known.count += 1
        known.last_s = happening.monotonic_s
        self._series[same] = known
        series = {"count": known.count, "lastObservedTime": clock.rfc3339_micro(happening.time)}
        return Increment(known.namespace, known.name, {"series": series}, create)

    def recreated(self, happening: Occurrence, create: Create) -> None:
        """The Event of a series was gone, and `create` was written in its place."""
        same = (happening.regarding, happening.reason, happening.message)
        name = create.body["metadata"]["name"]
        self._series[same] = _Series(create.namespace, name, 1, happening.monotonic_s)

    def _create(self, happening: Occurrence) -> Create:
        regarding = happening.regarding
        namespace = regarding.namespace or "default"
        self._serial += 1
        stamp = int(happening.time.timestamp() * 1_000_000)
        name = f"{regarding.name[:_NAME_LIMIT]}.{stamp:x}.{self._serial:x}"
        body: gvr.Object = {
            "apiVersion": gvr.EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": clock.rfc3339_micro(happening.time),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": happening.reason,
            "reason": happening.reason,
            "type": "Warning" if happening.warning else "Normal",
            "regarding": regarding.to_reference(),
            "note": _truncate(happening.message),
        }
        if happening.related is not None:
            body["related"] = happening.related.to_reference()
        return Create(namespace, body)

    def _take_token(self, happening: Occurrence) -> bool:
        """A token bucket for each object: `BURST` at once, then one each `REFILL_S`."""
        now = happening.monotonic_s
        bucket = self._buckets.pop(happening.regarding, None) or _Bucket(BURST, now)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.filled_s) / REFILL_S)
        bucket.filled_s = now
        self._buckets[happening.regarding] = bucket
        _trim(self._buckets, lambda one: now - one.filled_s > BURST * REFILL_S)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _truncate(message: str) -> str:
    """At most 1024 bytes, which is what the server counts, and no half character."""
    raw = message.encode()
    if len(raw) <= NOTE_LIMIT:
        return message
    return raw[: NOTE_LIMIT - 3].decode(errors="ignore") + "..."


def _trim(remembered: collections.OrderedDict[K, V], spent: Callable[[V], bool]) -> None:
    """Forget from the oldest on what says no more than nothing would, and what is too many."""
    while len(remembered) > _MAX_ENTRIES or spent(next(iter(remembered.values()))):
        remembered.popitem(last=False)
