"""Files written atomically, whatever stops the process (F-17)."""

import contextlib
import os
from pathlib import Path

from driver import errors
from driver.runtime.files import failpoints

DIRECTORY_MODE = 0o755
_TEMPORARY_SUFFIX = ".new"


def temporary_path(path: Path) -> Path:
    """Return where the next content of `path` is written, a name that readers ignore."""
    return Path(f"{path.parent}/.{path.name}{_TEMPORARY_SUFFIX}")


def target_name(name: str) -> str:
    """Return the file that a name in a folder belongs to: itself, or that of its temporary."""
    if name.startswith(".") and name.endswith(_TEMPORARY_SUFFIX):
        return name[1 : -len(_TEMPORARY_SUFFIX)]
    return name


def read(path: Path) -> bytes | None:
    """Return the content of `path`; None if missing. Raises NodeFault."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as e:
        raise errors.NodeFault("read", str(path), str(e)) from e


def list_names(folder: Path) -> tuple[str, ...]:
    """Return the sorted names in a folder with temporaries; () if missing. Raises NodeFault."""
    try:
        return tuple(sorted(path.name for path in folder.iterdir()))
    except FileNotFoundError:
        return ()
    except OSError as e:
        raise errors.NodeFault("list", str(folder), str(e)) from e


def replace(
    path: Path, data: bytes, mode: int, observer: failpoints.Observer, *, synced: bool = True
) -> None:
    """Write `data` to `path`: temporary file, fsync, rename, fsync of the folder.

    Without `synced` there is no fsync: complete after the death of any process, but perhaps torn or
    old after the machine's. The folder is created if missing. Raises NodeFault, with the old
    content still there.
    """
    new = str(temporary_path(path))
    try:
        _write(new, path.parent, data, mode, synced=synced)
        observer.on_point(f"temporary written: {path.name}")
        os.rename(new, path)  # noqa: PTH104 - a Path takes as long again
        if synced:
            _sync(path.parent)
    except OSError as e:
        raise errors.NodeFault("write", str(path), str(e)) from e
    observer.on_point(f"file written: {path.name}")


def _write(path: str, folder: Path, data: bytes, mode: int, *, synced: bool) -> None:
    """Write a whole file of `folder`, by system calls alone: a Prepare writes three."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, mode)
    except FileNotFoundError:
        make_folder(folder)
        handle = os.open(path, flags, mode)
    try:
        os.fchmod(handle, mode)  # whatever the umask
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(handle, remaining) :]
        if synced:
            os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create a folder that others may read, whatever the umask; an existing one is unchanged."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(DIRECTORY_MODE)


def remove(path: Path, observer: failpoints.Observer, *, synced: bool = True) -> None:
    """Remove `path` and its temporary; both may be gone already. Raises NodeFault.

    Without `synced` they may be back after the death of the machine.
    """
    try:
        _unlink(temporary_path(path))
        _unlink(path)
        if synced:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                _sync(path.parent)
    except OSError as e:
        raise errors.NodeFault("remove", str(path), str(e)) from e
    observer.on_point(f"file removed: {path.name}")


def _unlink(path: Path) -> None:
    """Remove an existing file; if it is missing, an unwritable folder does not matter."""
    name = str(path)
    try:
        os.lstat(name)
    except (FileNotFoundError, NotADirectoryError):
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)  # noqa: PTH108 - a Path takes as long again


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
