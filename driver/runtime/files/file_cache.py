"""Values parsed from files, until a file is another one. For files that are replaced whole."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from driver import errors
from driver.runtime.files import folder_watch

V = TypeVar("V")
_Version = tuple[int, int, int]
_SETTLED_NS: Final = 50_000_000
"""A file's times advance in ticks of some milliseconds: a younger file may change unseen."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    version: _Version
    value: V


class FileCache(Generic[V]):
    """Values of the files of one folder whose names match, by file name.

    A file is the same while its inode, size and time of change are, and it was old enough when it
    was read: files that another process replaces are read again. While the kernel reports the
    folder's changes, a file without one is not looked at. `parse` takes a file's name and bytes,
    and returns its value; None for a file without one. Thread safe.

    Methods raise NodeFault if a file cannot be read, and what `parse` raises.
    """

    def __init__(
        self,
        folder: str,
        matches: Callable[[str], bool],
        parse: Callable[[str, bytes], V | None],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._matches = matches
        self._parse = parse
        self._now_ns = now_ns
        self._entries: dict[str, _Entry[V]] = {}
        self._reading = threading.Lock()
        self._watch = folder_watch.FolderWatch(folder)
        self._names: set[str] = set()
        self._unread: set[str] = set()
        self._values: dict[str, V] = {}
        self._sorted: tuple[V, ...] = ()

    def read(self, name: str) -> V | None:
        """Return a file's value; None if it is missing or has none."""
        version = self._version(name)
        if version is None:
            self._entries.pop(name, None)
            return None
        return self._read_version(name, version)

    def read_all(self) -> tuple[V, ...]:
        """Return the values of the files, by name; () without the folder."""
        with self._reading:
            self._follow_folder()
            return self._sorted

    def list_names(self) -> tuple[str, ...]:
        """Return the names of all the folder's files, in no order; () without the folder."""
        with self._reading:
            self._follow_names()
            return tuple(self._names)

    def add(self, name: str, value: V) -> None:
        """Add the value of a file that was just written, and that nobody else may write now."""
        version = self._version(name)
        if version is not None:
            self._entries[name] = _Entry(version, value)

    def _follow_folder(self) -> None:
        """Read the files that changed; one that cannot be read is tried again the next time."""
        self._follow_names()
        if not self._unread:
            return
        try:
            for name in sorted(self._unread):
                value = self.read(name)
                self._values.pop(name, None)
                if value is not None:
                    self._values[name] = value
                self._unread.discard(name)
        finally:
            self._sorted = tuple(self._values[name] for name in sorted(self._values))

    def _follow_names(self) -> None:
        """Follow the names in the folder, and those of files to read."""
        reported = self._watch.changed_names()
        if reported is None:
            names = self._list()
            changed = self._names | names
            self._names = names
        else:
            changed = set(reported)
            for name in changed:
                is_there = self._version(name) is not None
                (self._names.add if is_there else self._names.discard)(name)
        self._unread |= set(filter(self._matches, changed))

    def _list(self) -> set[str]:
        try:
            return set(os.listdir(self._folder))  # noqa: PTH208 - names are all that is needed
        except FileNotFoundError:
            return set()
        except OSError as e:
            raise errors.NodeFault("list", self._folder, str(e)) from e

    def _version(self, name: str) -> _Version | None:
        path = f"{self._folder}/{name}"
        try:
            return _version(os.stat(path))  # noqa: PTH116 - a Path takes as long again
        except FileNotFoundError:
            return None
        except OSError as e:
            raise errors.NodeFault("read", path, str(e)) from e

    def _read_version(self, name: str, version: _Version) -> V | None:
        """Return the value of a file that has this version, or a later one."""
        entry = self._entries.get(name)
        if entry is not None and entry.version == version:
            return entry.value
        self._entries.pop(name, None)
        path = f"{self._folder}/{name}"
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - as above
                started = self._now_ns()
                status = os.fstat(file.fileno())
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as e:
            raise errors.NodeFault("read", path, str(e)) from e
        value = self._parse(name, data)
        if value is not None and started - status.st_mtime_ns >= _SETTLED_NS:
            self._entries[name] = _Entry(_version(status), value)
        return value


def _version(status: os.stat_result) -> _Version:
    return status.st_ino, status.st_size, status.st_mtime_ns
