import itertools
import random  # noqa: TID251 - the same every time

import pytest

from tests.soak import draw, room

GPU = "gpu-0000-53-00-0"
MIG = ("mig-1g10gb-0", "mig-1g10gb-1", "mig-1g20gb-0", "mig-3g40gb-4", "mig-7g80gb-0")
DEVICES = [GPU, f"{GPU}-mps", f"{GPU}-ts", *(f"{GPU}-{name}" for name in MIG)]


@pytest.fixture
def free() -> room.Room:
    return room.Room(DEVICES)


@pytest.fixture
def numbers() -> random.Random:
    return random.Random(1)  # noqa: S311 - no secret


@pytest.mark.parametrize(("face", "other"), [*itertools.permutations(draw.Face, 2)])
def test_a_gpu_has_one_face_at_a_time(
    free: room.Room, numbers: random.Random, face: draw.Face, other: draw.Face
) -> None:
    taken = free.take(face, numbers)
    assert taken is not None
    assert free.take(other, numbers) is None
    free.give(taken)
    assert free.take(other, numbers) is not None


@pytest.mark.parametrize("face", [draw.Face.MPS, draw.Face.TS])
def test_four_share_a_gpu(free: room.Room, numbers: random.Random, face: draw.Face) -> None:
    takes = [free.take(face, numbers) for _ in range(5)]
    assert takes == [f"{GPU}-{face}"] * 4 + [None]


def test_mig_placements_do_not_overlap(free: room.Room) -> None:
    pairs = {
        tuple(sorted((name.removeprefix(f"{GPU}-"), other.removeprefix(f"{GPU}-"))))
        for name, other in _taken_together(free)
    }
    assert pairs == {
        ("mig-1g10gb-0", "mig-1g10gb-1"),
        ("mig-1g10gb-0", "mig-3g40gb-4"),
        ("mig-1g10gb-1", "mig-3g40gb-4"),
        ("mig-1g20gb-0", "mig-3g40gb-4"),
    }


def _taken_together(free: room.Room) -> list[tuple[str, str]]:
    """Pairs that were given out at once, by many draws."""
    results: list[tuple[str, ...]] = []
    for seed in range(200):
        numbers = random.Random(seed)  # noqa: S311 - no secret
        both = [free.take(draw.Face.MIG, numbers) for _ in range(2)]
        results.append(tuple(name for name in both if name is not None))
        for text in results[-1]:
            free.give(text)
    return [(pair[0], pair[1]) for pair in results if len(pair) == 2]
