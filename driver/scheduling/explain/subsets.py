"""Sets in the order of their cost, generated one by one. Pure."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Members = frozenset[int]
Rank = tuple[Any, ...]


def never(_found: Members) -> bool:
    """Return False: no optional generators."""
    return False


@dataclass(frozen=True, slots=True)
class Generators:
    """Sets to unite: any of `always`, and of `optional` if `use_optional` holds for the union."""

    always: Sequence[Members]
    optional: Sequence[Members] = ()
    use_optional: Callable[[Members], bool] = never


class CheapestSets:
    """Unions of generators, cheapest first; iteration ends when every union was yielded.

    `rank` is unique for each set, and never less for a superset. Supersets of a set that was
    excluded are left out.
    """

    def __init__(self, letters: Generators, rank: Callable[[Members], Rank]) -> None:
        self._generators = letters
        self._all = tuple(dict.fromkeys((*letters.always, *letters.optional)))
        self._rank = rank
        self._excluded: list[Members] = []

    def exclude_supersets(self, members: Members) -> None:
        """Exclude a set and its supersets."""
        self._excluded.append(members)

    def __iter__(self) -> Iterator[Members]:
        """Yield each set once."""
        empty: Members = frozenset()
        seen: set[Members] = {empty}
        heap: list[tuple[Rank, Members]] = [(self._rank(empty), empty)]
        while heap:
            _, members = heapq.heappop(heap)
            if self._is_excluded(members):
                continue
            yield members
            if self._is_excluded(members):
                continue
            for generator in self._generators_for(members):
                larger = members | generator
                if larger not in seen:
                    seen.add(larger)
                    heapq.heappush(heap, (self._rank(larger), larger))

    def _is_excluded(self, members: Members) -> bool:
        return any(excluded <= members for excluded in self._excluded)

    def _generators_for(self, members: Members) -> Sequence[Members]:
        """Return the generators that may be added, in any order: a set has many ways to it."""
        more = bool(self._generators.optional) and self._generators.use_optional(members)
        return self._all if more else self._generators.always
