"""NVIDIA's real programs on the libc of their own system: pinned Debian packages in the cache.

The package manager fetches them when asked, into lists and folders of its own in the cache: nothing
of the machine's settings or packages is changed. Where its mirror lies is what the machine says.
"""

import functools
import hashlib
import platform
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pydantic

from hack import debian
from hack.cluster import errors, shell, toolchain, versions

FILE: Final = Path(__file__).with_name("packages.toml")
DRIVER: Final = "nvidia"
"""In the cache: folders of packages, one for each system."""
PROGRAMS: Final = (
    ("nvidia-smi", "usr/lib/nvidia/current/nvidia-smi"),
    ("nvidia-cuda-mps", "usr/bin/nvidia-cuda-mps-control"),
    ("nvidia-cuda-mps", "usr/sbin/nvidia-cuda-mps-server"),
)
LIBRARIES: Final = (
    ("libnvidia-ml1", "usr/lib/*/nvidia/current/libnvidia-ml.so.*.*"),
    ("libcuda1", "usr/lib/*/nvidia/current/libcuda.so.*.*"),
)
"""(package, the one file in it)."""
_MERGED = ("bin", "lib", "lib64", "sbin")
"""Links into usr, which Debian's systems have and no package of those."""
_MACHINE = "x86_64"
_ARCHITECTURE = "amd64"


class Package(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A package of exactly this content."""

    version: str
    sha256: str


class System(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A Debian system: its suite, the versions of its libc and of the driver, its packages."""

    suite: str
    libc: str
    driver: str
    packages: Mapping[str, Package]


@functools.cache
def systems() -> Mapping[str, System]:
    """All that are pinned, by name."""
    pinned = tomllib.loads(FILE.read_text())["systems"]
    return {name: System.model_validate(fields) for name, fields in pinned.items()}


def folder(name: str) -> Path:
    """The folder of a system's packages, unpacked, whether or not it is there.

    It has one folder for each package, and is not to be written to.
    """
    system = systems()[name]
    pins = (f"{package}={pin.version}:{pin.sha256}" for package, pin in system.packages.items())
    key = versions.cache_key([" ".join(sorted(pins)).encode()])
    return toolchain.cache_root() / DRIVER / f"{name}-{key}"


def fetch(name: str) -> Path:
    """Have a system's packages in the cache. Raises ClusterError, whose text says why not."""
    if platform.machine() != _MACHINE:
        raise errors.ClusterError(f"this machine is no {_MACHINE}, which the pins are for")
    return toolchain.keep(folder(name), functools.partial(_fetch, systems()[name]))


def _fetch(system: System, to: Path) -> None:
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".apt-") as made:
        release = debian.Release(system.suite, _ARCHITECTURE, "main non-free")
        archive = debian.Archive(release, Path(made))
        for name, pin in system.packages.items():
            file = archive.download(name, pin.version)
            verify(file, pin)
            debian.unpack(file, to / name)


def verify(archive: Path, pin: Package) -> None:
    """Raise ClusterError for an archive whose content is not the pinned one."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != pin.sha256:
        raise errors.ClusterError(f"{archive.name} is {digest}, and {pin.sha256} is pinned")


def lay_system(name: str, root: Path) -> None:
    """Lay out the loader and the libc of a system below `root`. Raises ClusterError."""
    for part in _MERGED:
        (root / "usr" / part).mkdir(parents=True, exist_ok=True)
        if not (root / part).is_symlink():
            (root / part).symlink_to(f"usr/{part}")
    for source in sorted(_unpacked(name, "libc6").iterdir()):
        target = root / ("usr" if source.name in _MERGED else "") / source.name
        target.mkdir(parents=True, exist_ok=True)
        shell.run(("cp", "-a", "--no-target-directory", str(source), str(target)))


def lay_driver(name: str, root: Path, programs: str, libraries: str) -> None:
    """Lay out the driver of a system below `root`, in these folders. Raises ClusterError."""
    for place, files in ((programs, PROGRAMS), (libraries, LIBRARIES)):
        (root / place).mkdir(parents=True, exist_ok=True)
        for package, pattern in files:
            (source,) = _unpacked(name, package).glob(pattern)
            shutil.copy(source, root / place)
            if ".so." in source.name:
                link = root / place / f"{source.name.partition('.so.')[0]}.so.1"
                link.symlink_to(source.name)


def _unpacked(name: str, package: str) -> Path:
    if not folder(name).is_dir():
        raise errors.ClusterError(f"the packages of {name} are not here: make real-programs")
    return folder(name) / package
