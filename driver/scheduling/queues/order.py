"""Scheduling order of pending workloads, by current usage of their queues. Pure.

First workloads that waited longer than their queue's starvation bound, longest first: one per
queue, then one more for each bound that passes, so that a queue with many requests does not get all
at once. Then, from the top of the tree down, the queue with the lowest turn key
(`OrderContext.turn_key`), and in it the highest priority, then the oldest, then by name.
"""

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from driver.scheduling.queues import resources
from driver.scheduling.queues import tree as trees

TurnKey = tuple[int, float, str]
"""Sort key among sibling queues, lowest first."""


class PendingEntry(NamedTuple):
    """A pending pod or gang; `since` is in seconds since the epoch."""

    key: Hashable
    queue: str
    priority: int
    since: float
    requested: resources.Amounts = resources.ZERO

    @property
    def rank(self) -> tuple[int, float, str]:
        """Sort key inside its queue, lowest first."""
        return -self.priority, self.since, str(self.key)


class OrderContext(Protocol):
    """Current state that the order depends on."""

    @property
    def tree(self) -> trees.QueueTree:
        """The queue tree."""
        ...

    def turn_key(self, queue: str) -> TurnKey:
        """Return the sort key of a queue among its siblings."""
        ...

    def last_starvation_start(self, queue: str) -> float | None:
        """Return when a starving workload of a queue started last."""
        ...

    def record_starvation_start(self, queue: str, now: float) -> None:
        """Record that a starving workload of a queue started."""
        ...


_Ranked = tuple[tuple[int, float, str], int]


class ScheduleOrder:
    """Iterator over pending entries as of `now`: each next one follows the charges so far.

    `update_charges` reports each charge. An entry is returned once.
    """

    def __init__(self, context: OrderContext, waiting: Iterable[PendingEntry], now: float) -> None:
        self._context = context
        self._tree = tree = context.tree
        self._entries = [*waiting]
        self._requested: dict[str, resources.Amounts] | None = None
        self._returned: set[int] = set()
        self._scheduled: set[int] = set()
        self._last_returned: int | None = None
        self._ranked: dict[str, list[_Ranked]] = {}
        for index, entry in enumerate(self._entries):
            self._ranked.setdefault(tree.queue_or_implicit(entry.queue), []).append(
                (entry.rank, index)
            )
        self._remaining = dict.fromkeys(tree.accepted, 0)
        for queue, ranked in self._ranked.items():
            heapq.heapify(ranked)
            for name in tree.path(queue):
                self._remaining[name] += len(ranked)
        self._turns: dict[str | None, list[tuple[TurnKey, int, str]]] = {}
        self._stamps = dict.fromkeys(tree.accepted, 0)
        self._changed = dict.fromkeys(name for name in tree.accepted if self._remaining[name])
        self._starving = _Starving(context, self._entries, now)

    def __iter__(self) -> Iterator[PendingEntry]:
        return self

    def __next__(self) -> PendingEntry:
        index = self._starving.next()
        if index is None:
            index = self._next_by_turn()
        self._last_returned = index
        if index is None:
            raise StopIteration
        self._returned.add(index)
        entry = self._entries[index]
        for name in self._tree.path(self._tree.queue_or_implicit(entry.queue)):
            self._remaining[name] -= 1
        return entry

    def update_charges(self, queue: str, changed: Iterable[str], *, more: bool) -> None:
        """Update changed queues. With `more` for the last entry's queue it counts as scheduled."""
        self._changed |= dict.fromkeys(changed)
        last = self._last_returned
        if (
            not more
            or last is None
            or last in self._scheduled
            or self._entries[last].queue != queue
        ):
            return
        self._scheduled.add(last)
        self._starving.record_scheduled()
        if self._requested is not None:
            self._requested[self._tree.queue_or_implicit(queue)] -= self._entries[last].requested

    @property
    def requested(self) -> Mapping[str, resources.Amounts]:
        """Requests still pending, by leaf."""
        if self._requested is None:
            self._requested = {}
            for entry in self.pending():
                queue = self._tree.queue_or_implicit(entry.queue)
                self._requested[queue] = (
                    self._requested.get(queue, resources.ZERO) + entry.requested
                )
        return self._requested

    def pending(self) -> Iterator[PendingEntry]:
        """Yield all entries that were not scheduled."""
        return (entry for index, entry in enumerate(self._entries) if index not in self._scheduled)

    def _next_by_turn(self) -> int | None:
        self._refresh()
        name = self._next_child(None)
        if name is None:
            return None
        while self._tree.children.get(name):
            child = self._next_child(name)
            if child is None:
                break
            name = child
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
        """Return the child that is next, of those with pending entries."""
        turns = self._turns.get(parent, [])
        while turns:
            _, stamp, name = turns[0]
            if self._remaining[name] and stamp == self._stamps[name]:
                return name
            heapq.heappop(turns)
        return None

    def _pop_entry(self, queue: str) -> int:
        ranked = self._ranked[queue]
        while ranked[0][1] in self._returned:
            heapq.heappop(ranked)
        return heapq.heappop(ranked)[1]


class _Starving:
    """Entries beyond their queue's bound: of due queues, by age, until one starts."""

    def __init__(self, context: OrderContext, entries: list[PendingEntry], now: float) -> None:
        self._context = context
        self._entries = entries
        self._now = now
        self._by_queue: dict[str, list[tuple[float, int, str, int]]] = {}
        self._heads: list[tuple[tuple[float, int, str, int], str]] = []
        self._last_queue: str | None = None
        if context.tree.is_implicit_only:
            return
        for index, entry in enumerate(entries):
            queue = context.tree.queue_or_implicit(entry.queue)
            bound = context.tree.accepted[queue].starvation_s
            if now - entry.since > bound and self._is_due(queue, bound):
                ranked = (entry.since, -entry.priority, str(entry.key), index)
                self._by_queue.setdefault(queue, []).append(ranked)
        for queue, heap in self._by_queue.items():
            heapq.heapify(heap)
            self._push_head(queue)

    def _is_due(self, queue: str, bound: float) -> bool:
        last = self._context.last_starvation_start(queue)
        return last is None or self._now - last >= bound

    def _push_head(self, queue: str) -> None:
        if self._by_queue[queue]:
            heapq.heappush(self._heads, (heapq.heappop(self._by_queue[queue]), queue))

    def next(self) -> int | None:
        """Return the next entry; if the last one was not scheduled, its queue is next again."""
        if self._last_queue is not None:
            self._push_head(self._last_queue)
            self._last_queue = None
        if not self._heads:
            return None
        entry, self._last_queue = heapq.heappop(self._heads)
        return entry[3]

    def record_scheduled(self) -> None:
        """Record that the last entry was scheduled."""
        if self._last_queue is not None:
            self._context.record_starvation_start(self._last_queue, self._now)
            self._last_queue = None
