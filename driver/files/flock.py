"""Locks on open files (flock): the kernel lets go of them when their process dies."""

import fcntl


def taken(handle: int) -> bool:
    """Take the lock of an open file; False, at once, while another open file of it has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
