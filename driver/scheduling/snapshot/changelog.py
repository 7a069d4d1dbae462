"""Log of changed nodes, so that a reader updates those alone. Pure."""

from collections.abc import Iterable, Sequence

from driver import ids

_MAX_ENTRIES = 1 << 16


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
        changed = [*names]
        if len(self._log) + len(changed) > _MAX_ENTRIES:
            self.invalidate()
        else:
            self._log += changed

    def invalidate(self) -> None:
        """Record that any node may have changed."""
        self._first += len(self._log) + 1
        self._log.clear()
