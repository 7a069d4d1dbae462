"""Rooms, cards and candidates for tests of placement policies."""

from driver import ids
from driver.scheduling.allocator.policies import base

GIB = 1 << 30
H100 = base.Model(
    "H100",
    80 * GIB,
    (
        *(base.Part("1g.10gb", 1 << at, 10 * GIB) for at in range(7)),
        *(base.Part("1g.20gb", 0b11 << at, 20 * GIB) for at in (0, 2, 4, 6)),
        *(base.Part("2g.20gb", 0b11 << at, 20 * GIB) for at in (0, 2, 4)),
        *(base.Part("3g.40gb", 0b1111 << at, 40 * GIB) for at in (0, 4)),
        base.Part("4g.40gb", 0b1111, 40 * GIB),
        base.Part("7g.80gb", 0b11111111, 80 * GIB),
    ),
)
T4 = base.Model("T4", 16 * GIB)


def idle(model: base.Model = H100) -> base.Card:
    return base.Card(model, base.IDLE, base.FULL, model.slices)


def shared(left: int, mode: str = base.MPS, model: base.Model = H100) -> base.Card:
    """A card of which so many thousandths are left."""
    return base.Card(model, mode, left, 0)


def cut(free: int, model: base.Model = H100) -> base.Card:
    """A card with MIG instances everywhere but on these slices."""
    return base.Card(model, base.PARTS, 125 * free.bit_count(), free)


TAKEN = base.Card(H100, base.WHOLE, 0, 0)


def flat(number: int) -> base.Wiring:
    """GPUs of which nothing is known."""
    return base.Wiring((base.Position(),) * number)


def room(*cards: base.Card, cpu: int = 64_000, wiring: base.Wiring | None = None) -> base.Room:
    return base.Room(cpu, 256 * GIB, cards, wiring or flat(len(cards)))


def whole(*places: int) -> tuple[base.Taken, ...]:
    """All of some cards."""
    return tuple(base.Taken(place, base.WHOLE) for place in places)


def candidate(before: base.Room, *taken: base.Taken, cpu: int = 0) -> base.Candidate:
    return base.Candidate(ids.NodeName("node-a"), before, before.without(taken, cpu), taken)
