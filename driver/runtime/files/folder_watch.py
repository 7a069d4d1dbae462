"""Names of a folder's files that changed, as the kernel reports them: inotify(7)."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from typing import Final

# sys/inotify.h
_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
_WATCHED = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_LOST = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _OVERFLOW | _IGNORED
"""After these the watch tells no more, or did not tell all."""
_HEAD: Final = struct.Struct("iIII")
"""Watch, mask, cookie, and the length of the name that follows, padded with NUL."""
_BUFFER = 1 << 16
_NONE = -1

_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """A watch of one folder. Its changes by any process are known once their system calls return.

    Not thread safe. Files changed through another mount of the folder count too.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._handle = _NONE

    def changed_names(self) -> frozenset[str] | None:
        """Return the names that changed since the last call.

        None if that is not known: at the first call, and if the kernel dropped events, or cannot
        watch the folder. Then the folder is to be listed; later changes are reported again.
        """
        if self._handle == _NONE:
            self._handle = _watch(self._folder)
            return None
        events = list(_read_events(self._handle))
        if any(mask & _LOST for mask, _ in events):
            self.close()
            self._handle = _watch(self._folder)
            return None
        return frozenset(name for _, name in events)

    def close(self) -> None:
        """End the watch."""
        if self._handle != _NONE:
            os.close(self._handle)
            self._handle = _NONE

    def __del__(self) -> None:
        """End the watch with its object."""
        self.close()


def _watch(folder: str) -> int:
    """Return an open watch; _NONE if the kernel gives none."""
    handle: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if handle != _NONE and _libc.inotify_add_watch(handle, os.fsencode(folder), _WATCHED) == _NONE:
        os.close(handle)
        return _NONE
    return handle


def _read_events(handle: int) -> Iterator[tuple[int, str]]:
    """Yield the mask and the name of each event there is."""
    with contextlib.suppress(BlockingIOError):
        while True:
            yield from _parse(os.read(handle, _BUFFER))


def _parse(data: bytes) -> Iterator[tuple[int, str]]:
    position = 0
    while position < len(data):
        _, mask, _, length = _HEAD.unpack_from(data, position)
        position += _HEAD.size
        name = data[position : position + length].rstrip(b"\0")
        yield mask, os.fsdecode(name)
        position += length
