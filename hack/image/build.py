"""Build the driver's image archive, or take it from the cache."""

import os
import sys
import tempfile
from pathlib import Path

from hack.cluster import releases, shell, toolchain, versions
from hack.image import oci, python

CHECKOUT = Path(__file__).resolve().parents[2]
USER = "65532:65532"
_ENVIRONMENT = (
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LD_LIBRARY_PATH=/usr/local/lib",
    "PYTHONUNBUFFERED=1",
    "PYTHONDONTWRITEBYTECODE=1",
)
_LOCK = Path("requirements") / "runtime.lock"
_ACCOUNTS = "root:x:0:0:root:/:/sbin/nologin\nration:x:65532:65532:ration:/:/sbin/nologin\n"
_GROUPS = "root:x:0:\nration:x:65532:\n"
_NAMES = "passwd: files\ngroup: files\nhosts: files dns\n"


def ensure(name: str) -> Path:
    """The archive of this checkout's driver under that image name."""
    folder = toolchain.cache_root() / "images"
    path = folder / f"driver-{_key(name)}.tar"
    with toolchain.lock(toolchain.cache_root() / "driver-image.lock"):
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("driver-*.tar"):
                old.unlink()
            part = path.with_suffix(".part")
            write(part, name)
            part.rename(path)
    return path


def write(path: Path, name: str) -> str:
    """Write the archive; its digest."""
    with tempfile.TemporaryDirectory(prefix="ration-image-") as scratch:
        root = Path(scratch)
        python.stage(root)
        _install(root / python.PACKAGES)
        python.compile_all(root)
        _system(root)
        image = oci.Image(
            name,
            releases.architecture(),
            ("python", "-m", "driver.cli"),
            _ENVIRONMENT,
            USER,
            {"org.opencontainers.image.title": "ration"},
        )
        return oci.write(path, image, [*python.entries(root), oci.Entry("tmp/", mode=0o1777)])


def _install(packages: Path) -> None:
    """The locked dependencies, by their hashes, and the driver."""
    install = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(packages))
    shell.run((*install, "--require-hashes", "--requirement", str(CHECKOUT / _LOCK)))
    shell.run((*install, "--no-deps", "--no-build-isolation", str(CHECKOUT)))


def _system(root: Path) -> None:
    etc = root / "etc"
    etc.mkdir()
    for name, text in {"passwd": _ACCOUNTS, "group": _GROUPS, "nsswitch.conf": _NAMES}.items():
        (etc / name).write_text(text)


def _key(name: str) -> str:
    """Changes with the image's name, the driver's code, the lock, the interpreter and this room."""
    sources = [
        *sorted((CHECKOUT / "driver").rglob("*.py")),
        *sorted((CHECKOUT / "hack" / "image").glob("*.py")),
        CHECKOUT / "pyproject.toml",
        CHECKOUT / _LOCK,
    ]
    parts = [name.encode(), sys.version.encode(), os.uname().machine.encode()]
    for path in sources:
        parts += [str(path.relative_to(CHECKOUT)).encode(), path.read_bytes()]
    return versions.cache_key(parts)
