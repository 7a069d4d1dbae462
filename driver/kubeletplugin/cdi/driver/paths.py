"""The driver's other files, each at the path where programs in a container look for it.

Existing files are mounted; missing ones are ignored (NV-1).
"""

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

from driver.kubeletplugin.cdi import allow, template
from driver.kubeletplugin.host import driver_root
from driver.runtime.files import root_paths

_BINARIES = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-imex",
    "nvidia-imex-ctl",
    "nvidia-xconfig",
)
"""Without those of MPS: a client needs its daemon's socket only, and commands are for the node."""
_SETTING_FOLDERS = ("etc", "usr/local/share", "usr/share")
_SHARED = (
    "glvnd/egl_vendor.d/10_nvidia.json",
    "egl/egl_external_platform.d/15_nvidia_gbm.json",
    "egl/egl_external_platform.d/10_nvidia_wayland.json",
    "egl/egl_external_platform.d/09_nvidia_wayland2.json",
    "egl/egl_external_platform.d/20_nvidia_xcb.json",
    "egl/egl_external_platform.d/20_nvidia_xlib.json",
    "nvidia/nvoptix.bin",
    "X11/xorg.conf.d/10-nvidia.conf",
    "X11/xorg.conf.d/nvidia-drm-outputclass.conf",
)
_LOCAL = (
    "OpenCL/vendors/nvidia.icd",
    "vulkan/icd.d/nvidia_icd.json",
    "vulkan/icd.d/nvidia_icd.x86_64.json",
    "vulkan/icd.d/nvidia_icd.aarch64.json",
    "vulkan/icd.d/nvidia_layers.json",
    "vulkan/implicit_layer.d/nvidia_layers.json",
)
_SETTINGS = (
    *((f"/usr/share/{name}", _SETTING_FOLDERS, name) for name in _SHARED),
    *((f"/etc/{name}", (*_SETTING_FOLDERS, ""), name) for name in _LOCAL),
)
"""(container path, searched folders of the root, name); Google's images have Vulkan's files right
under the root.
"""
_DAEMONS = ("run/nvidia-persistenced", "run/nvidia-fabricmanager")
"""Folders with a `socket` for clients. Fabric Manager's own channels are beside it."""
_FIRMWARE = ("gsp*.bin", "ucodes*.bin")
_FIRMWARE_SETTING = "sys/module/firmware_class/parameters/path"
_FILE_OPTIONS = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_SOCKET_OPTIONS = (*_FILE_OPTIONS, "noexec")


class DriverPaths:
    """Files of the driver `version` under `root`; `host` has /sys."""

    def __init__(self, root: driver_root.DriverRoot, host: root_paths.Root, version: str) -> None:
        self._root = root
        self._host = host
        self._version = version

    def search_folders(self) -> tuple[Path, ...]:
        """Return the searched folders, whether they exist or not. Raises NodeFault."""
        setting_folders = {
            f"{folder}/{name}".rpartition("/")[0]
            for _, folders, name in _SETTINGS
            for folder in folders
        }
        names = (
            *root_paths.PROGRAM_FOLDERS,
            *sorted(setting_folders),
            *_DAEMONS,
            *self._firmware_folders(),
        )
        return tuple(dict.fromkeys(map(self._root.resolve, names)))

    def mounts(self) -> Iterator[template.Mount]:
        """Yield the mounts of existing files. Raises NodeFault."""
        for name in _BINARIES:
            yield from self._first_mount(
                f"/usr/bin/{name}", (f"{folder}/{name}" for folder in root_paths.PROGRAM_FOLDERS)
            )
        for target, folders, name in _SETTINGS:
            yield from self._first_mount(target, (f"{folder}/{name}" for folder in folders))
        for name in _DAEMONS:
            if (real := self._root.resolve(f"{name}/socket")).is_socket():
                yield template.Mount(str(real), f"/{name}/socket", _SOCKET_OPTIONS)
        for real in self._firmware_files():
            target = f"/lib/firmware/nvidia/{self._version}/{real.name}"
            if allow.is_driver_path(target):
                yield file_mount(real, target)

    def _first_mount(self, target: str, candidates: Iterator[str]) -> Iterator[template.Mount]:
        real = next(filter(None, map(self._root.file, candidates)), None)
        if real is not None:
            yield file_mount(real, target)

    def _firmware_folders(self) -> tuple[str, ...]:
        """Return the kernel's firmware folders in its order, each with our version's subfolder."""
        release = os.uname().release
        usual = ("updates/" + release, "updates", release, ".")
        try:
            setting = self._host.resolve(_FIRMWARE_SETTING).read_text().strip()
        except (OSError, UnicodeDecodeError):
            setting = ""
        configured = setting.removeprefix(self._root.host_path(str(self._root.path)).rstrip("/"))
        folders = (
            *([configured] if configured else []),
            *(f"lib/firmware/{name}" for name in usual),
        )
        return tuple(f"{folder}/nvidia/{self._version}" for folder in folders)

    def _firmware_files(self) -> list[Path]:
        for folder in map(self._root.resolve, self._firmware_folders()):
            try:
                names = sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed
            except OSError:
                continue
            matching = [
                file_name
                for file_name in names
                if any(fnmatch.fnmatch(file_name, p) for p in _FIRMWARE)
            ]
            if matching:
                inside = folder.relative_to(self._root.path)
                files = (self._root.file(f"{inside}/{name}") for name in matching)
                return [path for path in files if path is not None]
        return []


def file_mount(real: Path, target: str) -> template.Mount:
    """Return the read-only mount of a host file at a container path."""
    return template.Mount(str(real), target, _FILE_OPTIONS)
