"""The API server's objects as last reported, parsed once, for any thread to read.

The watch and the responses to our own writes both feed a store; of two versions of an object the
newer resource version wins, so a writer sees its own write at once and an old event does not undo
it.
"""

import collections
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NoReturn, TypeVar

from driver import errors, ids
from driver.kube import gvr

T = TypeVar("T")

Handler = Callable[[ids.Key, T | None, T | None], None]
"""Called with key, old and new; old is None for a new object, new is None for a deleted one."""
OnInvalid = Callable[[ids.Key, errors.BadInput], None]
"""Called for an object that cannot be parsed; it is not in the store."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    version: int
    value: T


def _no_parser(_: gvr.Object) -> NoReturn:
    raise LookupError("this store has no parser: give it to a Reflector or call set_parser first")


def _ignore_invalid(_key: ids.Key, _error: errors.BadInput) -> None:
    return


class Store(Generic[T]):
    """Thread safe. Handlers run outside the lock, one at a time, in the order of the changes."""

    def __init__(self) -> None:
        self._parse: Callable[[gvr.Object], T] = _no_parser
        self._on_invalid: OnInvalid = _ignore_invalid
        self._lock = threading.Lock()
        self._delivering = threading.Lock()
        self._entries: dict[ids.Key, _Entry[T]] = {}
        self._version = 0
        self._snapshot: Mapping[ids.Key, T] | None = None
        self._handlers: tuple[Handler[T], ...] = ()
        self._changes: collections.deque[tuple[ids.Key, T | None, T | None]] = collections.deque()

    def set_parser(self, parse: Callable[[gvr.Object], T], on_bad: OnInvalid) -> None:
        """Set the parser of raw objects; a Reflector does this. `parse` raises BadInput."""
        self._parse, self._on_invalid = parse, on_bad

    def snapshot(self) -> Mapping[ids.Key, T]:
        """Return all current values; immutable, and the same object until a change."""
        with self._lock:
            if self._snapshot is None:
                values = {key: entry.value for key, entry in self._entries.items()}
                self._snapshot = MappingProxyType(values)
            return self._snapshot

    def get(self, key: ids.Key) -> T | None:
        """Return the current value, if any."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.value

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def subscribe(self, handler: Handler[T]) -> None:
        """Call `handler` for every later change; subscribe before the reflector runs."""
        with self._lock:
            self._handlers = (*self._handlers, handler)

    def replace(self, items: Iterable[gvr.Object], version: int) -> int:
        """Apply a whole listing: missing objects were deleted, unless newer than the listing.

        Returns the number of objects the watch should have reported and did not; an unreported
        deletion cannot be told from a recent one.

        A listing older than what was seen means that the server was restored from a backup: then it
        counts, whatever the versions.
        """
        parsed = {gvr.object_key(obj): self._entry(obj) for obj in items}
        with self._lock:
            restored = version < self._version
            missed = 0 if restored else self._count_missed(parsed.items())
            self._version = version
            for key in [k for k, e in self._entries.items() if k not in parsed]:
                if restored or self._entries[key].version <= version:
                    self._set_entry(key, None)
            for key, entry in parsed.items():
                if restored or not self._has_newer(key, entry):
                    self._set_entry(key, entry)
        self._deliver()
        return missed

    def apply(self, obj: gvr.Object, *, deleted: bool = False) -> None:
        """Apply one event of the watch; a repeated event is ignored."""
        key, version = gvr.object_key(obj), gvr.object_version(obj)
        with self._lock:
            is_known = self._is_known(key, version)
        # Our own writes come back here: reading them once more would be for nothing.
        entry = None if deleted or is_known else self._entry(obj)
        with self._lock:
            if not self._is_known(key, version):
                self._set_entry(key, entry)
            self._version = max(self._version, version)
        self._deliver()

    def observe(self, obj: gvr.Object) -> None:
        """Apply the response to a write of ours.

        An unknown object that is not newer than the watch has been deleted meanwhile.
        """
        key, entry = gvr.object_key(obj), self._entry(obj)
        version = gvr.object_version(obj)
        with self._lock:
            current = self._entries.get(key)
            if version > (self._version if current is None else current.version):
                self._set_entry(key, entry)
        self._deliver()

    def bookmark(self, version: int) -> None:
        """Record that the watch has reported everything up to `version`."""
        with self._lock:
            self._version = max(self._version, version)

    def _entry(self, obj: gvr.Object) -> _Entry[T] | None:
        """Return the parsed object, or None (and a report) if it cannot be parsed."""
        try:
            return _Entry(gvr.object_version(obj), self._parse(obj))
        except errors.BadInput as e:
            self._on_invalid(gvr.object_key(obj), e)
            return None

    def _count_missed(self, listed: Iterable[tuple[ids.Key, _Entry[T] | None]]) -> int:
        """Return the number of listed objects older than the watch's version, and not known so."""
        return sum(
            entry is not None and entry.version <= self._version and not self._has_newer(key, entry)
            for key, entry in listed
        )

    def _is_known(self, key: ids.Key, version: int) -> bool:
        """Return whether an event of that version is not new."""
        current = self._entries.get(key)
        return version < self._version or (current is not None and current.version >= version)

    def _has_newer(self, key: ids.Key, entry: _Entry[T] | None) -> bool:
        current = self._entries.get(key)
        return current is not None and entry is not None and current.version >= entry.version

    def _set_entry(self, key: ids.Key, entry: _Entry[T] | None) -> None:
        current = self._entries.get(key)
        if entry is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = entry
        if current is None and entry is None:
            return
        self._snapshot = None
        old = None if current is None else current.value
        new = None if entry is None else entry.value
        self._changes.append((key, old, new))

    def _deliver(self) -> None:
        """Deliver changes in order; if another thread is delivering, it continues with ours."""
        while self._changes and self._delivering.acquire(blocking=False):
            try:
                self._call_handlers()
            finally:
                self._delivering.release()

    def _call_handlers(self) -> None:
        while self._changes:
            change = self._changes.popleft()
            for handler in self._handlers:
                handler(*change)
