"""Shared memory of a daemon and its clients: a tmpfs of its own, bounded, that is their /dev/shm.

MPS passes page-locked host memory through /dev/shm, which the daemon, its server and the clients
have to have in common, and which bounds how much of it there may be.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from driver import errors
from driver.runtime.files import mounts

TARGET: Final = Path("/dev/shm")  # noqa: S108 - the daemon's, not ours


def mount(path: Path, size: int) -> None:
    """Have a tmpfs of `size` bytes at `path`, whatever is there now. Raises NodeFault."""
    try:
        mounts.mount_tmpfs(path, size)
    except OSError as e:
        raise errors.NodeFault("mount", str(path), str(e)) from e


def mounted_size(path: Path) -> int | None:
    """The size in bytes of the tmpfs at `path`; None when nothing is mounted there."""
    try:
        if not path.is_mount():
            return None
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_blocks * found.f_frsize


def unmount(path: Path) -> None:
    """Unmount it and remove its folders; nothing there is fine. Raises NodeFault."""
    try:
        mounts.unmount(path)
        for folder in (path, path.parent):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()
    except OSError as e:
        raise errors.NodeFault("unmount", str(path), str(e)) from e


def is_process_shm(pid: int, path: Path) -> bool:
    """Whether what is at `path` is the /dev/shm of a process."""
    try:
        theirs = (Path("/proc") / str(pid) / "root/dev/shm").stat()
        ours = path.stat()
    except OSError:
        return False
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)
