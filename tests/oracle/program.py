"""The oracle's program: built once from this folder, then taken from the cache of Go programs.

Its go.mod pins the allocator of the kube-scheduler that the local cluster runs by default.
"""

import os
import shutil
from pathlib import Path

from hack.cluster import releases, shell, toolchain, versions

ROOM = Path(__file__).resolve().parent
_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")


def cached() -> Path:
    """Where the program is once it is built; its sources and go.mod name the place."""
    parts = [
        releases.architecture().encode(),
        " ".join(_FLAGS).encode(),
        *(part for path in sources() for part in (path.name.encode(), path.read_bytes())),
    ]
    return toolchain.cache_root() / "tools" / f"oracle-{versions.cache_key(parts)}" / "oracle"


def sources() -> tuple[Path, ...]:
    """What the program is made of."""
    return (ROOM / "go.mod", ROOM / "go.sum", *sorted(ROOM.glob("*.go")))


def can_be_had() -> bool:
    """Whether the program is there or can be built: without Go it cannot."""
    return cached().exists() or shutil.which("go") is not None


def ensure() -> Path:
    """The program, built now if it is not in the cache; needs no network once it is there."""
    return toolchain.keep(cached().parent, _build) / cached().name


def _build(part: Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    command = ("go", "build", *_FLAGS, "-o", str(part / cached().name), ".")
    shell.run(command, cwd=ROOM, env=environment)
