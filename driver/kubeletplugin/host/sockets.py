"""The plugin's socket files: paths, permissions, ownership.

A second bind on a live socket takes it over silently, and a stopping gRPC server would remove its
successor's file. So one instance holds a locked file, a server binds under a hidden name that is
then renamed, and a file is removed only while it is the one we created.
"""

import base64
import contextlib
import fcntl
import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from driver import errors
from driver.runtime.files import flock

LIMIT = 107
"""Bytes of a path that a Unix socket's address has room for (108 with the final zero)."""
_CONNECT_S = 1.0


@dataclass(frozen=True, slots=True)
class Paths:
    """The two sockets of a plugin: the kubelet finds the first, which names the second."""

    registration: Path
    service: Path


def socket_paths(kubelet_root: Path, driver: str, instance: str = "") -> Paths:
    """Return the sockets of one instance; `instance` is the pod's UID, or "" for the fixed names.

    A path over LIMIT bytes is shortened by a hash, the same for the same names.

    Raises:
        BadInput: even the shortest path is too long: the root is.
    """
    registry, plugins = kubelet_root / "plugins_registry", kubelet_root / "plugins"
    tail = f"-{instance}" if instance else ""
    both = _hash(f"{driver}\0{instance}", 16)
    return Paths(
        registration=_first_fitting(
            registry / f"{driver}{tail}-reg.sock",
            registry / f"{driver}-{_hash(instance, 8)}-reg.sock",
            registry / f"{both}-reg.sock",
        ),
        service=_first_fitting(
            plugins / driver / f"dra{tail}.sock",
            plugins / driver / f"dra-{both}.sock",
            plugins / both / "dra.sock",
        ),
    )


def _first_fitting(*candidates: Path) -> Path:
    for path in candidates:
        if len(os.fsencode(path)) <= LIMIT:
            return path
    shortest = min(candidates, key=lambda path: len(os.fsencode(path)))
    raise errors.BadInput(
        "--kubelet-root",
        f"the socket {shortest} has {len(os.fsencode(shortest))} bytes",
        f"at most {LIMIT}: a shorter directory",
    )


def _hash(text: str, size: int) -> str:
    digest = hashlib.sha256(text.encode()).digest()[:size]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def bind_path(path: Path) -> Path:
    """Return the path a server binds to before the rename; the kubelet skips dot files."""
    return path.parent / f".{hashlib.sha256(path.name.encode()).hexdigest()[:7]}"


class InstanceLock:
    """Exclusive right to a socket's path: a locked file beside it, released on exit."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, service: Path) -> Self:
        """Acquire the path, and create its directory, closed to others.

        Raises:
            NodeFault: another process has it, or the file cannot be opened.
        """
        path = _lock_path(service)
        try:
            service.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            service.parent.chmod(0o700)
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same_file(path, os.fstat(descriptor)):
                    return cls(path, descriptor)
                os.close(descriptor)  # its last holder removed it while we waited at the door
        except BlockingIOError as e:
            raise errors.NodeFault("lock", str(path), "another instance runs with it") from e
        except OSError as e:
            raise errors.NodeFault("lock", str(path), e.strerror or str(e)) from e

    def release(self) -> None:
        """Release the path."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)


def _lock_path(service: Path) -> Path:
    return service.with_suffix(".lock")


def is_held(service: Path) -> bool:
    """Return whether a process of ours holds this path.

    Call only for sockets already served: for one about to be, the check itself might take the lock.
    """
    return flock.is_held(_lock_path(service))


def refuse_if_served(path: Path) -> None:
    """Check that no process listens at `path`; a dead socket is left to be replaced.

    Raises:
        NodeFault: a process listens, or the file is no socket.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_S)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            if path.exists() and not path.is_socket():
                raise errors.NodeFault("serve at", str(path), "it is no socket") from None
            return
        except OSError as e:
            raise errors.NodeFault("serve at", str(path), e.strerror or str(e)) from e
    raise errors.NodeFault("serve at", str(path), "another process listens there")


@dataclass(frozen=True, slots=True)
class OwnedSocket:
    """A socket file that we created."""

    path: Path
    device: int
    inode: int

    def remove(self) -> bool:
        """Remove the file if it still is ours; return whether it was."""
        try:
            stat = self.path.lstat()
            if (stat.st_dev, stat.st_ino) != (self.device, self.inode):
                return False
            self.path.unlink()
        except OSError:
            return False
        return True


def publish(path: Path) -> OwnedSocket:
    """Rename the socket bound at `bind_path(path)` to its name, for root only.

    Raises:
        NodeFault: the file cannot be renamed, or a process has started listening at `path`.
    """
    refuse_if_served(path)
    try:
        bind_path(path).chmod(0o700)
        bind_path(path).rename(path)
        stat = path.lstat()
    except OSError as e:
        raise errors.NodeFault("serve at", str(path), e.strerror or str(e)) from e
    return OwnedSocket(path, stat.st_dev, stat.st_ino)


def _same_file(path: Path, opened: os.stat_result) -> bool:
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
