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
_TOOLS = ("apt-get", "dpkg-deb")
_ARCHITECTURE = "x86_64"
_DOWNLOAD_S = 300.0


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
    lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if lacking:
        raise errors.ClusterError(f"this machine has no {' and no '.join(lacking)}")
    if platform.machine() != _ARCHITECTURE:
        raise errors.ClusterError(f"this machine is no {_ARCHITECTURE}, which the pins are for")
    return toolchain.keep(folder(name), functools.partial(_fetch, systems()[name]))


def _fetch(system: System, to: Path) -> None:
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".apt-") as made:
        options = _options(Path(made), system.suite)
        _apt("update", "-qq", options=options, cwd=Path(made))
        for name, pin in system.packages.items():
            _apt("download", "-qq", f"{name}={pin.version}", options=options, cwd=Path(made))
            (archive,) = Path(made).glob(f"{name}_*.deb")
            verify(archive, pin)
            shell.run(("dpkg-deb", "--extract", str(archive), str(to / name)))


def _options(work: Path, suite: str) -> tuple[str, ...]:
    """Of apt: a list of sources, caches and states below `work`, and none of the machine's."""
    uri, keys = _mirror()
    listed = work / "sources.list"
    listed.write_text(f"deb [signed-by={keys}] {uri} {suite} main non-free\n")
    for part in ("lists/partial", "cache/archives/partial"):
        (work / part).mkdir(parents=True)
    settings = {
        "Dir::Etc::SourceList": listed,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": work / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": work / "cache",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
    }
    return tuple(f"--option={name}={value}" for name, value in settings.items())


def _mirror() -> tuple[str, str]:
    """The machine's own mirror of Debian, and the keys that its lists are signed with."""
    words = "$(REPO_URI) $(ORIGIN) $(LABEL)"
    text = shell.run(("apt-get", "indextargets", "--format", words, "Created-By: Packages"))
    for line in text.splitlines():
        uri, *names = line.split()
        if names == ["Debian", "Debian"]:
            return uri, "/usr/share/keyrings/debian-archive-keyring.gpg"
    raise errors.ClusterError("this machine's package manager has no mirror of Debian")


def _apt(*words: str, options: tuple[str, ...], cwd: Path) -> None:
    shell.run(("apt-get", *options, *words), cwd=cwd, timeout=_DOWNLOAD_S)


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
