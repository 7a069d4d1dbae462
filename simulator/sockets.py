"""Unix sockets at paths of any length.

A socket's address ends at 107 bytes; a machine's directory may be deeper. The directory is opened
and the socket named through /proc/self/fd, which is always short.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def _short(path: Path) -> Iterator[str]:
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def listen(path: Path) -> socket.socket:
    """A listening socket at `path`, in place of one left behind, open to every user."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as address:
            listener.bind(address)
        path.chmod(0o666)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def connect(path: Path) -> socket.socket:
    """A connection to `path`; FileNotFoundError or ConnectionRefusedError when nobody listens."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as address:
            peer.connect(address)
    except OSError:
        peer.close()
        raise
    return peer
