"""The directories of one daemon: made, cleaned after a dead one, read for its last words, removed.

The pipe directory is mounted into containers, so it is emptied and never replaced: a container
that waits for the next daemon has the same directory. It is a file system of its own, for a few
sockets; the directory around it is root's alone, as the logs are.
"""

import os
import shutil
from pathlib import Path

from driver import errors
from driver.mps.daemon import control, process
from driver.runtime.files import mounts

TAIL_LINES = 4
_MESSAGE_BYTES = 16 * 1024
_TAIL_BYTES = 64 * 1024
_LOG_BYTES = 4 * 1024 * 1024
_PIPE_BYTES, _PIPE_INODES = 1 << 20, 64
"""Of a pipe directory. A daemon (535, 550) has five files there, none with more than a line."""
_LOG_MODE = 0o755
_LOGS = (process.OUTPUT, "server.log")
_FILES = ("stderr", *_LOGS)
_LONGEST = "control_privileged"
"""Of the sockets' names in a pipe directory."""
_SOCKET_BYTES = 107
"""A socket's address (sockaddr_un), without its end."""


def prepare(place: process.DaemonPaths) -> None:
    """Have empty directories, for a daemon that is to start; old logs are kept once.

    Raises:
        NodeFault: they cannot be had; the text says which.
        BadInput: the state directory's path is too long for a socket in it.
    """
    deepest = place.pipe / _LONGEST
    if (size := len(os.fsencode(deepest))) > _SOCKET_BYTES:
        expected = f"at most {_SOCKET_BYTES}: a shorter directory"
        raise errors.BadInput("--state-dir", f"the socket {deepest} has {size} bytes", expected)
    try:
        mounts.mount_tmpfs(place.pipe, _PIPE_BYTES, _PIPE_INODES)
        place.log.mkdir(exist_ok=True)
        place.log.chmod(_LOG_MODE)
        _empty_folder(place.pipe)
        for path in (place.log / name for name in _LOGS):
            if path.exists():
                path.replace(_rotated(path))
    except OSError as e:
        raise errors.NodeFault("make", str(place.pipe.parent), str(e)) from e


def remove(place: process.DaemonPaths) -> None:
    """Unmount the pipe directory, whatever is in it, and remove the others. Raises NodeFault."""
    try:
        mounts.unmount(place.pipe)
        if place.pipe.parent.exists():
            shutil.rmtree(place.pipe.parent)
    except (OSError, RecursionError) as e:
        raise errors.NodeFault("remove", str(place.pipe.parent), str(e)) from e


def log_tails(place: process.DaemonPaths) -> str:
    """The last lines of what a daemon and its server wrote; "" of nothing."""
    found = ((name, _tail(place.log / name, _MESSAGE_BYTES)) for name in _FILES)
    parts = []
    for name, text in found:
        lines = control.drop_chatter(one.strip() for one in text.splitlines() if one.strip())
        if lines:
            parts.append(f"{name}: {' | '.join(lines[-TAIL_LINES:])}")
    return "; ".join(parts)


def control_log(place: process.DaemonPaths) -> str:
    """The end of the daemon's own log."""
    return _tail(place.log / process.OUTPUT, _TAIL_BYTES)


def truncate_logs(place: process.DaemonPaths) -> None:
    """Cut logs that have grown long, their end kept apart: they are open for appending for ever."""
    for path in (place.log / name for name in _FILES):
        try:
            # Not its length: who writes at an offset of its own leaves a hole before it.
            if path.stat().st_blocks * 512 > _LOG_BYTES:
                _rotated(path).write_bytes(_tail(path, _TAIL_BYTES).encode())
                os.truncate(path, 0)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise errors.NodeFault("cut", str(path), str(e)) from e


def _rotated(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


def _empty_folder(folder: Path) -> None:
    """Remove what a dead daemon left. _PIPE_INODES is also how deep a folder can be there."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _tail(path: Path, size: int) -> str:
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - size))
            return file.read(size).decode(errors="replace")
    except OSError:
        return ""
