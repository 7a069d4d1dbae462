"""Attributes a GPU's power draw to claims. Pure."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def attribute_power(
    watts: float, busy: Mapping[K, float | None], allocated: Mapping[K, float]
) -> dict[K, float]:
    """Return the watts of each user of a GPU, at most its power draw in total.

    Split by utilization, `busy` (0 to 1 each); if all are idle, by the `allocated` weights. Empty
    if the utilization of one is unknown.
    """
    measured = {key: utilization for key, utilization in busy.items() if utilization is not None}
    if len(measured) < len(busy):
        return {}
    weights = measured if any(measured.values()) else {key: allocated.get(key, 0.0) for key in busy}
    total = sum(weights.values())
    return {key: watts * weight / total for key, weight in weights.items()} if total else {}
