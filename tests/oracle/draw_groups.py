"""Drawing compatibility groups of devices that draw on counter sets (KEP-5963)."""

import random  # noqa: TID251 - the same scenario for the same seed
from collections.abc import Iterable, Iterator
from typing import Any

Raw = dict[str, Any]
GATE = "DRADeviceCompatibilityGroups"
_CHOICES = (("mig",), ("mig",), ("vgpu",), ("mig", "vgpu"), ())


def add_groups(seed: int, slices: Iterable[Raw]) -> bool:
    """Give devices groups in some of the clusters; return whether this is such a cluster.

    The dice are its own: what else is drawn for a seed stays as it is without groups.
    """
    chance = random.Random(f"groups {seed}")  # noqa: S311 - a seed, no secret
    if chance.random() < 0.7:
        return False
    for use in counter_uses(slices):
        if groups := chance.choice(_CHOICES):
            use["compatibilityGroups"] = list(groups)
    return True


def counter_uses(slices: Iterable[Raw]) -> Iterator[Raw]:
    """Yield what each device draws on each counter set."""
    for item in slices:
        for device in item["spec"].get("devices", ()):
            yield from device.get("consumesCounters", ())
