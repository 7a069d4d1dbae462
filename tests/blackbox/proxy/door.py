"""A Unix socket that passes bytes on to another one, counts who comes, and can be shut or cut.

A door that is shut leaves its file: who knocks is refused, as by a program that died. The file is
bound under a hidden name and renamed, so that whoever watches the folder sees it whole.
"""

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable
from pathlib import Path

_BACKLOG = 64
_CHUNK = 1 << 16
_numbers = itertools.count(1)


class Door:
    """Thread safe. `inside` is where bytes go; `came` is called for each that comes."""

    def __init__(self, path: Path, inside: Path, came: Callable[[], None]) -> None:
        self.path = path
        self._inside = inside
        self._came = came
        self._lock = threading.RLock()
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()

    def is_open(self) -> bool:
        """Return whether it lets anyone in."""
        return self._listener is not None

    def open(self) -> None:
        """Listen; one that is open stays."""
        with self._lock:
            if self._listener is not None:
                return
            hidden = self.path.parent / f".d{next(_numbers)}"
            hidden.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(hidden))
            listener.listen(_BACKLOG)
            hidden.rename(self.path)
            self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Listen no more and cut who is in; the file stays."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def remove(self) -> None:
        """Shut it and take the file away."""
        self.shut()
        self.path.unlink(missing_ok=True)

    def cut(self) -> int:
        """End every connection at once; how many there were."""
        with self._lock:
            gone, self._open = self._open, set()
        for item in gone:
            _end(item)
        return len(gone) // 2

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                outer, _ = listener.accept()
            except OSError:
                return
            self._came()
            inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                inner.connect(str(self._inside))
            except OSError:
                _end(outer)
                _end(inner)
                continue
            with self._lock:
                self._open |= {outer, inner}
            for pair in ((outer, inner), (inner, outer)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                target.sendall(chunk)
        with self._lock:
            self._open -= {source, target}
        _end(source)
        _end(target)


def _end(item: socket.socket) -> None:
    with contextlib.suppress(OSError):
        item.shutdown(socket.SHUT_RDWR)
    item.close()


def answers(path: Path) -> bool:
    """Return whether somebody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
