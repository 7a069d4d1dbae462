"""Small disks under a node's records and CDI specs, which can be filled.

The records' disk lies outside the node's folder and survives the node's reboots, as a disk does;
that of CDI is a tmpfs of the node, as /run is.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

STATE_BYTES, CDI_BYTES = 4 << 20, 1 << 20
_FILLER = ".filler"
_BLOCK = 64 << 10


def furnish(node: Path) -> None:
    """Mount both; what the records' folder holds is kept. On a node whose plugin is at rest."""
    disk = node.parent.parent / "disks" / node.name
    state, cdi = node / "state", node / "cdi"
    if not disk.is_mount():
        disk.mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", f"size={STATE_BYTES},mode=0755", "tmpfs", str(disk))
        shutil.copytree(state, disk, dirs_exist_ok=True)
    if not state.is_mount():
        _mount("--bind", str(disk), str(state))
    if not cdi.is_mount():
        _mount("-t", "tmpfs", "-o", f"size={CDI_BYTES},mode=0755", "tmpfs", str(cdi))


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Meanwhile there is no room on the folder's disk, not for a byte."""
    filler = folder / _FILLER
    try:
        _fill(filler)
        yield
    finally:
        filler.unlink(missing_ok=True)


def _fill(filler: Path) -> None:
    """Fill the disk by large pieces, and the rest by bytes."""
    with filler.open("wb", buffering=0) as file:
        for size in (_BLOCK, 1):
            _until_full(file, b"\0" * size)


def _until_full(file: BinaryIO, piece: bytes) -> None:
    with contextlib.suppress(OSError):
        while file.write(piece):
            continue


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
