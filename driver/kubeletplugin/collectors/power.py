"""Whose power it is that a GPU draws. Pure."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def attribute_power(
    watts: float, busy: Mapping[K, float | None], given: Mapping[K, float]
) -> dict[K, float]:
    """The watts of each of those that have a GPU, which add up to no more than it draws.

    By their parts of what they did, `busy` (0 to 1 each); while nobody did anything, by what they
    were `given`. Nobody's where it is not known what one of them did.
    """
    known = {who: did for who, did in busy.items() if did is not None}
    if len(known) < len(busy):
        return {}
    weights = known if any(known.values()) else {who: given.get(who, 0.0) for who in busy}
    total = sum(weights.values())
    return {who: watts * weight / total for who, weight in weights.items()} if total else {}
