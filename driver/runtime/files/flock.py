"""Locks on open files (flock): the kernel lets go of them when their process dies."""

import fcntl
import os
from pathlib import Path


def try_lock(handle: int) -> bool:
    """Take the lock of an open file; False, at once, while another open file of it has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Whether somebody has the lock of a file; False where there is no such file.

    Whoever takes it at this moment may fail to: it is ours for as long as the question takes.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)
