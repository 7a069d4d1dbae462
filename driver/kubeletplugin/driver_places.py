"""The driver's files beside its libraries, each where programs in a container look for it.

Those that are there are given, the others are not missed (NV-1).
"""

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

from driver.files import rooted
from driver.kubeletplugin import driver_root
from driver.kubeletplugin.cdi import allow, template

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
"""(place in a container, folders of the root to look in, name); Google's images have Vulkan's
right under the root."""
_DAEMONS = ("run/nvidia-persistenced", "run/nvidia-fabricmanager")
"""Folders with a `socket` for clients. Fabric Manager's own channels lie beside it."""
_FIRMWARE = ("gsp*.bin", "ucodes*.bin")
_FIRMWARE_SETTING = "sys/module/firmware_class/parameters/path"
_FILE_OPTIONS = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_SOCKET_OPTIONS = (*_FILE_OPTIONS, "noexec")


class Places:
    """Of the driver of `version` under `root`; `host` has /sys."""

    def __init__(self, root: driver_root.DriverRoot, host: rooted.Root, version: str) -> None:
        self._root = root
        self._host = host
        self._version = version

    def folders(self) -> tuple[Path, ...]:
        """Those that the files are looked for in, whether they exist or not. Raises NodeFault."""
        of_settings = {
            f"{folder}/{name}".rpartition("/")[0]
            for _, folders, name in _SETTINGS
            for folder in folders
        }
        names = (*rooted.PROGRAM_FOLDERS, *sorted(of_settings), *_DAEMONS, *self._firmware())
        return tuple(dict.fromkeys(map(self._root.resolve, names)))

    def mounts(self) -> Iterator[template.Mount]:
        """All that are there. Raises NodeFault."""
        for name in _BINARIES:
            yield from self._first(
                f"/usr/bin/{name}", (f"{at}/{name}" for at in rooted.PROGRAM_FOLDERS)
            )
        for place, folders, name in _SETTINGS:
            yield from self._first(place, (f"{folder}/{name}" for folder in folders))
        for name in _DAEMONS:
            if (real := self._root.resolve(f"{name}/socket")).is_socket():
                yield template.Mount(str(real), f"/{name}/socket", _SOCKET_OPTIONS)
        for real in self._firmware_files():
            place = f"/lib/firmware/nvidia/{self._version}/{real.name}"
            if allow.is_place(place):
                yield file(real, place)

    def _first(self, place: str, candidates: Iterator[str]) -> Iterator[template.Mount]:
        real = next(filter(None, map(self._root.file, candidates)), None)
        if real is not None:
            yield file(real, place)

    def _firmware(self) -> tuple[str, ...]:
        """The kernel's folders of firmware in its order, each with our version's folder."""
        release = os.uname().release
        usual = ("updates/" + release, "updates", release, ".")
        try:
            said = self._host.resolve(_FIRMWARE_SETTING).read_text().strip()
        except (OSError, UnicodeDecodeError):
            said = ""
        own = said.removeprefix(self._root.on_host(str(self._root.path)).rstrip("/"))
        folders = (*([own] if own else []), *(f"lib/firmware/{name}" for name in usual))
        return tuple(f"{folder}/nvidia/{self._version}" for folder in folders)

    def _firmware_files(self) -> list[Path]:
        for folder in map(self._root.resolve, self._firmware()):
            try:
                names = sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed
            except OSError:
                continue
            wanted = [one for one in names if any(fnmatch.fnmatch(one, p) for p in _FIRMWARE)]
            if wanted:
                inside = folder.relative_to(self._root.path)
                found = (self._root.file(f"{inside}/{name}") for name in wanted)
                return [path for path in found if path is not None]
        return []


def file(real: Path, place: str) -> template.Mount:
    """A file of the host, to be read or run at a place in a container."""
    return template.Mount(str(real), place, _FILE_OPTIONS)
