"""Go programs of this repository: a folder with a go.mod each, built once, then from the cache.

A program is named like its folder, and found again by its sources.
"""

import functools
import os
from pathlib import Path

from hack.cluster import releases, shell, toolchain, versions

_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")


def cached(room: Path) -> Path:
    """Where the program is once it is built; its sources and go.mod name the place."""
    parts = [
        releases.architecture().encode(),
        " ".join(_FLAGS).encode(),
        *(part for path in sources(room) for part in (path.name.encode(), path.read_bytes())),
    ]
    tools = toolchain.cache_root() / "tools"
    return tools / f"{room.name}-{versions.cache_key(parts)}" / room.name


def sources(room: Path) -> tuple[Path, ...]:
    """What the program is made of."""
    code = (path for path in sorted(room.glob("*.go")) if not path.name.endswith("_test.go"))
    listed = (room / "go.mod", room / "go.sum", *code)
    return tuple(path for path in listed if path.exists())


def ensure(room: Path) -> Path:
    """The program, built now if it is not in the cache; needs no network once it is there."""
    program = cached(room)
    return toolchain.keep(program.parent, functools.partial(_build, room)) / program.name


def _build(room: Path, part: Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    command = ("go", "build", *_FLAGS, "-o", str(part / room.name), ".")
    shell.run(command, cwd=room, env=environment)
