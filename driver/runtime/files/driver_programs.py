"""Programs of the NVIDIA driver, each run in the file system that it was installed into.

A program uses the loader and the libc of its file system, which must be of one build: with the
loader of our image and the libc of a host it crashes. So a separate thread gets its own mounts,
enters that file system by chroot(2), and starts the program from there.

If the driver's folder is no complete system (Container-Optimized OS, Talos), the host is used, and
the driver's libraries are passed to the loader. A complete folder may yet lack files that programs
need, or be read-only: missing files are mounted over it, in memory, for that one program.
"""

import errno
import os
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from driver import errors
from driver.runtime.files import driver_search, mounts, root_paths

LOADERS: Final = ("lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1")
"""Loaders named by NVIDIA's programs; without one, they do not run."""
_OURS: Final = Path("/")
_LIBRARIES = (driver_search.NVML_LIBRARY, "libcuda.so.1")
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PARTS = (("/dev", "dev/nvidiactl"), ("/proc", "proc/self"), ("/sys", "sys/bus"))
"""(folder, an entry of it if it is the real one); else ours is bound there: the host's."""
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Program:
    """A program: `root` is the file system it runs in, as we see it; `path` is in it.

    `environment` is all that it gets of ours.
    """

    root: Path
    path: str
    environment: Mapping[str, str]

    def call(
        self,
        act: Callable[[], _Result],
        binds: Mapping[str, Path] | None = None,
        passable: Path | None = None,
    ) -> _Result:
        """Call `act` where `path` can be started: its child processes run there.

        `binds` are folders of ours that the program gets at these paths, whether or not its root
        has such a path; every user can traverse the folder `passable` there. `act` opens no file of
        ours. Raises NodeFault if we may not enter, OSError, and what `act` raises.
        """
        if self.root == _OURS and not binds and passable is None:
            return act()

        def enter_and_act() -> _Result:
            try:
                _enter(self.root, binds or {}, passable)
            except OSError as e:
                raise _enter_fault(self.root, e) from e
            return act()

        return _run_in_thread(enter_and_act)


def find_program(search: driver_search.Search, name: str) -> Program:
    """Find a program of the driver, and the file system that it belongs to.

    Raises:
        NodeFault: it is nowhere; the text lists the searched folders.
    """
    root = search.locate()
    folder = root.find_program(name)
    if folder is None and not search.is_fixed and driver_search.missing_reason(root):
        raise errors.NodeFault("find", name, search.describe())
    if folder is None:
        places = ", ".join(root_paths.PROGRAM_FOLDERS)
        raise errors.NodeFault("find", name, f"{root.path} has none (yet) in {places}")
    system = _system(search, root.path)
    above = "" if root.path == system else f"/{root.path.relative_to(system)}"
    inside = f"{above}/{'/'.join(folder)}"
    libraries = ":".join(f"{above}/{'/'.join(parts)}" for parts in _library_folders(root))
    variables = {"PATH": f"{inside}:{_USUAL_PATH}"}
    if libraries:
        variables["LD_LIBRARY_PATH"] = libraries
    return Program(system, f"{inside}/{name}", variables)


def _system(search: driver_search.Search, folder: Path) -> Path:
    """Return the file system of the driver's folder: itself, else the host's, else ours."""
    above = (search.host,) if folder.is_relative_to(search.host) else ()
    return next(filter(_is_whole, (folder, *above)), _OURS)


def _is_whole(folder: Path) -> bool:
    root = root_paths.Root(folder)
    return any(root.resolve(loader).is_file() for loader in LOADERS)


def _library_folders(root: root_paths.Root) -> tuple[root_paths.Parts, ...]:
    """Return the folders of libraries that programs load; others' loader may not know them."""
    return tuple(
        folder
        for folder in root.library_folders()
        if any(root.resolve(name, folder).is_file() for name in _LIBRARIES)
    )


def _run_in_thread(act: Callable[[], _Result]) -> _Result:
    """Run `act` in a separate thread, so that its mounts and root end with it."""
    future: futures.Future[_Result] = futures.Future()

    def run() -> None:
        try:
            future.set_result(act())
        except BaseException as e:  # noqa: BLE001 - raised again in the calling thread
            future.set_exception(e)

    thread = threading.Thread(target=run, name="driver program", daemon=True)
    thread.start()
    thread.join()
    return future.result()


def _enter(root: Path, binds: Mapping[str, Path], passable: Path | None) -> None:
    """Make `root` the calling thread's root, with the folders it needs. Raises OSError."""
    mounts.isolate()
    stage = _Stage(root)
    if root != _OURS:
        for folder, entry in _PARTS:
            if not stage.resolve(entry).exists():
                stage.bind(Path(folder), folder)
    for target, source in binds.items():
        stage.bind(source, target)
    if passable is not None:
        mounts.cover(stage.resolve(str(passable)))
    if root != _OURS:
        os.chroot(root)
        os.chdir("/")


class _Stage:
    """A root in the calling thread's mounts, with folders bound at paths that it may lack."""

    def __init__(self, root: Path) -> None:
        self._root = root_paths.Root(root)
        self._ours: set[Path] = set()

    def resolve(self, path: str) -> Path:
        return self._root.resolve(path)

    def bind(self, source: Path, path: str) -> None:
        target = self.resolve(path)
        if target.is_dir() and os.path.samestat(source.stat(), target.stat()):
            return
        self._make_folders(target)
        mounts.bind(source, target)

    def _make_folders(self, target: Path) -> None:
        missing = [folder for folder in (target, *target.parents) if not folder.is_dir()]
        for folder in reversed(missing):
            if folder.parent not in self._ours:
                mounts.cover(folder.parent)
            folder.mkdir()
            self._ours |= {folder, folder.parent}


def _enter_fault(root: Path, problem: OSError) -> errors.NodeFault:
    if problem.errno != errno.EPERM:
        return errors.NodeFault("enter", str(root), str(problem))
    rights = "only root with all capabilities, as in a privileged container, may run programs there"
    return errors.NodeFault("enter", str(root), f"{problem.strerror}: {rights}")
