"""Bound on counters: whether their remainder, as a sum, covers the open requests. Pure.

Counters that differ in a number alone (`memory-slice-0` to `-7`) are one kind: whatever placements
are chosen, the total drawn of a kind is the same.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from driver.resources.dra import pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.constraints import counters

_Kinds = Counter[str]


class CounterBounds:
    """Bounds for one node's search."""

    def __init__(
        self, devices: Sequence[candidates.NodeDevice], tracker: counters.CounterTracker
    ) -> None:
        self._spots = devices
        self._tally = tracker
        self._least: dict[int, _Kinds] = {}
        self._total: _Kinds | None = None

    def is_satisfiable(
        self, demands: Sequence[Sequence[tuple[candidates.RequestCandidates, int]]]
    ) -> bool:
        """Return whether every demand could draw the minimum of one of its options.

        An option is the candidates of a subrequest, and a count.
        """
        needed: _Kinds = Counter()
        for options in demands:
            needed += _least(
                self._least_consumed(request_options, count) for request_options, count in options
            )
        if not needed:
            return True
        spare = self._remaining()
        return all(amount <= spare[kind] for kind, amount in needed.items())

    def _least_consumed(self, options: candidates.RequestCandidates, count: int) -> _Kinds:
        if options.subrequest.request.admin_access:
            return Counter()
        if id(options) not in self._least:
            self._least[id(options)] = _least(
                self._device_counters(index) for index in options.indexes
            )
        return Counter({kind: count * n for kind, n in self._least[id(options)].items()})

    def _device_counters(self, index: int) -> _Kinds:
        """Return what a device draws of each kind; a shared one may be charged already."""
        device = self._spots[index].device
        counters_by_kind: _Kinds = Counter()
        if not device.allow_multiple:
            for (_, name), amount in pools.counter_draws(device):
                counters_by_kind[_kind(name)] += amount
        return counters_by_kind

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


def _least(amounts: Iterable[_Kinds]) -> _Kinds:
    """Return the minimum of each kind; none where one draws none of it."""
    least, *others = amounts
    for other in others:
        least &= other
    return Counter(least)


@functools.lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    return name.rstrip("0123456789").rstrip("-")
