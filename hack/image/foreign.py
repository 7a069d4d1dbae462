"""Python for a processor that is not this machine's: Debian's packages, unpacked and not run here.

Of Debian's releases the one is taken whose Python is of this machine's minor version: bytecode is
compiled by the one and read by the other.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hack import debian
from hack.cluster import errors
from hack.image import oci, python

SUITES: Final = {"python3.11": "bookworm", "python3.13": "trixie"}
PACKAGES: Final = Path("usr/local/lib") / python.VERSION / "dist-packages"
"""Where Debian's Python looks first for what is none of Debian's."""
PROCESSORS: Final = {"amd64": "x86_64", "arm64": "aarch64"}
"""As wheels name them, by the names of Go."""
COMPILED: Final = (Path("usr/lib") / python.VERSION, PACKAGES)
_NEEDED: Final = (python.VERSION, "libstdc++6")
PRESENT: Final = ("dpkg", "tar", "mawk")
"""They serve the scripts of packages, of which none is run."""
_IDENTITY: Final = "base-files"
"""Has the file that says which release of Debian it is, of which it alone is taken."""
_LEFT_OUT: Final = ("usr/share/doc/", "usr/share/man/", "usr/share/lintian/", "usr/share/locale/")


def suite() -> str:
    """Name the release of Debian. Raises ClusterError where none has this Python."""
    try:
        return SUITES[python.VERSION]
    except KeyError:
        expected = " or ".join(SUITES)
        raise errors.ClusterError(
            f"an image for another processor takes {expected}, and this is {python.VERSION}"
        ) from None


def wheels(architecture: str) -> tuple[str, ...]:
    """Name the processor and the Python to uv; wheels alone, for nothing can be built here."""
    platform = f"--python-platform={PROCESSORS[architecture]}-manylinux_2_28"
    version = f"--python-version={sys.version_info.major}.{sys.version_info.minor}"
    return platform, version, "--only-binary=:all:"


def stage(root: Path, architecture: str) -> None:
    """Lay out the interpreter and all that it needs below `root`. Raises ClusterError."""
    with tempfile.TemporaryDirectory(prefix="ration-debian-") as work:
        release = debian.Release(suite(), architecture, present=PRESENT)
        for file in debian.Archive(release, Path(work)).closure((*_NEEDED, _IDENTITY)):
            fields = debian.control(file)
            name = fields.partition("\n")[0].removeprefix("Package: ")
            record = root / debian.RECORDS / name
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(fields)
            if name == _IDENTITY:
                _take_identity(file, root)
            else:
                debian.unpack(file, root)
    if not (root / "lib").exists():
        (root / "lib").symlink_to("usr/lib")
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True)
    for name in ("python3", "python"):
        (programs / name).symlink_to(f"../../bin/{python.VERSION}")


def entries(root: Path) -> Iterator[oci.Entry]:
    """Everything below `root` but for what only people read."""
    return (entry for entry in python.files(root) if not entry.name.startswith(_LEFT_OUT))


def _take_identity(file: Path, root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ration-debian-") as scratch:
        debian.unpack(file, Path(scratch))
        (root / debian.RELEASE).parent.mkdir(parents=True, exist_ok=True)
        (root / debian.RELEASE).write_bytes((Path(scratch) / debian.RELEASE).read_bytes())
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/os-release").symlink_to(f"../{debian.RELEASE}")
