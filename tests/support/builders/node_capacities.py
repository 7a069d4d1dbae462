"""Rooms, cards and candidates for tests of placement policies."""

from driver import ids
from driver.scheduling.allocator.policies import base

GIB = 1 << 30
H100 = base.GpuModel(
    "H100",
    80 * GIB,
    (
        *(base.MigPlacement("1g.10gb", 1 << index, 10 * GIB) for index in range(7)),
        *(base.MigPlacement("1g.20gb", 0b11 << entry, 20 * GIB) for entry in (0, 2, 4, 6)),
        *(base.MigPlacement("2g.20gb", 0b11 << entry, 20 * GIB) for entry in (0, 2, 4)),
        *(base.MigPlacement("3g.40gb", 0b1111 << entry, 40 * GIB) for entry in (0, 4)),
        base.MigPlacement("4g.40gb", 0b1111, 40 * GIB),
        base.MigPlacement("7g.80gb", 0b11111111, 80 * GIB),
    ),
)
T4 = base.GpuModel("T4", 16 * GIB)


def idle(model: base.GpuModel = H100) -> base.GpuState:
    return base.GpuState(model, base.IDLE, base.FULL, model.all_slices)


def shared(left: int, mode: str = base.MPS, model: base.GpuModel = H100) -> base.GpuState:
    """A card of which so many thousandths are left."""
    return base.GpuState(model, mode, left, 0)


def cut(free: int, model: base.GpuModel = H100) -> base.GpuState:
    """A card with MIG instances everywhere but on these slices."""
    return base.GpuState(model, base.MIG, 125 * free.bit_count(), free)


TAKEN = base.GpuState(H100, base.WHOLE, 0, 0)


def flat(number: int) -> base.NodeTopology:
    """GPUs of which nothing is known."""
    return base.NodeTopology((base.GpuLocation(),) * number)


def room(
    *cards: base.GpuState, cpu: int = 64_000, wiring: base.NodeTopology | None = None
) -> base.NodeCapacity:
    return base.NodeCapacity(cpu, 256 * GIB, cards, wiring or flat(len(cards)))


def whole(*places: int) -> tuple[base.Usage, ...]:
    """All of some cards."""
    return tuple(base.Usage(index, base.WHOLE) for index in places)


def candidate(previous: base.NodeCapacity, *taken: base.Usage, cpu: int = 0) -> base.Candidate:
    return base.Candidate(ids.NodeName("node-a"), previous, previous.without(taken, cpu), taken)
