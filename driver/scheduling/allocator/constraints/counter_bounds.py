"""Whether what is left of counters, taken together, could carry what is still asked. Pure.

Counters that differ in a number alone (`memory-slice-0` to `-7`) are one kind: whatever places are
chosen, so much of the kind is drawn in all.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from driver.resources.dra import pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import counters

_Kinds = Counter[str]


class CounterBounds:
    """Of one node's search."""

    def __init__(
        self, spots: Sequence[candidates.NodeDevice], taken: counters.CounterTracker
    ) -> None:
        self._spots = spots
        self._tally = taken
        self._least: dict[int, _Kinds] = {}
        self._total: _Kinds | None = None

    def is_satisfiable(
        self, demands: Sequence[Sequence[tuple[candidates.RequestCandidates, int]]]
    ) -> bool:
        """Whether every demand could draw the least of one of its options: an offer, how often."""
        needed: _Kinds = Counter()
        for options in demands:
            needed += _least(self._least_consumed(offer, count) for offer, count in options)
        if not needed:
            return True
        spare = self._remaining()
        return all(amount <= spare[kind] for kind, amount in needed.items())

    def _least_consumed(self, offer: candidates.RequestCandidates, count: int) -> _Kinds:
        if id(offer) not in self._least:
            self._least[id(offer)] = _least(self._device_counters(place) for place in offer.indexes)
        return Counter({kind: count * n for kind, n in self._least[id(offer)].items()})

    def _device_counters(self, place: int) -> _Kinds:
        """What a device draws of each kind; a shared one may be paid for already."""
        device = self._spots[place].device
        found: _Kinds = Counter()
        if not device.allow_multiple:
            for (_, name), amount in pools.drawn(device):
                found[_kind(name)] += amount
        return found

    def _remaining(self) -> _Kinds:
        if self._total is None:
            self._total = Counter()
            for left in self._tally.all_remaining():
                for (_, name), amount in left.items():
                    self._total[_kind(name)] += max(amount, 0)
        spare = Counter(self._total)
        for (_, name), amount in self._tally.consumed():
            spare[_kind(name)] -= amount
        return spare


def _least(found: Iterable[_Kinds]) -> _Kinds:
    """Of each kind the least amount; none where one draws none of it."""
    least, *others = found
    for one in others:
        least &= one
    return Counter(least)


@functools.lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    return name.rstrip("0123456789").rstrip("-")
