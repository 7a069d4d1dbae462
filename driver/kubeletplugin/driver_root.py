"""The NVIDIA driver's files, wherever it was installed: `/`, or a driver container's root.

Paths are given to containers as they stand on the host, so the driver root has one path for the
plugin and for the host. Links are followed inside the root only: an absolute link in it means a
path of it, never one of the plugin's own file system.
"""

import os
import platform
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from driver import errors
from driver.files import rooted
from driver.kubeletplugin.cdi import template

NVML_LIBRARY = "libnvidia-ml.so.1"
CUDA_LIBRARY = "libcuda.so.1"
OPTIONAL_LIBRARIES = (
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-nvvm.so.4",
    "libcudadebugger.so.1",
    "libnvidia-cfg.so.1",
)
"""What CUDA programs load at run time: the PTX compiler, the debugger's stub, the GPU's settings.
Those of them that are there are given along with libcuda and libnvidia-ml."""
BINARIES = (
    "usr/bin/nvidia-smi",
    "usr/bin/nvidia-cuda-mps-control",
    "usr/bin/nvidia-cuda-mps-server",
)
CONTROL_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
DAEMON_FOLDER = "run/nvidia-persistenced"
"""Mounted as a folder: the socket of a restarted daemon is a new file in the same folder."""
_FILE_OPTIONS = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_FOLDER_OPTIONS = (*_FILE_OPTIONS, "noexec")

Numbers = Callable[[Path], tuple[int, int] | None]
"""A device node's major and minor; None where there is no character device."""


class DriverNotReady(errors.NodeFault):
    """The driver root lacks a file that no container can do without."""


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """What every container with a GPU gets of the driver."""

    nodes: tuple[template.DeviceNode, ...]
    mounts: tuple[template.Mount, ...]


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
    """The files under `path`, a path of the host."""

    def __init__(self, path: Path, numbers: Numbers = device_numbers) -> None:
        self._root = rooted.Root(path)
        self._numbers = numbers

    @property
    def path(self) -> Path:
        """The root itself, absolute."""
        return self._root.path

    def library(self, soname: str) -> Path | None:
        """The real file behind a library's SONAME; None where no folder has it."""
        return self._in_folders(self._root.library_folders(), soname)

    def require(self, soname: str) -> Path:
        """The real file behind a library's SONAME. Raises DriverNotReady."""
        return self._required(self._root.library_folders(), soname)

    def node(self, name: str) -> template.DeviceNode | None:
        """`dev/<name>` with its numbers; None where there is no such character device."""
        host_path = self.path / "dev" / name
        numbers = self._numbers(host_path)
        if numbers is None:
            return None
        return template.DeviceNode(f"/dev/{name}", str(host_path), *numbers)

    def files(self) -> DriverFiles:
        """Everything but the GPUs' own nodes, read anew. Raises DriverNotReady, NodeFault."""
        nodes = (self.node(name) for name in CONTROL_NODES)
        return DriverFiles(
            nodes=tuple(node for node in nodes if node is not None),
            mounts=(*self._libraries(), *self._binaries(), *self._daemon()),
        )

    def resolve(self, relative: str) -> Path:
        """Follow the links of a path inside the root; its last parts need not exist."""
        return self._root.resolve(relative)

    def _required(self, folders: tuple[rooted.Parts, ...], soname: str) -> Path:
        found = self._in_folders(folders, soname)
        if found is None:
            raise DriverNotReady(
                "find", f"{self.path}/**/{soname}", "the NVIDIA driver is not installed there (yet)"
            )
        return found

    def _in_folders(self, folders: tuple[rooted.Parts, ...], soname: str) -> Path | None:
        found = (self._root.resolve(soname, folder) for folder in folders)
        return next((path for path in found if path.is_file()), None)

    def _libraries(self) -> Iterator[template.Mount]:
        """Without a hook nobody runs ldconfig: each file is given under every name it goes by."""
        folder, folders = "", self._root.library_folders()
        for soname in (CUDA_LIBRARY, NVML_LIBRARY):
            real = self._required(folders, soname)
            folder = folder or f"/usr/lib/{_triplet(real)}"
            yield from _under_names(real, folder, (real.name, soname))
            if soname == CUDA_LIBRARY:
                yield from _under_names(real, folder, ("libcuda.so",))
        for soname in OPTIONAL_LIBRARIES:
            if (found := self._in_folders(folders, soname)) is not None:
                yield from _under_names(found, folder, (found.name, soname))

    def _binaries(self) -> Iterator[template.Mount]:
        for name in BINARIES:
            real = self.resolve(name)
            if real.is_file():
                yield template.Mount(str(real), f"/{name}", _FILE_OPTIONS)

    def _daemon(self) -> Iterator[template.Mount]:
        real = self.resolve(DAEMON_FOLDER)
        if real.is_dir():
            yield template.Mount(str(real), f"/{DAEMON_FOLDER}", _FOLDER_OPTIONS)


def _under_names(real: Path, folder: str, names: tuple[str, ...]) -> Iterator[template.Mount]:
    for name in dict.fromkeys(names):
        yield template.Mount(str(real), f"{folder}/{name}", _FILE_OPTIONS)


def _triplet(library: Path) -> str:
    folder = library.parent.name
    return folder if folder.endswith("-linux-gnu") else f"{platform.machine()}-linux-gnu"
