"""Free devices of a node, with the least that an allocator has to know. Pure."""

import random  # noqa: TID251 - numbers are handed in
import re
from collections.abc import Iterable

from tests.soak import draw

SHARES = 4
"""Of a GPU at once, by MPS or by turns: each asks a quarter."""
GB_OF_A_SLICE = 10
_NAME = re.compile(r"(gpu(?:-\w+){4})(?:-(mps|ts|mig-\dg(\d+)gb-(\d)))?")


class Room:
    """State of a GPU with one face at a time; its MIG placements do not overlap."""

    def __init__(self, devices: Iterable[str]) -> None:
        self._offered: dict[str, dict[draw.Face, list[str]]] = {}
        self._taken: dict[str, list[str]] = {}
        for name in sorted(devices):
            match = _NAME.fullmatch(name)
            if match is not None:
                of_gpu = self._offered.setdefault(match[1], {})
                of_gpu.setdefault(_face(name), []).append(name)
                self._taken.setdefault(match[1], [])

    @property
    def gpus(self) -> int:
        """Return how many there are."""
        return len(self._offered)

    def take(self, face: draw.Face, numbers: random.Random) -> str | None:
        """A device of that face, chosen by `numbers`; None when there is none."""
        free = [
            name
            for gpu, faces in self._offered.items()
            for name in faces.get(face, ())
            if all(_go_together(name, other) for other in self._taken[gpu])
            and len(self._taken[gpu]) < (SHARES if face in {draw.Face.MPS, draw.Face.TS} else 8)
        ]
        if not free:
            return None
        chosen = numbers.choice(free)
        self._taken[_gpu(chosen)].append(chosen)
        return chosen

    def give(self, device: str) -> None:
        """It is free again."""
        self._taken[_gpu(device)].remove(device)


def _gpu(device: str) -> str:
    return "-".join(device.split("-")[:5])


def _face(device: str) -> draw.Face:
    kind = device.removeprefix(_gpu(device)).removeprefix("-").partition("-")[0]
    return draw.Face(kind) if kind else draw.Face.WHOLE


def _go_together(name: str, other: str) -> bool:
    """Return whether two devices of one GPU can be given out at once."""
    face = _face(name)
    if face is not _face(other) or face is draw.Face.WHOLE:
        return False
    return face is not draw.Face.MIG or not _slices(name) & _slices(other)


def _slices(device: str) -> set[int]:
    """The slices of memory that a MIG placement takes."""
    match = _NAME.fullmatch(device)
    assert match is not None
    start = int(match[4])
    return set(range(start, start + int(match[3]) // GB_OF_A_SLICE))
