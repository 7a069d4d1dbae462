"""Sets in the order of what they cost, made one by one. Pure."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Members = frozenset[int]
Rank = tuple[Any, ...]


def never(_found: Members) -> bool:
    """No set is to have any more."""
    return False


@dataclass(frozen=True, slots=True)
class Generators:
    """What sets are unions of: any of `main`, and of `more` where a set without has `room` for."""

    always: Sequence[Members]
    optional: Sequence[Members] = ()
    use_optional: Callable[[Members], bool] = never


class CheapestSets:
    """Unions of letters, the cheapest first; iterating ends when every one was told.

    `rank` is of its own for each set, and never less for one that holds another. Unions that hold
    a set that was `done` are left out.
    """

    def __init__(self, letters: Generators, rank: Callable[[Members], Rank]) -> None:
        self._generators = letters
        self._all = (*letters.always, *letters.optional)
        self._rank = rank
        self._excluded: list[Members] = []

    def exclude_supersets(self, found: Members) -> None:
        """Nothing that holds this set is of interest any more."""
        self._excluded.append(found)

    def __iter__(self) -> Iterator[Members]:
        """Each set once."""
        nothing: Members = frozenset()
        seen: set[Members] = {nothing}
        heap: list[tuple[Rank, int, Members]] = [(self._rank(nothing), 0, nothing)]
        while heap:
            _, start, found = heapq.heappop(heap)
            if self._is_excluded(found):
                continue
            yield found
            if self._is_excluded(found):
                continue
            for at in self._next_generators(start, found):
                more = found | self._all[at]
                if more not in seen:
                    seen.add(more)
                    heapq.heappush(heap, (self._rank(more), at + 1, more))

    def _is_excluded(self, found: Members) -> bool:
        return any(one <= found for one in self._excluded)

    def _next_generators(self, start: int, found: Members) -> range:
        """The letters that may be added; each set is made in their order."""
        more = bool(self._generators.optional) and self._generators.use_optional(found)
        return range(start, len(self._all) if more else len(self._generators.always))
