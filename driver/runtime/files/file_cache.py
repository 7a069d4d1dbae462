"""Values parsed from files, until a file is another one. For files that are replaced whole."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from driver import errors

V = TypeVar("V")
_Version = tuple[int, int, int]
_SETTLED_NS: Final = 50_000_000
"""A file's times advance in ticks of some milliseconds: a younger file may change unseen."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    version: _Version
    value: V


class FileCache(Generic[V]):
    """Values of the files of one folder, by file name.

    A file is the same while its inode, size and time of change are, and it was old enough when it
    was read: files that another process replaces are read again. `parse` takes a file's name and
    bytes, and returns its value; None for a file without one. Thread safe.

    Methods raise NodeFault if a file cannot be read, and what `parse` raises.
    """

    def __init__(
        self,
        folder: str,
        parse: Callable[[str, bytes], V | None],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._parse = parse
        self._now_ns = now_ns
        self._entries: dict[str, _Entry[V]] = {}

    def read(self, name: str) -> V | None:
        """Return a file's value; None if it is missing or has none."""
        path = f"{self._folder}/{name}"
        try:
            version = _version(os.stat(path))  # noqa: PTH116 - a Path takes as long again
        except FileNotFoundError:
            self._entries.pop(name, None)
            return None
        except OSError as e:
            raise errors.NodeFault("read", path, str(e)) from e
        return self._read_version(name, version)

    def read_all(self, matches: Callable[[str], bool]) -> dict[str, V]:
        """Return the values of the files whose names match, by name; {} without the folder."""
        versions = self._list_versions(matches)
        for name in self._entries.keys() - versions.keys():
            self._entries.pop(name, None)
        values = ((name, self._read_version(name, versions[name])) for name in sorted(versions))
        return {name: value for name, value in values if value is not None}

    def _list_versions(self, matches: Callable[[str], bool]) -> dict[str, _Version]:
        try:
            with os.scandir(self._folder) as entries:
                return {
                    entry.name: version
                    for entry in entries
                    if (entry.name in self._entries or matches(entry.name))
                    and (version := _entry_version(entry)) is not None
                }
        except FileNotFoundError:
            return {}
        except OSError as e:
            raise errors.NodeFault("list", self._folder, str(e)) from e

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


def _entry_version(entry: os.DirEntry[str]) -> _Version | None:
    """Return the version of a folder's entry; None if it is gone by now."""
    try:
        return _version(entry.stat())
    except FileNotFoundError:
        return None
