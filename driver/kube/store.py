"""What the API server last said, parsed once, for any thread to read.

The watch and the answers to our own writes both feed a store; of two words on one object the
newer resource version wins, so a writer sees its own write at once and an old event does not
undo it.
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
        self._seen = 0
        self._snapshot: Mapping[ids.Key, T] | None = None
        self._handlers: tuple[Handler[T], ...] = ()
        self._changes: collections.deque[tuple[ids.Key, T | None, T | None]] = collections.deque()

    def set_parser(self, parse: Callable[[gvr.Object], T], on_bad: OnInvalid) -> None:
        """Set how raw objects are read; a Reflector does this. `parse` raises BadInput."""
        self._parse, self._on_invalid = parse, on_bad

    def snapshot(self) -> Mapping[ids.Key, T]:
        """All values as of now; never changes, and is the same object until something does."""
        with self._lock:
            if self._snapshot is None:
                values = {key: entry.value for key, entry in self._entries.items()}
                self._snapshot = MappingProxyType(values)
            return self._snapshot

    def get(self, key: ids.Key) -> T | None:
        """The value now, if there is one."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.value

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def subscribe(self, handler: Handler[T]) -> None:
        """Hear of every later change; subscribe before the reflector runs."""
        with self._lock:
            self._handlers = (*self._handlers, handler)

    def replace(self, items: Iterable[gvr.Object], version: int) -> int:
        """Take a whole listing: what it lacks was deleted, unless it is newer than the listing.

        How many of its objects the watch should have told of and did not; a deletion that was
        not told cannot be told from one that came since.

        A listing older than what was already seen means that the server's history was restored
        from a backup: then its word counts, whatever the versions say.
        """
        parsed = {gvr.object_key(obj): self._entry(obj) for obj in items}
        with self._lock:
            restored = version < self._seen
            missed = 0 if restored else self._count_missed(parsed.items())
            self._seen = version
            for key in [k for k, e in self._entries.items() if k not in parsed]:
                if restored or self._entries[key].version <= version:
                    self._set_entry(key, None)
            for key, entry in parsed.items():
                if restored or not self._has_newer(key, entry):
                    self._set_entry(key, entry)
        self._deliver()
        return missed

    def apply(self, obj: gvr.Object, *, deleted: bool = False) -> None:
        """Take one event of the watch; one that was told before, and is told again, is ignored."""
        key, version = gvr.object_key(obj), gvr.object_version(obj)
        with self._lock:
            known = self._is_known(key, version)
        # Our own writes come back here: reading them once more would be for nothing.
        entry = None if deleted or known else self._entry(obj)
        with self._lock:
            if not self._is_known(key, version):
                self._set_entry(key, entry)
            self._seen = max(self._seen, version)
        self._deliver()

    def observe(self, obj: gvr.Object) -> None:
        """Take the answer to a write of ours.

        An object that is not here and not newer than the watch has been deleted meanwhile.
        """
        key, entry = gvr.object_key(obj), self._entry(obj)
        version = gvr.object_version(obj)
        with self._lock:
            known = self._entries.get(key)
            if version > (self._seen if known is None else known.version):
                self._set_entry(key, entry)
        self._deliver()

    def bookmark(self, version: int) -> None:
        """The watch has told of everything up to `version`."""
        with self._lock:
            self._seen = max(self._seen, version)

    def _entry(self, obj: gvr.Object) -> _Entry[T] | None:
        """The parsed object, or None (and a report) for one that cannot be read."""
        try:
            return _Entry(gvr.object_version(obj), self._parse(obj))
        except errors.BadInput as e:
            self._on_invalid(gvr.object_key(obj), e)
            return None

    def _count_missed(self, listed: Iterable[tuple[ids.Key, _Entry[T] | None]]) -> int:
        """How many of the listing are older than what the watch has told, and not known so."""
        return sum(
            entry is not None and entry.version <= self._seen and not self._has_newer(key, entry)
            for key, entry in listed
        )

    def _is_known(self, key: ids.Key, version: int) -> bool:
        """Whether an event of that version tells nothing new."""
        known = self._entries.get(key)
        return version < self._seen or (known is not None and known.version >= version)

    def _has_newer(self, key: ids.Key, entry: _Entry[T] | None) -> bool:
        known = self._entries.get(key)
        return known is not None and entry is not None and known.version >= entry.version

    def _set_entry(self, key: ids.Key, entry: _Entry[T] | None) -> None:
        known = self._entries.get(key)
        if entry is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = entry
        if known is None and entry is None:
            return
        self._snapshot = None
        old = None if known is None else known.value
        new = None if entry is None else entry.value
        self._changes.append((key, old, new))

    def _deliver(self) -> None:
        """Hand changes out in order; whoever finds another thread at it leaves them to it."""
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
