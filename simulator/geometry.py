"""How MIG cuts a GPU: which profiles exist, where they may lie, and which ids follow from that.

Sources: the MIG User Guide's profile and placement listings, NVML's header for the enums, and
`nvidia-smi mig -lgi` listings for the ids.
"""

from collections.abc import Iterator
from dataclasses import dataclass

PROFILE_COUNT = 0x12
"""NVML_GPU_INSTANCE_PROFILE_COUNT: the enum that `nvmlDeviceGetGpuInstanceProfileInfo` takes."""

COMPUTE_PROFILE_COUNT = 0x9
"""NVML_COMPUTE_INSTANCE_PROFILE_COUNT."""

COMPUTE_SLICES = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7, 7: 1}
"""Compute-instance profile, both enum and id, to slices; 7 is 1_SLICE_REV1."""

WIDE = 7
"""1_SLICE_REV1: the whole of a GPU instance of one slice that has more multiprocessors than a
slice; profile 0 is a part of it. Seen: `nvidia-smi mig -lci` of an H100 with a 1g.24gb, at
placement 0:2."""

_ALIGNED = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}


@dataclass(frozen=True, slots=True)
class Placement:
    """`nvmlGpuInstancePlacement_t`: memory slices from `start` on (compute slices inside a GI)."""

    start: int
    size: int

    def overlaps(self, other: "Placement") -> bool:
        """Whether a slice belongs to both."""
        return self.start < other.start + other.size and other.start < self.start + self.size


@dataclass(frozen=True, slots=True)
class Shape:
    """A GPU-instance profile: its enum, its id, compute slices, places, and first driver major."""

    enum: int
    id: int
    slices: int
    starts: tuple[int, ...]
    size: int
    since: int = 450

    def placements(self) -> Iterator[Placement]:
        """Every place it may lie, free or not."""
        return (Placement(start, self.size) for start in self.starts)


_SEVEN = tuple(range(7))
_QUARTERS = (0, 3, 6, 9)

SHAPES = {
    8: {
        "1_SLICE": Shape(0, 19, 1, _SEVEN, 1),
        "1_SLICE_REV1": Shape(7, 20, 1, _SEVEN, 1, since=470),
        "1_SLICE_REV2": Shape(9, 15, 1, (0, 2, 4, 6), 2, since=525),
        "2_SLICE": Shape(1, 14, 2, (0, 2, 4), 2),
        "3_SLICE": Shape(2, 9, 3, (0, 4), 4),
        "4_SLICE": Shape(3, 5, 4, (0,), 4),
        "7_SLICE": Shape(4, 0, 7, (0,), 8),
    },
    12: {
        "1_SLICE": Shape(0, 14, 1, _QUARTERS, 3),
        "1_SLICE_REV1": Shape(7, 21, 1, _QUARTERS, 3),
        "1_SLICE_GFX": Shape(0xA, 47, 1, _QUARTERS, 3),
        "1_SLICE_NO_ME": Shape(0xD, 67, 1, _QUARTERS, 3),
        "1_SLICE_ALL_ME": Shape(0xF, 65, 1, _QUARTERS, 3),
        "2_SLICE": Shape(1, 5, 2, (0, 6), 6),
        "2_SLICE_GFX": Shape(0xB, 35, 2, (0, 6), 6),
        "2_SLICE_NO_ME": Shape(0xE, 66, 2, (0, 6), 6),
        "2_SLICE_ALL_ME": Shape(0x10, 64, 2, (0, 6), 6),
        "4_SLICE": Shape(3, 0, 4, (0,), 12),
        "4_SLICE_GFX": Shape(0xC, 32, 4, (0,), 12),
    },
    4: {
        "1_SLICE": Shape(0, 14, 1, (0, 1, 2, 3), 1),
        "1_SLICE_REV1": Shape(7, 21, 1, (0, 1, 2, 3), 1, since=470),
        "2_SLICE": Shape(1, 5, 2, (0, 2), 2),
        "2_SLICE_REV1": Shape(8, 6, 2, (0, 2), 2, since=525),
        "4_SLICE": Shape(3, 0, 4, (0,), 4),
    },
}
"""By memory slices: 8 for A100, H100, H200, B200 and GB200, 4 for A30, 12 for RTX PRO 6000."""

MAX_DEVICES = {8: 7, 4: 4, 12: 4}
"""`nvmlDeviceGetMaxMigDeviceCount` while MIG is on."""


def gpu_instance_id(memory_slices: int, at: Placement, *, halves_swapped: bool) -> int:
    """The id of an instance at that place: whole 0, halves from 1, quarters from 3, eighths from 7.

    The driver numbers physical halves. On some boards the first half of the placements lies in the
    second one, so an id does not follow from a placement alone (seen: `nvidia-smi mig -lgi` of two
    H100 of one node, DCGM issue 138).
    """
    start = at.start
    if halves_swapped and at.size < memory_slices:
        start = (start + memory_slices // 2) % memory_slices
    return memory_slices // at.size - 1 + start // at.size


def compute_placements(gpu_slices: int, profile: int, *, wide: bool) -> tuple[Placement, ...]:
    """Where a compute instance of `profile` may lie in a GPU instance of `gpu_slices`.

    A `wide` GPU instance (see `WIDE`) is the whole of that profile, or holds one of profile 0. Seen
    on a B300: its 1g.47gb has a `1c.1g.47gb` of 18 multiprocessors beside the whole of 30.
    """
    if profile == WIDE:
        return (Placement(0, 2),) if wide else ()
    slices = COMPUTE_SLICES[profile]
    starts = range(0, gpu_slices - slices + 1, _ALIGNED[slices])
    return tuple(Placement(start, slices) for start in starts)
