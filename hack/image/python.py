"""The Python that runs this, laid out as in an image, and the shared libraries that it takes.

Its prefix becomes /usr/local. Shared libraries of the system keep their paths, where the loader
finds them; others come to /usr/local/lib, for which LD_LIBRARY_PATH is set.
"""

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from hack import debian
from hack.cluster import errors, shell
from hack.image import oci

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_PREFIX = Path("usr/local")
_LIBRARY = _PREFIX / "lib" / VERSION
PACKAGES = _LIBRARY / "site-packages"
_LEFT_OUT = (
    "__pycache__",
    "_test*",
    "_tkinter.*",
    "config-*",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
)
_SYSTEM = ("lib", "lib64", "usr")
_OTHERS = _PREFIX / "lib"
_LINKED = re.compile(r"(?:^|=> )\s*(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)


def stage(root: Path) -> None:
    """Copy the interpreter and its standard library below `root`."""
    shutil.copytree(
        sysconfig.get_path("stdlib"), root / _LIBRARY, ignore=shutil.ignore_patterns(*_LEFT_OUT)
    )
    programs = root / _PREFIX / "bin"
    programs.mkdir(parents=True)
    shutil.copy2(Path(sys.executable).resolve(), programs / VERSION)
    for name in ("python3", "python"):
        (programs / name).symlink_to(VERSION)


def compile_all(root: Path, folders: Sequence[Path] = (_LIBRARY,)) -> None:
    """Bytecode that is taken as it is: files of an image have no date, and none is written there.

    It names the files by their paths in the image.
    """
    paths = [str(root / folder) for folder in folders]
    flags = ("-q", "-j0", "--invalidation-mode=unchecked-hash", "-s", str(root), "-p", "/")
    beside = {name: text for name, text in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    # Some packages carry templates and tests that are no Python of this version.
    shell.run((sys.executable, "-m", "compileall", *flags, *paths), env=beside, ends=(0, 1))


def entries(root: Path) -> Iterator[oci.Entry]:
    """Everything below `root`, and the shared libraries of the machine that it is linked to."""
    linked: set[str] = set()
    for entry in files(root):
        yield entry
        if isinstance(entry.content, Path):
            linked |= _linked(entry.content)
    libraries = [path for path in map(Path, sorted(linked)) if not path.is_relative_to(root)]
    for path in libraries:
        system = path.parts[1] in _SYSTEM
        yield oci.Entry(str(path)[1:] if system else f"{_OTHERS}/{path.name}", path.resolve())
    yield from _records([path for path in libraries if path.parts[1] in _SYSTEM])


def _records(libraries: Sequence[Path]) -> Iterator[oci.Entry]:
    """Say which packages of the machine's system these are of, for scanners; of Debian's alone."""
    owners = debian.owners(libraries)
    for name, fields in owners.items():
        yield oci.Entry(f"{debian.RECORDS}/{name}", fields.encode(), 0o644)
    if owners:
        yield oci.Entry(str(debian.RELEASE), Path("/etc/os-release").resolve(), 0o644)
        yield oci.Entry("etc/os-release", f"../{debian.RELEASE}")


def files(root: Path) -> Iterator[oci.Entry]:
    """Everything below `root`, which its owner may write and everybody read."""
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            yield oci.Entry(name, str(path.readlink()))
        elif path.is_file():
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            yield oci.Entry(name, path, mode)


def _linked(path: Path) -> set[str]:
    """The libraries of a program or module, the loader among them; none of another file."""
    with path.open("rb") as source:
        if source.read(4) != b"\x7fELF":
            return set()
    try:
        return set(_LINKED.findall(shell.run(("ldd", str(path)))))
    except errors.CommandFailedError:
        return set()  # linked to nothing
