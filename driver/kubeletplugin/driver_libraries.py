"""The driver's shared libraries: which there are, and every name that programs ask for them by.

They lie in the folders of libcuda and NVML and in `vdpau` there, and end in the driver's version,
as its installer names them (NV-1). X's modules lie in folders of X.
"""

import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from driver.kubeletplugin import driver_root
from driver.kubeletplugin.cdi import allow

_OWN_VERSION = re.compile(
    r"libnvidia-nvvm70\.so\.[0-9.]+"
    r"|libnvidia-egl-(?:gbm|wayland|wayland2|xcb|xlib)\.so\.[0-9]+(?:\.[0-9]+)+"
)
"""Those with a version of their own."""
_VERSION = re.compile(r"\.so\.([0-9]+(?:\.[0-9]+)+)$")
_SONAME = re.compile(r".+\.so\.[0-9]+")
_FILE = ""
"""As a link's target: the library's file itself."""
_USUAL = {
    "libcuda.so": (("libcuda.so.1", _FILE), ("libcuda.so", "libcuda.so.1")),
    "libnvidia-ml.so": (("libnvidia-ml.so.1", _FILE),),
    "libGLX_nvidia.so": (("libGLX_indirect.so.0", _FILE),),
    "libnvidia-opticalflow.so": (("libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1"),),
    "libnvidia-allocator.so": (("gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1"),),
    "libnvidia-vulkan-producer.so": (("libnvidia-vulkan-producer.so", _FILE),),
    "libglxserver_nvidia.so": (("libglxserver_nvidia.so", _FILE),),
}
"""Names that programs ask for whether or not the host has them: (name, what it points to)."""
_X_FOLDERS = (
    "nvidia/xorg",
    *(f"xorg/modules/{x}" for x in ("drivers", "extensions", "updates/drivers")),
    "xorg/modules/updates/extensions",
)


@dataclass(frozen=True, slots=True)
class Library:
    """A file of the driver, its name in a container's folder, and the links to it there.

    `links` are (name, target), relative to `folder`; a name may have a folder of its own in it.
    """

    real: Path
    name: str
    folder: str
    links: tuple[tuple[str, str], ...]

    @property
    def subfolder(self) -> str:
        """Of the loader's folder: VDPAU's drivers have one."""
        return "/vdpau" if self.folder.endswith("/vdpau") else ""

    @property
    def is_of_x(self) -> bool:
        """Whether X loads it from a folder of its own: it is none of the loader's."""
        return "/modules/" in self.folder or self.folder.endswith("/xorg")


@dataclass(frozen=True, slots=True)
class Libraries:
    """All of a driver's, of one version; `cuda` is the folder of libcuda in a container.

    `loader` is where a container's own loader looks, for those who cannot have it told. `folders`
    of the host were looked at, whether they exist or not.
    """

    version: str
    cuda: str
    loader: str
    all: tuple[Library, ...]
    folders: tuple[Path, ...]


def find(root: driver_root.DriverRoot) -> Libraries:
    """Look for them. Raises DriverNotReady, NodeFault."""
    cuda = root.require(driver_root.CUDA_LIBRARY)
    nvml = root.require(driver_root.NVML_LIBRARY)
    version = _version(cuda) or _version(nvml)
    if not version:
        raise driver_root.DriverNotReady("read", str(cuda), "its name has no driver's version")
    parents = tuple(dict.fromkeys((cuda.parent, nvml.parent)))
    plain = (*parents, *(parent / "vdpau" for parent in parents))
    inside = (str(cuda.parent.relative_to(root.path)), "usr/lib", "usr/lib64")
    of_x = tuple(root.resolve(f"{place}/{folder}") for place in inside for folder in _X_FOLDERS)
    search = _Search(root, f"/usr/lib/{_triplet(cuda)}", version)
    own = tuple(search.libraries(plain, search.is_library))
    for path in {cuda, nvml} - {one.real for one in own}:
        expected = f"is no file of version {version}, as libcuda or NVML is; an upgrade at work?"
        raise driver_root.DriverNotReady("use", str(path), expected)
    every = (*own, *search.libraries(of_x, search.is_module))
    return Libraries(version, search.folder(cuda), search.loader, every, (*plain, *of_x))


class _Search:
    """For the libraries of one version, in folders that are followed already."""

    def __init__(self, root: driver_root.DriverRoot, loader: str, version: str) -> None:
        self.loader = loader
        self._root = root
        self._version = version

    def is_library(self, name: str) -> bool:
        return name.endswith(f".so.{self._version}") or _OWN_VERSION.fullmatch(name) is not None

    def is_module(self, name: str) -> bool:
        return name in {"nvidia_drv.so", f"libglxserver_nvidia.so.{self._version}"}

    def libraries(
        self, folders: tuple[Path, ...], wanted: Callable[[str], bool]
    ) -> Iterator[Library]:
        """The first folder that has a name wins; names that are no file's of the driver do not."""
        seen: set[str] = set()
        beside = ((folder, names) for folder in folders for names in _by_stem(folder).values())
        for folder, names in beside:
            for name in filter(wanted, names):
                found = None if name in seen else self._library(folder / name, names)
                if found is not None:
                    seen.add(name)
                    yield found

    def folder(self, path: Path) -> str:
        """Where a library of the host goes: the same folder, or the loader's if that is odd."""
        own = f"/{path.parent.relative_to(self._root.path)}"
        return own if allow.is_place(f"{own}/{path.name}") else self.loader

    def _library(self, path: Path, names: list[str]) -> Library | None:
        name, folder = path.name, self.folder(path)
        real = self._file(path)
        if real is None or not allow.is_place(f"{folder}/{name}"):
            return None
        own = [one for one in names if one != name and self._file(path.parent / one) == real]
        soname = next((one for one in own if _SONAME.fullmatch(one)), name)
        links = {one: soname if one.endswith(".so") else name for one in own}
        links |= {link: target or name for link, target in _USUAL.get(_stem(name), ())}
        fit = ((link, to) for link, to in links.items() if allow.is_place(f"{folder}/{link}"))
        return Library(real, name, folder, tuple(fit))

    def _file(self, path: Path) -> Path | None:
        return self._root.file(str(path.relative_to(self._root.path)))


def _by_stem(folder: Path) -> dict[str, list[str]]:
    """The libraries' names in a folder, in order, by what comes before their versions."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed
    except OSError:
        return {}
    found: dict[str, list[str]] = {}
    for name in names:
        if ".so" in name:
            found.setdefault(_stem(name), []).append(name)
    return found


def _stem(name: str) -> str:
    return f"{name.partition('.so')[0]}.so"


def _version(path: Path) -> str:
    found = _VERSION.search(path.name)
    return found.group(1) if found else ""


def _triplet(library: Path) -> str:
    found = (part for part in reversed(library.parts) if part.endswith("-linux-gnu"))
    return next(found, f"{platform.machine()}-linux-gnu")
