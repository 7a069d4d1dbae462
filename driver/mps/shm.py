"""Shared memory of a daemon and its clients: a tmpfs of its own, bounded, that is their /dev/shm.

MPS passes page-locked host memory through /dev/shm, which the daemon, its server and the clients
have to have in common, and which bounds how much of it there may be.
"""

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Final

from driver import errors

TARGET: Final = Path("/dev/shm")  # noqa: S108 - the daemon's, not ours
# sched.h and sys/mount.h
_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 0x2, 0x4, 0x20
_MS_BIND, _MS_REC, _MS_SLAVE = 0x1000, 0x4000, 0x80000
_MNT_DETACH, _UMOUNT_NOFOLLOW = 0x2, 0x8

_libc = ctypes.CDLL(None, use_errno=True)


def provide(path: Path, size: int) -> None:
    """Have a tmpfs of `size` bytes at `path`, whatever is there now. Raises NodeFault."""
    options = f"size={size},mode=1777"
    flags = _MS_NOSUID | _MS_NODEV
    try:
        path.mkdir(parents=True, exist_ok=True)
        if path.is_mount():
            _mount("tmpfs", path, "tmpfs", flags | _MS_REMOUNT, options)
        else:
            _mount("tmpfs", path, "tmpfs", flags, options)
    except OSError as e:
        raise errors.NodeFault("mount", str(path), str(e)) from e


def size_of(path: Path) -> int | None:
    """The size in bytes of the tmpfs at `path`; None when nothing is mounted there."""
    try:
        if not path.is_mount():
            return None
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_blocks * found.f_frsize


def withdraw(path: Path) -> None:
    """Unmount and remove it; nothing there is fine. Who has it open keeps it. Raises NodeFault."""
    try:
        while path.is_mount():
            _check(_libc.umount2(bytes(path), _MNT_DETACH | _UMOUNT_NOFOLLOW), path)
        with contextlib.suppress(FileNotFoundError):
            path.rmdir()
    except OSError as e:
        raise errors.NodeFault("unmount", str(path), str(e)) from e


def is_of(pid: int, path: Path) -> bool:
    """Whether what is at `path` is the /dev/shm of a process."""
    try:
        theirs = (Path("/proc") / str(pid) / "root/dev/shm").stat()
        ours = path.stat()
    except OSError:
        return False
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


def enter(path: Path) -> None:
    """Give the calling thread, and what it starts from now on, `path` as /dev/shm.

    The thread has mounts of its own from here on, so it should end soon. Raises OSError.
    """
    _check(_libc.unshare(_CLONE_NEWNS), TARGET)
    _mount(None, Path("/"), None, _MS_REC | _MS_SLAVE, None)
    _mount(str(path), TARGET, None, _MS_BIND, None)


def _mount(
    source: str | None, target: Path, kind: str | None, flags: int, options: str | None
) -> None:
    words = (source, str(target), kind)
    texts = [None if word is None else word.encode() for word in words]
    data = None if options is None else options.encode()
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), data), target)


def _check(result: int, path: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
