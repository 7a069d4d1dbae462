"""The plugin's socket files: where they lie, who may use them, whose they are.

A second bind on a live socket takes it over silently, and a gRPC server that stops would take its
successor's file away. So one instance holds a locked file, a server binds under a hidden name that
is then renamed, and a file is removed only while it is the very one we made.
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
    """The sockets of one instance; `instance` is the pod's UID, or "" for the fixed names.

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
    """Where a server binds before its socket gets its name; the kubelet skips dot files."""
    return path.parent / f".{hashlib.sha256(path.name.encode()).hexdigest()[:7]}"


class InstanceLock:
    """The right to a socket's path: a locked file beside it, free again when the process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, service: Path) -> Self:
        """Be the only one of this path, and make its directory, closed to others.

        Raises:
            NodeFault: another process has it, or the file cannot be had.
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
        """Give the path up."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)


def _lock_path(service: Path) -> Path:
    return service.with_suffix(".lock")


def is_held(service: Path) -> bool:
    """Whether a process of ours has the right to this path.

    To be asked of who serves already: of who is about to, the question might take the lock.
    """
    return flock.is_held(_lock_path(service))


def refuse_if_served(path: Path) -> None:
    """Make sure that nobody listens at `path`: a dead socket is left to be replaced.

    Raises:
        NodeFault: somebody listens, or what lies there is no socket.
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
    """A socket file that we made."""

    path: Path
    device: int
    inode: int

    def remove(self) -> bool:
        """Remove the file if it still is ours; whether it was."""
        try:
            stat = self.path.lstat()
            if (stat.st_dev, stat.st_ino) != (self.device, self.inode):
                return False
            self.path.unlink()
        except OSError:
            return False
        return True


def publish(path: Path) -> OwnedSocket:
    """Give the socket bound at `hidden(path)` its name, for root alone.

    Raises:
        NodeFault: the file cannot be had, or somebody has come to listen at `path`.
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
