"""Counts of placed pods by domain, updated by the pods that come and go. Pure."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Any, Protocol, Self, TypeVar

from driver import ids

_MOST_STEPS, _MOST_COUNTS, _MOST_REMEMBERED = 1024, 64, 256


class Counts(Protocol):
    """Sums over pods, such that adding a pod and taking it away leaves them as they were."""

    def add(self, kind: Any, node: ids.NodeName, number: int) -> None:  # noqa: ANN401 - a Kind, which builds on this
        """Add pods of a `placed_pods.PodKind` on a node; a negative number takes them away."""
        ...

    def copy(self) -> Self:
        """Return an independent copy."""
        ...


T = TypeVar("T")
C = TypeVar("C", bound=Counts)
Step = tuple[Any, ids.NodeName, int]
"""A kind, a node and the number of pods added."""


class RevisionCache:
    """Cache of values computed for one revision of a population."""

    def __init__(self) -> None:
        self._stamp: Hashable = None
        self._values: dict[Hashable, Any] = {}

    def get(self, mark: Hashable, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, computed if it is not cached."""
        if self._stamp != mark or len(self._values) >= _MOST_REMEMBERED:
            self._values.clear()
            self._stamp = mark
        if key not in self._values:
            self._values[key] = make()
        value: T = self._values[key]
        return value


class RunningCounts:
    """Latest steps of a population, and the counts that follow them."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=_MOST_STEPS)
        self._number = 0
        self._counts: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()

    def record(self, step: Step) -> None:
        """Record that pods were added or removed."""
        self._steps.append(step)
        self._number += 1

    def clear(self) -> None:
        """Drop all counts: nodes or namespaces changed, so pods may be in other domains."""
        self._counts.clear()

    def get(self, key: Hashable, make: Callable[[], C]) -> C:
        """Return the current counts of a key; the next `get` after a step modifies them."""
        number, counts = self._counts.pop(key, (-1, None))
        behind = self._number - number
        if counts is None or behind > len(self._steps):
            counts = make()
        else:
            for step in islice(self._steps, len(self._steps) - behind, None):
                counts.add(*step)
        self._counts[key] = self._number, counts
        if len(self._counts) > _MOST_COUNTS:
            self._counts.popitem(last=False)
        running: C = counts
        return running


class StackedCounts:
    """Counts of an overlay: those of its base, and the overlay's steps on top."""

    def __init__(self) -> None:
        self._below: Hashable = None
        self._counts: dict[Hashable, tuple[Any, list[Step]]] = {}

    def get(
        self, key: Hashable, below: Hashable, make: Callable[[], C], steps: Sequence[Step]
    ) -> C:
        """Return the counts of a key; `below` is the revision of the base, `steps` a stack."""
        if self._below != below or len(self._counts) >= _MOST_COUNTS:
            self._counts.clear()
            self._below = below
        if key not in self._counts:
            self._counts[key] = make().copy(), []
        counts, applied = self._counts[key]
        # If a step is unchanged on the stack, so are all below it.
        while applied and (len(applied) > len(steps) or applied[-1] is not steps[len(applied) - 1]):
            kind, node, number = applied.pop()
            counts.add(kind, node, -number)
        for step in steps[len(applied) :]:
            counts.add(*step)
            applied.append(step)
        stacked: C = counts
        return stacked
