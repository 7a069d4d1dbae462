"""The NVIDIA driver's files, wherever it was installed: `/`, or a driver container's root.

Paths are given to containers as they stand on the host. A driver root below the host's own root, as
the plugin sees that (`/host/run/nvidia/driver` with `/host`), is on the host without it; any other
has one path for the plugin and for the host. Links are followed inside the root only: an absolute
link in it means a path of it, never one of the plugin's own file system.
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
"""A device node's major and minor; None where there is no character device."""


class DriverNotReady(errors.NodeFault):
    """The driver root lacks a file that no container can do without."""


def device_numbers(path: Path) -> tuple[int, int] | None:
    """Read them from the node itself."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISCHR(found.st_mode):
        return None
    return os.major(found.st_rdev), os.minor(found.st_rdev)


class DriverRoot:
    """The files under one path; the host's own are under `host`, where we see them at all.

    `place` may have to be looked for: that is done when libraries are asked for, and holds until
    they are asked for again.
    """

    def __init__(
        self,
        place: Path | driver_search.Search,
        numbers: Numbers = device_numbers,
        host: Path | None = None,
    ) -> None:
        self.search = (
            place if isinstance(place, driver_search.Search) else driver_search.Search((place,))
        )
        self._numbers = numbers
        self.host = host.absolute() if host else None

    @property
    def _root(self) -> root_paths.Root:
        return self.search.root

    @property
    def path(self) -> Path:
        """The root itself, absolute; where none has been found yet, the first to look in."""
        return self._root.path

    def host_path(self, path: str) -> str:
        """Where a path that we see is on the host."""
        if self.host is None or not self.path.is_relative_to(self.host):
            return path
        above = str(self.host).rstrip("/")
        return path.removeprefix(above) if path.startswith(f"{above}/") else path

    def library(self, soname: str) -> Path | None:
        """The real file behind a library's SONAME; None where no folder has it."""
        return self.libraries(soname)[0]

    def libraries(self, *sonames: str) -> tuple[Path | None, ...]:
        """As `library`, of several; the folders are looked for once."""
        root = self.search.locate()
        folders = root.library_folders()
        return tuple(_in_folders(root, folders, soname) for soname in sonames)

    def require(self, soname: str) -> Path:
        """The real file behind a library's SONAME. Raises DriverNotReady."""
        found = self.library(soname)
        if found is None and soname == NVML_LIBRARY and not self.search.is_fixed:
            raise DriverNotReady("find", soname, self.search.describe())
        if found is None:
            raise DriverNotReady(
                "find", f"{self.path}/**/{soname}", "the NVIDIA driver is not installed there (yet)"
            )
        return found

    def node(self, name: str) -> device_node.DeviceNode | None:
        """`dev/<name>` with its numbers; None where there is no such character device.

        Where only libraries and programs lie under the root, the host has the devices.
        """
        for root in dict.fromkeys((self.path, self.host or self.path)):
            seen = root / "dev" / name
            numbers = self._numbers(seen)
            if numbers is not None:
                return device_node.DeviceNode(f"/dev/{name}", str(seen), *numbers)
        return None

    def file(self, relative: str) -> Path | None:
        """The real file of a path inside the root; None for none, or for links in a circle."""
        try:
            found = self.resolve(relative)
        except errors.NodeFault:
            return None
        return found if found.is_file() else None

    def resolve(self, relative: str) -> Path:
        """Follow the links of a path inside the root; its last parts need not exist."""
        return self._root.resolve(relative)


def _in_folders(
    root: root_paths.Root, folders: tuple[root_paths.Parts, ...], soname: str
) -> Path | None:
    found = (root.resolve(soname, folder) for folder in folders)
    return next((path for path in found if path.is_file()), None)
