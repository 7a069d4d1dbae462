"""A list in parts: the first so many after a key, and where the next part begins. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

MOST = 1000
"""Of one part."""
USUAL = 100


def part(
    found: Sequence[T], key: Callable[[T], str], after: str = "", limit: int = USUAL
) -> tuple[tuple[T, ...], str]:
    """At most `limit` of what follows a key, in the order given; the last key where more follow.

    A key that is not there any more begins after where it would be, if keys are in order.
    """
    begin = 0
    if after:
        at = next((place for place, one in enumerate(found) if key(one) == after), None)
        begin = at + 1 if at is not None else sum(1 for one in found if key(one) <= after)
    shown = tuple(found[begin : begin + limit])
    more = begin + limit < len(found)
    return shown, key(shown[-1]) if shown and more else ""
