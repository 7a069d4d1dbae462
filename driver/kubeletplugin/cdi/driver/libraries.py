"""The driver's shared libraries, with each name under which programs load them.

They are in the folders of libcuda and NVML and in `vdpau` there, and end in the driver's version,
as its installer names them (NV-1). X's modules are in folders of X.
"""

import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from driver.kubeletplugin.cdi import allow
from driver.kubeletplugin.host import driver_root

_OWN_VERSION = re.compile(
    r"libnvidia-nvvm70\.so\.[0-9.]+"
    r"|libnvidia-egl-(?:gbm|wayland|wayland2|xcb|xlib)\.so\.[0-9]+(?:\.[0-9]+)+"
)
"""Libraries with a version of their own."""
_VERSION = re.compile(r"\.so\.([0-9]+(?:\.[0-9]+)+)$")
_SONAME = re.compile(r".+\.so\.[0-9]+")
_FILE = ""
"""Link target that stands for the library's file itself."""
_USUAL = {
    "libcuda.so": (("libcuda.so.1", _FILE), ("libcuda.so", "libcuda.so.1")),
    "libnvidia-ml.so": (("libnvidia-ml.so.1", _FILE),),
    "libGLX_nvidia.so": (("libGLX_indirect.so.0", _FILE),),
    "libnvidia-opticalflow.so": (("libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1"),),
    "libnvidia-allocator.so": (("gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1"),),
    "libnvidia-vulkan-producer.so": (("libnvidia-vulkan-producer.so", _FILE),),
    "libglxserver_nvidia.so": (("libglxserver_nvidia.so", _FILE),),
}
"""Names under which programs load them, even if the host lacks the links: (name, target)."""
_X_FOLDERS = (
    "nvidia/xorg",
    *(f"xorg/modules/{x}" for x in ("drivers", "extensions", "updates/drivers")),
    "xorg/modules/updates/extensions",
)


@dataclass(frozen=True, slots=True)
class Library:
    """A driver file, its name in a container's folder, and the links to it there.

    `links` are (name, target), relative to `folder`; a name may have a subfolder.
    """

    real: Path
    name: str
    folder: str
    links: tuple[tuple[str, str], ...]

    @property
    def subfolder(self) -> str:
        """Return the subfolder of the loader's folder, used by VDPAU's drivers."""
        return "/vdpau" if self.folder.endswith("/vdpau") else ""

    @property
    def is_x_module(self) -> bool:
        """Return whether X loads it from a folder of its own, not the loader's."""
        return "/modules/" in self.folder or self.folder.endswith("/xorg")


@dataclass(frozen=True, slots=True)
class Libraries:
    """All libraries of a driver version; `cuda` is libcuda's folder in a container.

    `loader` is the folder that a container's loader searches by default. `folders` of the host were
    searched, whether they exist or not.
    """

    version: str
    cuda: str
    loader: str
    all: tuple[Library, ...]
    folders: tuple[Path, ...]


def find_libraries(root: driver_root.DriverRoot) -> Libraries:
    """Find the driver's libraries. Raises DriverNotReady, NodeFault."""
    cuda = root.require(driver_root.CUDA_LIBRARY)
    nvml = root.require(driver_root.NVML_LIBRARY)
    version = _version(cuda) or _version(nvml)
    if not version:
        raise driver_root.DriverNotReady("read", str(cuda), "its name has no driver's version")
    parents = tuple(dict.fromkeys((cuda.parent, nvml.parent)))
    plain = (*parents, *(parent / "vdpau" for parent in parents))
    inside = (str(cuda.parent.relative_to(root.path)), "usr/lib", "usr/lib64")
    of_x = tuple(root.resolve(f"{base}/{folder}") for base in inside for folder in _X_FOLDERS)
    search = _Search(root, f"/usr/lib/{_triplet(cuda)}", version)
    matching = tuple(search.libraries(plain, search.is_library))
    for path in {cuda, nvml} - {library.real for library in matching}:
        expected = f"is no file of version {version}, as libcuda or NVML is; an upgrade at work?"
        raise driver_root.DriverNotReady("use", str(path), expected)
    every = (*matching, *search.libraries(of_x, search.is_module))
    return Libraries(version, search.folder(cuda), search.loader, every, (*plain, *of_x))


class _Search:
    """Search for the libraries of one version, in resolved folders."""

    def __init__(self, root: driver_root.DriverRoot, loader: str, version: str) -> None:
        self.loader = loader
        self._root = root
        self._version = version

    def is_library(self, name: str) -> bool:
        return name.endswith(f".so.{self._version}") or _OWN_VERSION.fullmatch(name) is not None

    def is_module(self, name: str) -> bool:
        return name in {"nvidia_drv.so", f"libglxserver_nvidia.so.{self._version}"}

    def libraries(
        self, folders: tuple[Path, ...], matches: Callable[[str], bool]
    ) -> Iterator[Library]:
        """Yield libraries; the first folder that has a name wins, dangling names are skipped."""
        yielded: set[str] = set()
        candidates = ((folder, names) for folder in folders for names in _by_stem(folder).values())
        for folder, names in candidates:
            for name in filter(matches, names):
                library = None if name in yielded else self._library(folder / name, names)
                if library is not None:
                    yielded.add(name)
                    yield library

    def folder(self, path: Path) -> str:
        """Return the container folder of a host library: the same, or the loader's."""
        folder = f"/{path.parent.relative_to(self._root.path)}"
        return folder if allow.is_driver_path(f"{folder}/{path.name}") else self.loader

    def _library(self, path: Path, names: list[str]) -> Library | None:
        name, folder = path.name, self.folder(path)
        real = self._file(path)
        if real is None or not allow.is_driver_path(f"{folder}/{name}"):
            return None
        links_to_file = [
            link for link in names if link != name and self._file(path.parent / link) == real
        ]
        soname = next((link for link in links_to_file if _SONAME.fullmatch(link)), name)
        links = {link: soname if link.endswith(".so") else name for link in links_to_file}
        links |= {link: target or name for link, target in _USUAL.get(_stem(name), ())}
        fit = (
            (link, target)
            for link, target in links.items()
            if allow.is_driver_path(f"{folder}/{link}")
        )
        return Library(real, name, folder, tuple(fit))

    def _file(self, path: Path) -> Path | None:
        return self._root.file(str(path.relative_to(self._root.path)))


def _by_stem(folder: Path) -> dict[str, list[str]]:
    """Return the sorted library names in a folder, by the part before their versions."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed
    except OSError:
        return {}
    by_stem: dict[str, list[str]] = {}
    for name in names:
        if ".so" in name:
            by_stem.setdefault(_stem(name), []).append(name)
    return by_stem


def _stem(name: str) -> str:
    return f"{name.partition('.so')[0]}.so"


def _version(path: Path) -> str:
    match = _VERSION.search(path.name)
    return match.group(1) if match else ""


def _triplet(library: Path) -> str:
    triplets = (part for part in reversed(library.parts) if part.endswith("-linux-gnu"))
    return next(triplets, f"{platform.machine()}-linux-gnu")
