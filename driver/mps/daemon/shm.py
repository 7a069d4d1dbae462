"""Shared memory of a daemon and its clients: a bounded tmpfs that is their /dev/shm.

MPS passes page-locked host memory through /dev/shm, which the daemon, its server and the clients
must share, and which bounds its amount.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from driver import errors
from driver.runtime.files import mounts

TARGET: Final = Path("/dev/shm")  # noqa: S108 - the daemon's, not ours


def mount(path: Path, size: int) -> None:
    """Mount a tmpfs of `size` bytes at `path`, replacing any mount. Raises NodeFault."""
    try:
        mounts.mount_tmpfs(path, size)
    except OSError as e:
        raise errors.NodeFault("mount", str(path), str(e)) from e


def mounted_size(path: Path) -> int | None:
    """Return the size in bytes of the tmpfs at `path`; None if nothing is mounted there."""
    try:
        if not path.is_mount():
            return None
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_blocks * status.f_frsize


def unmount(path: Path) -> None:
    """Unmount it and remove its folders; succeeds if missing. Raises NodeFault."""
    try:
        mounts.unmount(path)
        for folder in (path, path.parent):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()
    except OSError as e:
        raise errors.NodeFault("unmount", str(path), str(e)) from e


def is_process_shm(pid: int, path: Path) -> bool:
    """Return whether `path` is the /dev/shm of a process."""
    try:
        process_stat = (Path("/proc") / str(pid) / "root/dev/shm").stat()
        own_stat = path.stat()
    except OSError:
        return False
    return (process_stat.st_dev, process_stat.st_ino) == (own_stat.st_dev, own_stat.st_ino)
