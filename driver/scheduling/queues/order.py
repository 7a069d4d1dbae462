"""Whose turn it is, one workload after another, by what queues have when it is asked. Pure.

First what has waited beyond its queue's bound, the longest wait first: of each queue one, then one
more for each bound that passes, so that a queue that asks for all at once does not have all when
the bound is over. Then from the top of the tree down the queue whose turn it is
(`Standpoint.turn`), and in that the most important, then the oldest, then by name.
"""

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from driver.scheduling.queues import resources
from driver.scheduling.queues import tree as trees

Turn = tuple[int, float, str]
"""Of queues beside each other the least is next."""


class Waiting(NamedTuple):
    """A workload that waits `since` a moment, in seconds since the epoch: a pod, a gang."""

    key: Hashable
    leaf: str
    priority: int
    since: float
    asked: resources.Amounts = resources.NOTHING

    @property
    def rank(self) -> tuple[int, float, str]:
        """Inside its queue the least is next."""
        return -self.priority, self.since, str(self.key)


class Standpoint(Protocol):
    """What the order depends on, as it is now."""

    @property
    def tree(self) -> trees.Tree:
        """The queues."""
        ...

    def turn(self, queue: str) -> Turn:
        """Where a queue stands beside its siblings."""
        ...

    def rescued(self, leaf: str) -> float | None:
        """When the last workload of a queue started for having waited too long."""
        ...

    def rescue(self, leaf: str, now: float) -> None:
        """One did now."""
        ...


_Ranked = tuple[tuple[int, float, str], int]


class Line:
    """The order of what waits, as of `now`: the next is the next by what was charged until then.

    `charged` is to be told of each charge. What was given out once is not given out again.
    """

    def __init__(self, at: Standpoint, waiting: Iterable[Waiting], now: float) -> None:
        self._at = at
        self._tree = tree = at.tree
        self._known = [*waiting]
        self._asked: dict[str, resources.Amounts] | None = None
        self._given: set[int] = set()
        self._served: set[int] = set()
        self._last: int | None = None
        self._ranked: dict[str, list[_Ranked]] = {}
        for place, one in enumerate(self._known):
            self._ranked.setdefault(tree.leaf(one.leaf), []).append((one.rank, place))
        self._left = dict.fromkeys(tree.accepted, 0)
        for leaf, ranked in self._ranked.items():
            heapq.heapify(ranked)
            for name in tree.path(leaf):
                self._left[name] += len(ranked)
        self._turns: dict[str | None, list[tuple[Turn, int, str]]] = {}
        self._stamps = dict.fromkeys(tree.accepted, 0)
        self._stirred = dict.fromkeys(name for name in tree.accepted if self._left[name])
        self._starving = _Starving(at, self._known, now)

    def __iter__(self) -> Iterator[Waiting]:
        return self

    def __next__(self) -> Waiting:
        place = self._starving.next()
        if place is None:
            place = self._by_turn()
        self._last = place
        if place is None:
            raise StopIteration
        self._given.add(place)
        one = self._known[place]
        for name in self._tree.path(self._tree.leaf(one.leaf)):
            self._left[name] -= 1
        return one

    def charged(self, leaf: str, changed: Iterable[str], *, more: bool) -> None:
        """What some queues have changed. More for the leaf of what was given out last: served."""
        self._stirred |= dict.fromkeys(changed)
        last = self._last
        if not more or last is None or last in self._served or self._known[last].leaf != leaf:
            return
        self._served.add(last)
        self._starving.served()
        if self._asked is not None:
            self._asked[self._tree.leaf(leaf)] -= self._known[last].asked

    @property
    def asked(self) -> Mapping[str, resources.Amounts]:
        """What waits still, by leaf."""
        if self._asked is None:
            self._asked = {}
            for one in self.waiting():
                leaf = self._tree.leaf(one.leaf)
                self._asked[leaf] = self._asked.get(leaf, resources.NOTHING) + one.asked
        return self._asked

    def waiting(self) -> Iterator[Waiting]:
        """What waits still: all that was not served."""
        return (one for place, one in enumerate(self._known) if place not in self._served)

    def _by_turn(self) -> int | None:
        self._renew()
        name = self._first(None)
        if name is None:
            return None
        while self._tree.children.get(name):
            below = self._first(name)
            if below is None:
                break
            name = below
        return self._pop(name)

    def _renew(self) -> None:
        for name in self._stirred:
            if self._left.get(name):
                self._stamps[name] += 1
                parent = self._tree.accepted[name].parent or None
                entry = (self._at.turn(name), self._stamps[name], name)
                heapq.heappush(self._turns.setdefault(parent, []), entry)
        self._stirred = {}

    def _first(self, parent: str | None) -> str | None:
        """The child whose turn it is, of those for which something waits."""
        found = self._turns.get(parent, [])
        while found:
            _, stamp, name = found[0]
            if self._left[name] and stamp == self._stamps[name]:
                return name
            heapq.heappop(found)
        return None

    def _pop(self, leaf: str) -> int:
        ranked = self._ranked[leaf]
        while ranked[0][1] in self._given:
            heapq.heappop(ranked)
        return heapq.heappop(ranked)[1]


class _Starving:
    """What waits beyond its queue's bound: of queues that are due, by age, until one starts."""

    def __init__(self, at: Standpoint, known: list[Waiting], now: float) -> None:
        self._at = at
        self._known = known
        self._now = now
        self._of: dict[str, list[tuple[float, int, str, int]]] = {}
        self._heads: list[tuple[tuple[float, int, str, int], str]] = []
        self._out: str | None = None
        if at.tree.is_plain:
            return
        for place, one in enumerate(known):
            leaf = at.tree.leaf(one.leaf)
            bound = at.tree.accepted[leaf].starvation_s
            if now - one.since > bound and self._is_due(leaf, bound):
                entry = (one.since, -one.priority, str(one.key), place)
                self._of.setdefault(leaf, []).append(entry)
        for leaf, entries in self._of.items():
            heapq.heapify(entries)
            self._head(leaf)

    def _is_due(self, leaf: str, bound: float) -> bool:
        last = self._at.rescued(leaf)
        return last is None or self._now - last >= bound

    def _head(self, leaf: str) -> None:
        if self._of[leaf]:
            heapq.heappush(self._heads, (heapq.heappop(self._of[leaf]), leaf))

    def next(self) -> int | None:
        """The next of them; where the last one was not served, one of its queue has a turn yet."""
        if self._out is not None:
            self._head(self._out)
            self._out = None
        if not self._heads:
            return None
        entry, self._out = heapq.heappop(self._heads)
        return entry[3]

    def served(self) -> None:
        """What was given out last has what it asked."""
        if self._out is not None:
            self._at.rescue(self._out, self._now)
            self._out = None
