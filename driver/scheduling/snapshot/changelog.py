"""Which nodes something changed for, since when: what lets a reader look at those alone. Pure."""

from collections.abc import Iterable, Sequence

from driver import ids

_MAX_ENTRIES = 1 << 16


class ChangeLog:
    """A log of nodes, as `view.ClusterView` tells it by `mark` and `since`."""

    def __init__(self) -> None:
        self._log: list[ids.NodeName] = []
        self._first = 0

    @property
    def revision(self) -> int:
        """Of now."""
        return self._first + len(self._log)

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes that changed since an earlier one; None: any may have."""
        if mark < self._first:
            return None
        return self.revision, self._log[mark - self._first :]

    def add(self, names: Iterable[ids.NodeName]) -> None:
        """These changed."""
        found = [*names]
        if len(self._log) + len(found) > _MAX_ENTRIES:
            self.invalidate()
        else:
            self._log += found

    def invalidate(self) -> None:
        """Anything may have changed."""
        self._first += len(self._log) + 1
        self._log.clear()
