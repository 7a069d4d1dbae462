"""What a solution in the making takes of a node's devices, counters and capacities. Pure.

Every `take` that succeeds can be given back; then the tally is as it was before.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from driver.resources.dra import pools as dra_pools
from driver.scheduling.allocator import candidates
from driver.scheduling.snapshot import snapshot

_Draws = tuple[tuple[dra_pools.Counter, int], ...]


class RemainingCounters(Protocol):
    """What is left of pools' counters: a view, or what a view said once."""

    def remaining_counters(self, of: dra_pools.Pool) -> snapshot.CounterAmounts:
        """Of a pool (KEP-4815)."""
        ...


class CounterTracker:
    """Of one node; places are those of its spots."""

    def __init__(self, lefts: RemainingCounters, found: Sequence[candidates.NodeDevice]) -> None:
        self._source = lefts
        self._devices = found
        self._users: dict[int, list[tuple[int, bool]]] = {}
        self._draws: dict[int, _Draws] = {}
        self._consumed: dict[int, dict[dra_pools.Counter, int]] = {}
        self._remaining: dict[int, snapshot.CounterAmounts] = {}
        self._amounts: dict[tuple[int, str], int] = {}

    def remaining(self, place: int) -> snapshot.CounterAmounts:
        """What others leave of the counters of a device's pool."""
        of = self._devices[place].pool
        found = self._remaining.get(id(of))
        if found is None:
            found = self._remaining[id(of)] = self._source.remaining_counters(of)
            self._consumed[id(of)] = {}
        return found

    def all_remaining(self) -> Iterator[snapshot.CounterAmounts]:
        """What others leave of the counters of each pool that a device here draws on."""
        pools = {
            id(one.pool): place for place, one in enumerate(self._devices) if one.device.consumes
        }
        return (self.remaining(place) for place in pools.values())

    def consumed(self) -> Iterator[tuple[dra_pools.Counter, int]]:
        """What the solution draws on counters so far."""
        return (item for drawn in self._consumed.values() for item in drawn.items())

    def is_used(self, place: int) -> bool:
        """Whether the solution takes a device, or a share of it."""
        return bool(self._users.get(place))

    def can_allocate(self, place: int, offer: candidates.RequestCandidates, claim: int) -> bool:
        """Whether a device could be taken now, as far as the device alone is concerned."""
        users = self._users.get(place)
        beside = offer.subrequest.request.admin_access and all(
            one != claim for one, _ in users or ()
        )
        if users and not beside and not self._devices[place].device.allow_multiple:
            return False
        return self._has_counters(place) and self._has_capacity(place, offer)

    def try_allocate(self, place: int, offer: candidates.RequestCandidates, claim: int) -> bool:
        """Take a device, or a share of it, for a claim of the workload; False if it cannot be."""
        if not self.can_allocate(place, offer, claim):
            return False
        charges = not self._is_charged(place)
        self._users.setdefault(place, []).append((claim, charges))
        self._add(place, offer, 1, charges=charges)
        return True

    def release(self, place: int, offer: candidates.RequestCandidates) -> None:
        """Undo the last take of the device."""
        _, charges = self._users[place].pop()
        self._add(place, offer, -1, charges=charges)

    def _add(
        self, place: int, offer: candidates.RequestCandidates, sign: int, *, charges: bool
    ) -> None:
        for name, amount in offer.consumption.get(place, {}).items():
            key = (place, name)
            self._amounts[key] = self._amounts.get(key, 0) + sign * amount.nanos
        draws = self._device_draws(place) if charges else ()
        if draws:
            drawn = self._consumed[id(self._devices[place].pool)]
            for counter, amount_drawn in draws:
                drawn[counter] = drawn.get(counter, 0) + sign * amount_drawn

    def _is_charged(self, place: int) -> bool:
        """Whether the counters of a shared device are paid for: by others, or by this solution."""
        spot = self._devices[place]
        if not spot.device.allow_multiple:
            return False
        return bool(self._users.get(place)) or any(one.result.share_id for one in spot.holders)

    def _device_draws(self, place: int) -> _Draws:
        found = self._draws.get(place)
        if found is None:
            found = self._draws[place] = tuple(dra_pools.drawn(self._devices[place].device))
            if found:
                self.remaining(place)
        return found

    def _has_counters(self, place: int) -> bool:
        draws = self._device_draws(place)
        if not draws or self._is_charged(place):
            return True
        key = id(self._devices[place].pool)
        left, drawn = self._remaining[key], self._consumed[key]
        for counter, amount in draws:
            if left.get(counter, 0) - drawn.get(counter, 0) < amount:
                return False
        # One overdrawn counter bars every device of the pool that draws on any, as in the
        # reference (#140802): what is wrong there is not known.
        return min(left.values()) >= 0

    def _has_capacity(self, place: int, offer: candidates.RequestCandidates) -> bool:
        spot = self._devices[place]
        for name, amount in offer.consumption.get(place, {}).items():
            taken = candidates.held_capacity(spot, name) + self._amounts.get((place, name), 0)
            if taken + amount.nanos > spot.device.capacity[name].value.nanos:
                return False
        return True
