"""What a solution in the making takes of a node's devices, counters and capacities. Pure.

Every `take` that succeeds can be given back; then the tally is as it was before.
"""

from collections.abc import Mapping, Sequence

from driver.controller import held
from driver.controller import view as cluster
from driver.controller.allocation import offers
from driver.resources import pool

_Drawn = dict[tuple[int, pool.Counter], int]


class Tally:
    """Of one node; places are those of its spots."""

    def __init__(self, view: cluster.ClusterView, found: Sequence[offers.Spot]) -> None:
        self._spots = found
        self._users: dict[int, list[tuple[int, bool]]] = {}
        self._drawn: _Drawn = {}
        self._amounts: dict[tuple[int, str], int] = {}
        pools = {id(spot.pool): spot.pool for spot in found if spot.device.consumes}
        self._left: Mapping[int, cluster.Left] = {key: view.left(p) for key, p in pools.items()}
        self._overdrawn = {key for key, of in self._left.items() if min(of.values(), default=0) < 0}

    def left(self, place: int) -> cluster.Left:
        """What others leave of the counters of a device's pool."""
        return self._left[id(self._spots[place].pool)]

    def used(self, place: int) -> bool:
        """Whether the solution takes a device, or a share of it."""
        return bool(self._users.get(place))

    def could(self, place: int, offer: offers.Offer, claim: int) -> bool:
        """Whether a device could be taken now, as far as the device alone is concerned."""
        spot = self._spots[place]
        users = self._users.get(place, ())
        if offer.way.request.admin_access:
            if any(one == claim for one, _ in users) and not spot.device.allow_multiple:
                return False
        elif users and not spot.device.allow_multiple:
            return False
        return self._has_counters(place) and self._has_room(place, offer)

    def take(self, place: int, offer: offers.Offer, claim: int) -> bool:
        """Take a device, or a share of it, for a claim of the workload; False if it cannot be."""
        if not self.could(place, offer, claim):
            return False
        charges = not self._charged(place)
        self._users.setdefault(place, []).append((claim, charges))
        self._add(place, offer, 1, charges=charges)
        return True

    def give_back(self, place: int, offer: offers.Offer) -> None:
        """Undo the last take of the device."""
        _, charges = self._users[place].pop()
        self._add(place, offer, -1, charges=charges)

    def _add(self, place: int, offer: offers.Offer, sign: int, *, charges: bool) -> None:
        for name, amount in offer.takes.get(place, {}).items():
            key = (place, name)
            self._amounts[key] = self._amounts.get(key, 0) + sign * amount.nanos
        if charges:
            spot = self._spots[place]
            for counter, drawn in held.drawn(spot.device):
                of = (id(spot.pool), counter)
                self._drawn[of] = self._drawn.get(of, 0) + sign * drawn

    def _charged(self, place: int) -> bool:
        """Whether the counters of a shared device are paid for: by others, or by this solution."""
        spot = self._spots[place]
        if not spot.device.allow_multiple:
            return False
        return any(one.result.share_id for one in spot.holders) or bool(self._users.get(place))

    def _has_counters(self, place: int) -> bool:
        spot = self._spots[place]
        if not spot.device.consumes or self._charged(place):
            return True
        key = id(spot.pool)
        if key in self._overdrawn:
            # One overdrawn counter bars every device of the pool that draws on any, as in the
            # reference (#140802): what is wrong there is not known.
            return False
        left = self._left[key]
        return all(
            amount <= left.get(counter, 0) - self._drawn.get((key, counter), 0)
            for counter, amount in held.drawn(spot.device)
        )

    def _has_room(self, place: int, offer: offers.Offer) -> bool:
        spot = self._spots[place]
        return all(
            offers.held_of(spot, name) + self._amounts.get((place, name), 0) + amount.nanos
            <= spot.device.capacity[name].value.nanos
            for name, amount in offer.takes.get(place, {}).items()
        )
