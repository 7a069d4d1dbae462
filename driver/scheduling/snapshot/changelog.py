"""Log of changed nodes, so that a reader updates those alone. Pure."""

from collections.abc import Iterable, Sequence

from driver import ids

_MAX_ENTRIES = 1 << 15
"""Of a longer log the older half goes: whoever has not read it takes every node as changed."""


class ChangeLog:
    """Log of node names behind `Snapshot.revision` and `changed_since`."""

    def __init__(self) -> None:
        self._log: list[ids.NodeName] = []
        self._first = 0

    @property
    def revision(self) -> int:
        """The current revision."""
        return self._first + len(self._log)

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """Return the current revision and the nodes changed since `mark`; None: any may have."""
        if mark < self._first:
            return None
        return self.revision, self._log[mark - self._first :]

    def add(self, names: Iterable[ids.NodeName]) -> None:
        """Record changed nodes."""
        self._log += names
        dropped = len(self._log) - _MAX_ENTRIES // 2
        if dropped > _MAX_ENTRIES // 2:
            del self._log[:dropped]
            self._first += dropped

    def invalidate(self) -> None:
        """Record that any node may have changed."""
        self._first += len(self._log) + 1
        self._log.clear()
