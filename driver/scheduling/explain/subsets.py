"""Sets in the order of what they cost, made one by one. Pure."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Members = frozenset[int]
Rank = tuple[Any, ...]


def nowhere(_found: Members) -> bool:
    """No set is to have any more."""
    return False


@dataclass(frozen=True, slots=True)
class Letters:
    """What sets are unions of: any of `main`, and of `more` where a set without has `room` for."""

    main: Sequence[Members]
    more: Sequence[Members] = ()
    room: Callable[[Members], bool] = nowhere


class Sets:
    """Unions of letters, the cheapest first; iterating ends when every one was told.

    `rank` is of its own for each set, and never less for one that holds another. Unions that hold
    a set that was `done` are left out.
    """

    def __init__(self, letters: Letters, rank: Callable[[Members], Rank]) -> None:
        self._letters = letters
        self._all = (*letters.main, *letters.more)
        self._rank = rank
        self._done: list[Members] = []

    def done(self, found: Members) -> None:
        """Nothing that holds this set is of interest any more."""
        self._done.append(found)

    def __iter__(self) -> Iterator[Members]:
        """Each set once."""
        nothing: Members = frozenset()
        seen: set[Members] = {nothing}
        heap: list[tuple[Rank, int, Members]] = [(self._rank(nothing), 0, nothing)]
        while heap:
            _, start, found = heapq.heappop(heap)
            if self._is_done(found):
                continue
            yield found
            if self._is_done(found):
                continue
            for at in self._next(start, found):
                more = found | self._all[at]
                if more not in seen:
                    seen.add(more)
                    heapq.heappush(heap, (self._rank(more), at + 1, more))

    def _is_done(self, found: Members) -> bool:
        return any(one <= found for one in self._done)

    def _next(self, start: int, found: Members) -> range:
        """The letters that may be added; each set is made in their order."""
        more = bool(self._letters.more) and self._letters.room(found)
        return range(start, len(self._all) if more else len(self._letters.main))
