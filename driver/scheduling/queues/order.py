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

TurnKey = tuple[int, float, str]
"""Of queues beside each other the least is next."""


class PendingEntry(NamedTuple):
    """A workload that waits `since` a moment, in seconds since the epoch: a pod, a gang."""

    key: Hashable
    queue: str
    priority: int
    since: float
    requested: resources.Amounts = resources.ZERO

    @property
    def rank(self) -> tuple[int, float, str]:
        """Inside its queue the least is next."""
        return -self.priority, self.since, str(self.key)


class OrderContext(Protocol):
    """What the order depends on, as it is now."""

    @property
    def tree(self) -> trees.QueueTree:
        """The queues."""
        ...

    def turn_key(self, queue: str) -> TurnKey:
        """Where a queue stands beside its siblings."""
        ...

    def last_starvation_start(self, leaf: str) -> float | None:
        """When the last workload of a queue started for having waited too long."""
        ...

    def record_starvation_start(self, leaf: str, now: float) -> None:
        """One did now."""
        ...


_Ranked = tuple[tuple[int, float, str], int]


class ScheduleOrder:
    """The order of what waits, as of `now`: the next is the next by what was charged until then.

    `charged` is to be told of each charge. What was given out once is not given out again.
    """

    def __init__(self, at: OrderContext, waiting: Iterable[PendingEntry], now: float) -> None:
        self._context = at
        self._tree = tree = at.tree
        self._entries = [*waiting]
        self._requested: dict[str, resources.Amounts] | None = None
        self._returned: set[int] = set()
        self._scheduled: set[int] = set()
        self._last_returned: int | None = None
        self._ranked: dict[str, list[_Ranked]] = {}
        for place, one in enumerate(self._entries):
            self._ranked.setdefault(tree.queue_or_implicit(one.queue), []).append((one.rank, place))
        self._remaining = dict.fromkeys(tree.accepted, 0)
        for leaf, ranked in self._ranked.items():
            heapq.heapify(ranked)
            for name in tree.path(leaf):
                self._remaining[name] += len(ranked)
        self._turns: dict[str | None, list[tuple[TurnKey, int, str]]] = {}
        self._stamps = dict.fromkeys(tree.accepted, 0)
        self._changed = dict.fromkeys(name for name in tree.accepted if self._remaining[name])
        self._starving = _Starving(at, self._entries, now)

    def __iter__(self) -> Iterator[PendingEntry]:
        return self

    def __next__(self) -> PendingEntry:
        place = self._starving.next()
        if place is None:
            place = self._next_by_turn()
        self._last_returned = place
        if place is None:
            raise StopIteration
        self._returned.add(place)
        one = self._entries[place]
        for name in self._tree.path(self._tree.queue_or_implicit(one.queue)):
            self._remaining[name] -= 1
        return one

    def update_charges(self, leaf: str, changed: Iterable[str], *, more: bool) -> None:
        """What some queues have changed. More for the leaf of what was given out last: served."""
        self._changed |= dict.fromkeys(changed)
        last = self._last_returned
        if not more or last is None or last in self._scheduled or self._entries[last].queue != leaf:
            return
        self._scheduled.add(last)
        self._starving.record_scheduled()
        if self._requested is not None:
            self._requested[self._tree.queue_or_implicit(leaf)] -= self._entries[last].requested

    @property
    def requested(self) -> Mapping[str, resources.Amounts]:
        """What waits still, by leaf."""
        if self._requested is None:
            self._requested = {}
            for one in self.pending():
                leaf = self._tree.queue_or_implicit(one.queue)
                self._requested[leaf] = self._requested.get(leaf, resources.ZERO) + one.requested
        return self._requested

    def pending(self) -> Iterator[PendingEntry]:
        """What waits still: all that was not served."""
        return (one for place, one in enumerate(self._entries) if place not in self._scheduled)

    def _next_by_turn(self) -> int | None:
        self._refresh()
        name = self._next_child(None)
        if name is None:
            return None
        while self._tree.children.get(name):
            below = self._next_child(name)
            if below is None:
                break
            name = below
        return self._pop_entry(name)

    def _refresh(self) -> None:
        for name in self._changed:
            if self._remaining.get(name):
                self._stamps[name] += 1
                parent = self._tree.accepted[name].parent or None
                entry = (self._context.turn_key(name), self._stamps[name], name)
                heapq.heappush(self._turns.setdefault(parent, []), entry)
        self._changed = {}

    def _next_child(self, parent: str | None) -> str | None:
        """The child whose turn it is, of those for which something waits."""
        found = self._turns.get(parent, [])
        while found:
            _, stamp, name = found[0]
            if self._remaining[name] and stamp == self._stamps[name]:
                return name
            heapq.heappop(found)
        return None

    def _pop_entry(self, leaf: str) -> int:
        ranked = self._ranked[leaf]
        while ranked[0][1] in self._returned:
            heapq.heappop(ranked)
        return heapq.heappop(ranked)[1]


class _Starving:
    """What waits beyond its queue's bound: of queues that are due, by age, until one starts."""

    def __init__(self, at: OrderContext, known: list[PendingEntry], now: float) -> None:
        self._context = at
        self._entries = known
        self._now = now
        self._by_queue: dict[str, list[tuple[float, int, str, int]]] = {}
        self._heads: list[tuple[tuple[float, int, str, int], str]] = []
        self._last_queue: str | None = None
        if at.tree.is_implicit_only:
            return
        for place, one in enumerate(known):
            leaf = at.tree.queue_or_implicit(one.queue)
            bound = at.tree.accepted[leaf].starvation_s
            if now - one.since > bound and self._is_due(leaf, bound):
                entry = (one.since, -one.priority, str(one.key), place)
                self._by_queue.setdefault(leaf, []).append(entry)
        for leaf, entries in self._by_queue.items():
            heapq.heapify(entries)
            self._push_head(leaf)

    def _is_due(self, leaf: str, bound: float) -> bool:
        last = self._context.last_starvation_start(leaf)
        return last is None or self._now - last >= bound

    def _push_head(self, leaf: str) -> None:
        if self._by_queue[leaf]:
            heapq.heappush(self._heads, (heapq.heappop(self._by_queue[leaf]), leaf))

    def next(self) -> int | None:
        """The next of them; where the last one was not served, one of its queue has a turn yet."""
        if self._last_queue is not None:
            self._push_head(self._last_queue)
            self._last_queue = None
        if not self._heads:
            return None
        entry, self._last_queue = heapq.heappop(self._heads)
        return entry[3]

    def record_scheduled(self) -> None:
        """What was given out last has what it asked."""
        if self._last_queue is not None:
            self._context.record_starvation_start(self._last_queue, self._now)
            self._last_queue = None
