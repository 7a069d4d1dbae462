"""The NVIDIA driver's files, wherever it was installed: `/`, or a driver container's root.

Containers get paths as they are on the host. A driver root below the host's own root, as the plugin
sees it (`/host/run/nvidia/driver` with `/host`), is on the host without that prefix; any other has
the same path for the plugin and the host. Links are followed inside the root only: an absolute link
in it is a path of the root, never of the plugin's own file system.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from driver import errors
from driver.kubeletplugin.host import device_node
from driver.runtime.files import driver_search, root_paths

NVML_LIBRARY = driver_search.NVML_LIBRARY
CUDA_LIBRARY = "libcuda.so.1"
Numbers = Callable[[Path], tuple[int, int] | None]
"""A device node's major and minor; None if it is no character device."""


class DriverNotReady(errors.NodeFault):
    """The driver is not loaded, or its root lacks a file that every container needs."""


def device_numbers(path: Path) -> tuple[int, int] | None:
    """Return a node's device numbers."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISCHR(status.st_mode):
        return None
    return os.major(status.st_rdev), os.minor(status.st_rdev)


class DriverRoot:
    """The files under one path; the host's own are under `host`, if visible.

    `root` may be a search: it runs when libraries are requested, and its result holds until they
    are requested again.
    """

    def __init__(
        self,
        root: Path | driver_search.Search,
        numbers: Numbers = device_numbers,
        host: Path | None = None,
    ) -> None:
        self.search = (
            root if isinstance(root, driver_search.Search) else driver_search.Search((root,))
        )
        self._numbers = numbers
        self.host = host.absolute() if host else None
        self._made_paths: dict[tuple[root_paths.Root, str], tuple[Path, ...]] = {}

    @property
    def _root(self) -> root_paths.Root:
        return self.search.root

    @property
    def path(self) -> Path:
        """Return the absolute root; if none has been found yet, the first candidate."""
        return self._root.path

    def host_path(self, path: str) -> str:
        """Return the host's path of a path that we see."""
        if self.host is None or not self.path.is_relative_to(self.host):
            return path
        above = str(self.host).rstrip("/")
        return path.removeprefix(above) if path.startswith(f"{above}/") else path

    def library(self, soname: str) -> Path | None:
        """Return the real file behind a library's SONAME; None if no folder has it."""
        return self.libraries(soname)[0]

    def libraries(self, *sonames: str) -> tuple[Path | None, ...]:
        """Return the files of several SONAMEs as `library`; folders are listed once."""
        root = self.search.locate()
        folders = root.library_folders()
        return tuple(_in_folders(root, folders, soname) for soname in sonames)

    def trace(self, *sonames: str) -> tuple[dict[str, str], tuple[Path, ...]]:
        """Return what `libraries` depends on: links with their targets, and folders.

        Its result is the same while these are. Raises NodeFault.
        """
        root = self._root
        searched = root.library_folders()
        names = [f"{'/'.join(folder)}/{soname}" for folder in searched for soname in sonames]
        links = root.find_links((*root_paths.LIBRARY_FOLDERS, *names))
        folders = dict.fromkeys(map(root.resolve, root_paths.LIBRARY_FOLDERS))
        files = dict.fromkeys(root.resolve(name).parent for name in names)
        return links, tuple(folders | files)

    def require(self, soname: str) -> Path:
        """Return the real file behind a library's SONAME. Raises DriverNotReady."""
        library = self.library(soname)
        if library is None and soname == NVML_LIBRARY and not self.search.is_fixed:
            raise DriverNotReady("find", soname, self.search.describe())
        if library is None:
            raise DriverNotReady(
                "find", f"{self.path}/**/{soname}", "the NVIDIA driver is not installed there (yet)"
            )
        return library

    def node(self, name: str) -> device_node.DeviceNode | None:
        """Return `dev/<name>` with its numbers; None if there is no such character device.

        If the root has only libraries and programs, the host has the devices.
        """
        for path in self._node_paths(self._root, name):
            numbers = self._numbers(path)
            if numbers is not None:
                return device_node.DeviceNode(f"/dev/{name}", str(path), *numbers)
        return None

    def _node_paths(self, root: root_paths.Root, name: str) -> tuple[Path, ...]:
        """Return where a device may be; the paths are made once, for each Prepare asks for six."""
        paths = self._made_paths.get((root, name))
        if paths is None:
            folders = dict.fromkeys((root.path, self.host or root.path))
            paths = tuple(folder / "dev" / name for folder in folders)
            self._made_paths[root, name] = paths
        return paths

    def file(self, relative: str) -> Path | None:
        """Return the real file of a path inside the root; None if missing or circular."""
        try:
            path = self.resolve(relative)
        except errors.NodeFault:
            return None
        return path if path.is_file() else None

    def resolve(self, relative: str) -> Path:
        """Follow the links of a path inside the root; its last parts need not exist."""
        return self._root.resolve(relative)


def _in_folders(
    root: root_paths.Root, folders: tuple[root_paths.Parts, ...], soname: str
) -> Path | None:
    paths = (root.resolve(soname, folder) for folder in folders)
    return next((path for path in paths if path.is_file()), None)
