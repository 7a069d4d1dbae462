"""The oracle's program: built once from this folder, then taken from the cache of Go programs.

Its go.mod pins the allocator of the kube-scheduler that the local cluster runs by default. Another
room with a Go program is built the same way.
"""

import shutil
from pathlib import Path

from hack.cluster import programs

ROOM = Path(__file__).resolve().parent


def cached(room: Path = ROOM) -> Path:
    """Return where the program is once it is built."""
    return programs.cached(room)


def can_be_had() -> bool:
    """Return whether the program is there or can be built: without Go it cannot."""
    return cached().exists() or shutil.which("go") is not None


def ensure(room: Path = ROOM) -> Path:
    """The program, built now if it is not in the cache; needs no network once it is there."""
    return programs.ensure(room)
