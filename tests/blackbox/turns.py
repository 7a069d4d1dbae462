"""Order in which nodes take groups of cases. Pure but for the lock."""

import threading
from collections.abc import Iterable

LONGEST_FIRST = ("BB-11", "BB-4", "BB-9", "BB-2", "BB-1", "BB-5", "BB-6", "BB-8", "BB-7", "BB-3")
FAILING = frozenset({"BB-9"})
"""Groups in which devices fail again and again: a driver may keep such devices out afterwards."""


class Turns:
    """Hands out groups, the longest first; thread safe.

    A node that had a failing group gets no other. Where it is the only node left, that group is
    the last of all.
    """

    def __init__(self, groups: Iterable[str], nodes: int) -> None:
        self._left = sorted({*groups}, key=_weight)
        self._nodes = nodes
        self._lock = threading.Lock()

    def next(self, last: str = "") -> str | None:
        """Return the next group for a node that had `last`; None: nothing is left for it."""
        if last in FAILING:
            return None
        with self._lock:
            failing = FAILING if self._nodes == 1 else frozenset[str]()
            text = next((name for name in self._left if name not in failing), None)
            text = text or next(iter(self._left), None)
            if text is None:
                return None
            self._left.remove(text)
            self._nodes -= text in FAILING
            return text


def _weight(group: str) -> int:
    return LONGEST_FIRST.index(group) if group in LONGEST_FIRST else len(LONGEST_FIRST)
