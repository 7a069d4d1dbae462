"""Locks on open files (flock): the kernel releases them when their process dies."""

import fcntl
import os
from pathlib import Path


def try_lock(handle: int) -> bool:
    """Lock an open file; return False at once if another open file of it has the lock."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Return whether a file's lock is held; False if there is no such file.

    A process that tries to lock it at the same moment may fail: this call holds the lock briefly.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)
