"""Which device goes to which request on one node. Pure; its steps are counted.

Without constraints between devices this is a matching: every slot (one device of one request)
wants a device of its own, and an augmenting path finds room where a first choice blocked it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from driver.resources import claims


@dataclass(frozen=True, slots=True)
class Found:
    """`devices[i]` is for slot i; None where no device was left for it."""

    devices: tuple[claims.DeviceId | None, ...]
    steps: int

    @property
    def filled(self) -> int:
        """How many slots got a device: the most that is possible."""
        return sum(1 for device in self.devices if device is not None)


def match(slots: Sequence[Sequence[claims.DeviceId]]) -> Found:
    """Give each slot one of its devices, none twice, filling as many slots as can be.

    Devices are taken in the order offered, so equal inputs give equal answers.
    """
    holder: dict[claims.DeviceId, int] = {}
    steps = 0
    for slot in range(len(slots)):
        steps += _augment(slots, slot, holder)
    given = {slot: device for device, slot in holder.items()}
    return Found(tuple(given.get(slot) for slot in range(len(slots))), steps)


def _augment(
    slots: Sequence[Sequence[claims.DeviceId]], start: int, holder: dict[claims.DeviceId, int]
) -> int:
    """Find a device for a slot, moving others where that helps; the steps it took.

    A breadth-first search over slots: `via` remembers by which device each slot was reached.
    """
    came_from: dict[claims.DeviceId, int] = {}
    frontier = [start]
    steps = 0
    while frontier:
        slot = frontier.pop(0)
        for device in slots[slot]:
            steps += 1
            if device in came_from:
                continue
            came_from[device] = slot
            if device not in holder:
                _shift(device, came_from, holder, start)
                return steps
            frontier.append(holder[device])
    return steps


def _shift(
    device: claims.DeviceId,
    came_from: dict[claims.DeviceId, int],
    holder: dict[claims.DeviceId, int],
    start: int,
) -> None:
    """Hand devices along the path that ends at a free one, back to the slot it started from."""
    while True:
        slot = came_from[device]
        previous = next((held for held, by in holder.items() if by == slot), None)
        holder[device] = slot
        if slot == start or previous is None:
            return
        del holder[previous]
        device = previous
