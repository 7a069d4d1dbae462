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
        self._all = (*letters.always, *letters.optional)
        self._rank = rank
        self._excluded: list[Members] = []

    def exclude_supersets(self, members: Members) -> None:
        """Exclude a set and its supersets."""
        self._excluded.append(members)

    def __iter__(self) -> Iterator[Members]:
        """Yield each set once."""
        empty: Members = frozenset()
        # Each set is built in the generators' order: the least position from which one may still
        # be added. It is final once a set is popped: ways to it are over sets of lower rank.
        starts: dict[Members, int] = {empty: 0}
        heap: list[tuple[Rank, Members]] = [(self._rank(empty), empty)]
        while heap:
            _, members = heapq.heappop(heap)
            if self._is_excluded(members):
                continue
            yield members
            if self._is_excluded(members):
                continue
            for position in self._positions(starts[members], members):
                larger = members | self._all[position]
                if larger not in starts:
                    heapq.heappush(heap, (self._rank(larger), larger))
                starts[larger] = min(position + 1, starts.get(larger, position + 1))

    def _is_excluded(self, members: Members) -> bool:
        return any(excluded <= members for excluded in self._excluded)

    def _positions(self, start: int, members: Members) -> range:
        """Return the positions of the generators that may be added."""
        more = bool(self._generators.optional) and self._generators.use_optional(members)
        return range(start, len(self._all) if more else len(self._generators.always))
