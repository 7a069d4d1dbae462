"""Mounts that tenants or daemons see: bounded in-memory file systems, below root-only folders.

Nothing a tenant can write is on a file system of the host, and what it wrote is unmounted, never
walked. Flags and calls: mount(2), umount(2), unshare(2).
"""

import contextlib
import ctypes
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# sched.h and sys/mount.h
_CLONE_NEWNS = 0x20000  # and CLONE_FS: a root of its own too
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 0x2, 0x4, 0x8, 0x20
_MS_BIND, _MS_REC, _MS_SLAVE = 0x1000, 0x4000, 0x80000
_MNT_DETACH, _UMOUNT_NOFOLLOW = 0x2, 0x8
_HARMLESS = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
_ROOT_ONLY = 0o700
_OCTAL = re.compile(r"\\([0-7]{3})")

_libc = ctypes.CDLL(None, use_errno=True)


def mount_tmpfs(path: Path, size: int, inodes: int | None = None) -> None:
    """Mount a tmpfs of `size` bytes at `path`, or resize the existing one.

    Anyone may write to it; devices, executables and setuid files on it have no effect. Its parent
    folder becomes root-only, so that only processes given the mount itself can access it. Raises
    OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(_ROOT_ONLY)
    path.mkdir(exist_ok=True)
    flags = _HARMLESS | (_MS_REMOUNT if path.is_mount() else 0)
    bound = "" if inodes is None else f",nr_inodes={inodes}"
    _mount("tmpfs", path, "tmpfs", flags, f"size={size},mode=1777{bound}")


def unmount(path: Path) -> None:
    """Detach all mounts at `path`; processes that have it open keep it. Raises OSError."""
    while path.is_mount():
        _check(_libc.umount2(bytes(path), _MNT_DETACH | _UMOUNT_NOFOLLOW), path)


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount: its point, the kind and options of its file system, and the part that is mounted."""

    point: Path
    kind: str
    options: tuple[str, ...]
    root: Path
    """Path within the file system; "/" for all of it."""


def parse_mountinfo(table: str) -> tuple[Mount, ...]:
    """Read mountinfo (proc_pid_mountinfo(5)), in which the kind comes first after a dash."""
    return tuple(_parse_mount(line.split(" ")) for line in table.splitlines())


def _parse_mount(fields: list[str]) -> Mount:
    point = _OCTAL.sub(lambda escape: chr(int(escape[1], 8)), fields[4])
    dash = fields.index("-", 6)
    options = tuple(fields[dash + 3].split(","))
    return Mount(Path(point), fields[dash + 1], options, Path(fields[3]))


def list_mounts() -> tuple[Mount, ...]:
    """Return the mounts of this process, parents first. Raises OSError."""
    return parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))


def mounts_below(folder: Path) -> tuple[Path, ...]:
    """Return the mount points in a folder, at any depth, in unmount order. Raises OSError."""
    points = [mount.point for mount in list_mounts() if folder in mount.point.parents]
    return tuple(reversed(points))


def isolate() -> None:
    """Give the calling thread, and its later children, mounts and a root of their own.

    Mounts of the host still propagate into it; none propagates back. Raises OSError.
    """
    _check(_libc.unshare(_CLONE_NEWNS), Path("/"))
    _mount(None, Path("/"), None, _MS_REC | _MS_SLAVE, None)


def bind(source: Path, target: Path) -> None:
    """Bind `source`, with its submounts, at `target` too. Raises OSError."""
    _mount(str(source), target, None, _MS_BIND | _MS_REC, None)


def cover(folder: Path) -> None:
    """Mount an in-memory folder, 0755, over this one, with the same entries in it.

    Entries can then be added, wherever the folder is and whether or not it is writable. Call after
    `isolate`: the host's own folder is unchanged. Raises OSError.
    """
    entries = tuple(folder.iterdir())
    links = _read_links(entries)
    handles: dict[str, int] = {}
    try:
        for path in (path for path in entries if path.name not in links):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                handles[path.name] = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        _mount("tmpfs", folder, "tmpfs", _HARMLESS, "size=64k,mode=755")
        for name, target in links.items():
            (folder / name).symlink_to(target)
        for name, handle in handles.items():
            _show(handle, folder / name)
    finally:
        for handle in handles.values():
            os.close(handle)


def _read_links(entries: Iterable[Path]) -> dict[str, Path]:
    """Return the targets of those that are links, by name."""
    links: dict[str, Path] = {}
    for path in entries:
        with contextlib.suppress(FileNotFoundError):  # gone meanwhile
            if path.is_symlink():
                links[path.name] = path.readlink()
    return links


def _show(handle: int, entry: Path) -> None:
    """Bind an open file or folder at a new entry; there is none where it was removed meanwhile."""
    is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
    entry.mkdir() if is_folder else entry.touch()
    try:
        bind(Path(f"/proc/self/fd/{handle}"), entry)
    except FileNotFoundError:
        entry.rmdir() if is_folder else entry.unlink()


def _mount(
    source: str | None, target: Path, kind: str | None, flags: int, options: str | None
) -> None:
    arguments = (source, str(target), kind)
    texts = [None if argument is None else argument.encode() for argument in arguments]
    data = None if options is None else options.encode()
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), data), target)


def _check(result: int, path: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
