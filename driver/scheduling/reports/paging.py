"""Paging of lists: a limited part after a key, and the key of the next part. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

MAX_LIMIT = 1000
"""Maximum number of items of one part."""
DEFAULT_LIMIT = 100


def page(
    items: Sequence[T], key: Callable[[T], str], after: str = "", limit: int = DEFAULT_LIMIT
) -> tuple[tuple[T, ...], str]:
    """Return at most `limit` items after a key, in the order given; the last key if more follow.

    A key that does not exist any more begins after its position, if keys are in order.
    """
    begin = 0
    if after:
        position = next((index for index, item in enumerate(items) if key(item) == after), None)
        begin = (
            position + 1 if position is not None else sum(1 for item in items if key(item) <= after)
        )
    shown = tuple(items[begin : begin + limit])
    more = begin + limit < len(items)
    return shown, key(shown[-1]) if shown and more else ""
