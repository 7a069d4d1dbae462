"""Build the driver's image archive, or take it from the cache."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hack.cluster import control, layout, network, releases, shell, toolchain, versions
from hack.image import foreign, oci, python

CHECKOUT = Path(__file__).resolve().parents[2]
USER = "65532:65532"
_ENVIRONMENT = (
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LD_LIBRARY_PATH=/usr/local/lib",
    "PYTHONUNBUFFERED=1",
    "PYTHONDONTWRITEBYTECODE=1",
    *(f"{name}={value}" for name, value in control.MALLOC.items()),
)
_KEPT = 3
"""Archives of one name: checkouts side by side do not take each other's away."""
LOCK = Path("requirements") / "runtime.lock"
LEFT_OUT = Path("deploy") / "images" / "left-out"
"""Paths below the folder of packages, one a line; `#` begins a comment."""
_ACCOUNTS = "root:x:0:0:root:/:/sbin/nologin\nration:x:65532:65532:ration:/:/sbin/nologin\n"
_GROUPS = "root:x:0:\nration:x:65532:\n"
_NAMES = "passwd: files\ngroup: files\nhosts: files dns\n"


def ensure(name: str, checkout: Path = CHECKOUT) -> Path:
    """The archive of a checkout's driver under that image name; the last few of a name are kept."""
    folder = toolchain.cache_root() / "images"
    stem = f"driver-{versions.cache_key([name.encode()])}"
    path = folder / f"{stem}-{_key(checkout)}.tar"
    with toolchain.lock(toolchain.cache_root() / "driver-image.lock"):
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            archives = sorted(folder.glob(f"{stem}-*.tar"), key=lambda one: one.stat().st_mtime)
            for old in archives[: -_KEPT + 1]:
                old.unlink()
            part = path.with_suffix(".part")
            write(part, name, checkout)
            part.rename(path)
    return path


def write(path: Path, name: str, checkout: Path = CHECKOUT, architecture: str = "") -> str:
    """Write the archive of a checkout's driver; return its digest.

    `architecture` is Go's name of a processor; empty: this machine's. Raises ClusterError.
    """
    with staged(checkout, architecture) as files:
        return write_files(path, name, files, architecture)


def write_files(path: Path, name: str, files: Sequence[oci.Entry], architecture: str = "") -> str:
    """Write the archive of files that `staged` gave; return its digest."""
    image = oci.Image(
        name,
        architecture or releases.architecture(),
        ("python", "-m", "driver.cli"),
        _ENVIRONMENT,
        USER,
        {"org.opencontainers.image.title": "ration"},
    )
    return oci.write(path, image, [*files, oci.Entry("tmp/", mode=0o1777)])


@contextlib.contextmanager
def staged(checkout: Path = CHECKOUT, architecture: str = "") -> Iterator[tuple[oci.Entry, ...]]:
    """Stage Python, the locked packages and the driver as files of an image, until the exit."""
    with tempfile.TemporaryDirectory(prefix="ration-image-") as scratch:
        root = Path(scratch)
        if architecture in ("", releases.architecture()):
            python.stage(root)
            _install(root / python.PACKAGES, checkout)
            python.compile_all(root)
            _system(root)
            yield tuple(python.entries(root))
        else:
            foreign.stage(root, architecture)
            _install(root / foreign.PACKAGES, checkout, foreign.wheels(architecture))
            python.compile_all(root, foreign.COMPILED)
            _system(root)
            yield tuple(foreign.entries(root))


def _install(packages: Path, checkout: Path, platform: Sequence[str] = ()) -> None:
    """Install the locked dependencies, by their hashes and but for `LEFT_OUT`, and the driver."""
    uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(packages))
    install = network.outside(layout.Layout(CHECKOUT), uv)
    lock = ("--require-hashes", "--requirement", str(checkout / LOCK))
    shell.run((*install, *platform, *lock))
    for name in left_out(checkout):
        shutil.rmtree(packages / name)
    shell.run((*install, "--no-deps", "--no-build-isolation", str(checkout)))
    (packages / ".lock").unlink(missing_ok=True)  # uv's own


def left_out(checkout: Path = CHECKOUT) -> tuple[str, ...]:
    """Read `LEFT_OUT` of a checkout."""
    lines = (checkout / LEFT_OUT).read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _system(root: Path) -> None:
    etc = root / "etc"
    etc.mkdir(exist_ok=True)
    for name, text in {"passwd": _ACCOUNTS, "group": _GROUPS, "nsswitch.conf": _NAMES}.items():
        (etc / name).write_text(text)


def _key(checkout: Path) -> str:
    """Changes with the driver's files, the lock, the interpreter and this room."""
    own = CHECKOUT / "hack" / "image"
    sources = {
        checkout: [
            *sorted(_packaged(checkout / "driver")),
            checkout / "pyproject.toml",
            checkout / LOCK,
            checkout / LEFT_OUT,
        ],
        own: sorted(own.glob("*.py")),
    }
    parts = [sys.version.encode(), os.uname().machine.encode()]
    for root, paths in sources.items():
        for path in paths:
            parts += [str(path.relative_to(root)).encode(), path.read_bytes()]
    return versions.cache_key(parts)


def _packaged(folder: Path) -> Iterator[Path]:
    """Its files but for bytecode: templates and what the page sends beside the modules."""
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
