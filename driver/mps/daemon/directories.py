"""Directories of a daemon: created, cleaned after a dead one, read for its last log lines, removed.

The pipe directory is mounted into containers, so it is emptied and never replaced: a container that
waits for the next daemon has the same directory. It is a file system of its own, for a few sockets;
the directory around it is accessible to root only, as the logs are.
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
"""Bounds of a pipe directory. A daemon (535, 550) has five files there, each of one line at most.
"""
_LOG_MODE = 0o755
_LOGS = (process.OUTPUT, "server.log")
_FILES = ("stderr", *_LOGS)
_LONGEST = "control_privileged"
"""Longest socket name in a pipe directory."""
_SOCKET_BYTES = 107
"""A socket's address (sockaddr_un), without its end."""


def prepare(paths: process.DaemonPaths) -> None:
    """Create empty directories for a daemon to start; old logs are kept once.

    Raises:
        NodeFault: they cannot be created; the text says which.
        BadInput: the state directory's path is too long for a socket in it.
    """
    deepest = paths.pipe / _LONGEST
    if (size := len(os.fsencode(deepest))) > _SOCKET_BYTES:
        expected = f"at most {_SOCKET_BYTES}: a shorter directory"
        raise errors.BadInput("--state-dir", f"the socket {deepest} has {size} bytes", expected)
    try:
        mounts.mount_tmpfs(paths.pipe, _PIPE_BYTES, _PIPE_INODES)
        paths.log.mkdir(exist_ok=True)
        paths.log.chmod(_LOG_MODE)
        _empty_folder(paths.pipe)
        for path in (paths.log / name for name in _LOGS):
            if path.exists():
                path.replace(_rotated(path))
    except OSError as e:
        raise errors.NodeFault("make", str(paths.pipe.parent), str(e)) from e


def remove(paths: process.DaemonPaths) -> None:
    """Unmount the pipe directory, whatever its content, and remove the others. Raises NodeFault."""
    try:
        mounts.unmount(paths.pipe)
        if paths.pipe.parent.exists():
            shutil.rmtree(paths.pipe.parent)
    except (OSError, RecursionError) as e:
        raise errors.NodeFault("remove", str(paths.pipe.parent), str(e)) from e


def log_tails(paths: process.DaemonPaths) -> str:
    """Return the last lines that a daemon and its server wrote; "" if none."""
    tails = ((name, _tail(paths.log / name, _MESSAGE_BYTES)) for name in _FILES)
    parts = []
    for name, text in tails:
        lines = control.drop_chatter(line.strip() for line in text.splitlines() if line.strip())
        if lines:
            parts.append(f"{name}: {' | '.join(lines[-TAIL_LINES:])}")
    return "; ".join(parts)


def control_log(paths: process.DaemonPaths) -> str:
    """Return the end of the daemon's own log."""
    return _tail(paths.log / process.OUTPUT, _TAIL_BYTES)


def truncate_logs(paths: process.DaemonPaths) -> None:
    """Truncate long logs, keeping their end apart: they are open for appending."""
    for path in (paths.log / name for name in _FILES):
        try:
            # Not its length: a writer with an offset of its own leaves a hole before it.
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
    """Remove a dead daemon's files. _PIPE_INODES also bounds the depth of folders there."""
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
