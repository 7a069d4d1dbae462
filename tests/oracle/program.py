"""The oracle's program: built once from this folder, then taken from the cache of Go programs.

Its go.mod pins the allocator of the kube-scheduler that the local cluster runs by default. Another
room with a Go program is built the same way; the program is named like its room.
"""

import functools
import os
import shutil
from pathlib import Path

from hack.cluster import releases, shell, toolchain, versions

ROOM = Path(__file__).resolve().parent
_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")


def cached(room: Path = ROOM) -> Path:
    """Where the program is once it is built; its sources and go.mod name the place."""
    parts = [
        releases.architecture().encode(),
        " ".join(_FLAGS).encode(),
        *(part for path in sources(room) for part in (path.name.encode(), path.read_bytes())),
    ]
    tools = toolchain.cache_root() / "tools"
    return tools / f"{room.name}-{versions.cache_key(parts)}" / room.name


def sources(room: Path = ROOM) -> tuple[Path, ...]:
    """What the program is made of."""
    return (room / "go.mod", room / "go.sum", *sorted(room.glob("*.go")))


def can_be_had() -> bool:
    """Whether the program is there or can be built: without Go it cannot."""
    return cached().exists() or shutil.which("go") is not None


def ensure(room: Path = ROOM) -> Path:
    """The program, built now if it is not in the cache; needs no network once it is there."""
    made = cached(room)
    return toolchain.keep(made.parent, functools.partial(_build, room)) / made.name


def _build(room: Path, part: Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    command = ("go", "build", *_FLAGS, "-o", str(part / room.name), ".")
    shell.run(command, cwd=room, env=environment)
