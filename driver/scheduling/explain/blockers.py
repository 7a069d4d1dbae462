"""Who is in the way of each device of a node that a request could have. Pure.

Who goes together is a party, and told as one. Sets of parties are ruled out, and never one that
would do: devices are looked at one by one, so more may be in the way of several at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from driver.resources.core import nodes
from driver.resources.dra import pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as requested
from driver.scheduling.allocator.constraints import counters
from driver.scheduling.explain import holders, step_budget, subsets, without_pods
from driver.scheduling.snapshot import snapshot

_Where = tuple[snapshot.PoolKey, str]


@dataclass(frozen=True, slots=True)
class _Place:
    """A device for a way of a request; `near` are the tenants who may be in its way."""

    want: int
    way: int
    spot: int
    near: subsets.Members
    groups: frozenset[_Where]


@dataclass(frozen=True, slots=True)
class Bar:
    """Who has to go for one device: all that it `needs` and, where that is not enough, some more.

    Whoever else goes, without these the device is not free.
    """

    needs: subsets.Members
    more: subsets.Members


@dataclass(frozen=True, slots=True)
class Ground:
    """So many devices of those that a request could have, each with who is in its way.

    `shared`: a device may be had more than once.
    """

    count: int
    bars: tuple[Bar, ...]
    shared: bool


class Bars:
    """Of one node and its parties of tenants, which are called by their places."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        asked: step_budget.Asking,
        node: nodes.Node,
        there: Sequence[holders.Party],
        meter: step_budget.Meter,
    ) -> None:
        self._view = view
        self._asked = asked
        self._there = there
        self._meter = meter
        self._absent: dict[subsets.Members, without_pods.Absence] = {}
        self._spots = candidates.node_devices(self._without(range(len(there))), node)
        self._shares = view.reachable_pools(node.name)
        self._judges = [asked.verdicts.device_filter(want.claim_index) for want in asked.wants]
        self._near = _near(view, self._shares, there)
        self._free: dict[tuple[_Place, subsets.Members], bool] = {}
        self._overdrawn: dict[snapshot.PoolKey, bool] = {}
        self._blind = False
        self._places = self._found()

    def letters(self) -> list[subsets.Members]:
        """Sets of which every set that would do, and holds no smaller one, is a union."""
        if self._blind:
            return [frozenset([at]) for at in range(len(self._there))]
        found: dict[subsets.Members, None] = {}
        for place in self._all():
            forced = None if self._joint(place) else self._forced(place)
            if forced is None:
                found |= dict.fromkeys(frozenset([at]) for at in place.near)
            elif forced:
                found[forced] = None
        return sorted(found, key=lambda one: (len(one), sorted(one)))

    def may(self, gone: subsets.Members) -> bool:
        """Whether enough devices are free, each taken for itself, once these are gone."""
        if self._blind:
            return True
        union: set[int] = set()
        wanted = 0
        for want, ways in zip(self._asked.wants, self._places, strict=True):
            free = [[one for one in places if self._is_free(one, gone)] for places in ways]
            needs = [self._needs(want.subrequests[way], places) for way, places in enumerate(ways)]
            if all(len(found) < need for found, need in zip(free, needs, strict=True)):
                return False
            if len(ways) == 1 and not self._repeatable(ways[0]):
                union.update(one.spot for one in free[0])
                wanted += needs[0]
        return len(union) >= wanted

    def ground(self) -> Ground | None:
        """Of what asks one way for so many devices; None of what asks otherwise."""
        if self._blind or len(self._places) != 1 or len(self._places[0]) != 1:
            return None
        way, places = self._asked.wants[0].subrequests[0], self._places[0][0]
        if way.request.everything:
            return None
        found = (self._bar(one) for one in places if self._is_free(one, one.near))
        return Ground(self._needs(way, places), tuple(found), self._repeatable(places))

    def _bar(self, place: _Place) -> Bar:
        needs = frozenset(one for one in place.near if not self._is_free(place, place.near - {one}))
        free = self._is_free(place, needs)
        return Bar(needs, frozenset() if free else place.near - needs)

    def _needs(self, way: requested.SubRequest, places: Sequence[_Place]) -> int:
        if way.request.everything:
            return max(len(places), 1)
        if way.request.admin_access or self._repeatable(places):
            return 1
        return way.request.count

    def _repeatable(self, places: Iterable[_Place]) -> bool:
        """Whether a device may answer more than once."""
        return any(
            self._spots[one.spot].device.allow_multiple
            or self._asked.wants[one.want].subrequests[one.way].request.admin_access
            for one in places
        )

    def _found(self) -> list[list[list[_Place]]]:
        """By request and way, the devices that would do if all tenants were gone."""
        made: list[list[list[_Place]]] = []
        for at, want in enumerate(self._asked.wants):
            found: list[list[_Place]] = []
            for number, way in enumerate(want.subrequests):
                offer = candidates.find_candidates(way, self._spots, self._shares, self._judges[at])
                self._meter.count(step_budget.LOOK * len(self._spots))
                # An error ends the search of a node, so who is in the way says nothing there.
                self._blind = self._blind or bool(offer.error or offer.selector_errors)
                found.append([self._place(at, number, spot) for spot in offer.indexes])
            made.append(found)
        return made

    def _place(self, want: int, way: int, at: int) -> _Place:
        spot = self._spots[at]
        key = (spot.pool.driver, spot.pool.name)
        groups = frozenset(_groups(key, spot.device.name, spot.pool))
        near = {one for group in groups for one in self._near.get(group, ())}
        if self._is_overdrawn(spot.pool):
            # One overdrawn counter bars every device of the pool that draws on any.
            near.update(one for (of, _), users in self._near.items() if of == key for one in users)
        return _Place(want, way, at, frozenset(near), groups)

    def _is_overdrawn(self, of: pools.Pool) -> bool:
        key = (of.driver, of.name)
        if key not in self._overdrawn:
            self._overdrawn[key] = min(self._view.remaining_counters(of).values(), default=0) < 0
        return self._overdrawn[key]

    def _all(self) -> Iterator[_Place]:
        return (one for ways in self._places for places in ways for one in places)

    def _joint(self, place: _Place) -> bool:
        """Whether more than one device of the workload may come to lie on the place's GPU."""
        wants = self._asked.wants
        if len(wants) == 1 and all(
            way.request.count == 1 and not way.request.everything for way in wants[0].subrequests
        ):
            return False
        if self._spots[place.spot].device.allow_multiple:
            return True
        return any(one.spot != place.spot and one.groups & place.groups for one in self._all())

    def _forced(self, place: _Place) -> subsets.Members | None:
        """Who has to go for one device; None where there are several ways."""
        if self._is_free(place, frozenset()) or not self._is_free(place, place.near):
            return frozenset()
        forced = frozenset(
            one for one in place.near if not self._is_free(place, place.near - {one})
        )
        return forced if self._is_free(place, forced) else None

    def _is_free(self, place: _Place, gone: subsets.Members) -> bool:
        key = (place, gone & place.near)
        if key not in self._free:
            self._meter.count(step_budget.LOOK)
            self._free[key] = self._look(place, key[1])
        return self._free[key]

    def _look(self, place: _Place, gone: subsets.Members) -> bool:
        view = self._kept(gone)
        spot = self._spots[place.spot]
        spot = spot._replace(holders=view.holders(spot.id))
        way = self._asked.wants[place.want].subrequests[place.way]
        offer = candidates.find_candidates(way, [spot], self._shares, self._judges[place.want])
        if not offer.indexes or offer.unavailable:
            return False
        claim = self._asked.wants[place.want].claim_index
        return counters.CounterTracker(view, [spot]).can_allocate(0, offer, claim)

    def _kept(self, gone: subsets.Members) -> without_pods.Absence:
        if gone not in self._absent:
            self._absent[gone] = self._without(gone)
        return self._absent[gone]

    def _without(self, gone: Iterable[int]) -> without_pods.Absence:
        return without_pods.Absence(self._view, [one for at in gone for one in self._there[at]])


def _near(
    view: snapshot.Snapshot, shares: Sequence[pools.Share], there: Sequence[holders.Party]
) -> dict[_Where, set[int]]:
    """By counter set and by device, the tenants who have any of it."""
    users: dict[str, set[int]] = {}
    for at, party in enumerate(there):
        for lease in (lease for tenant in party for lease in tenant.leases):
            users.setdefault(lease.claim, set()).add(at)
    found: dict[_Where, set[int]] = {}
    for share in shares:
        key = (share.pool.driver, share.pool.name)
        for name, claim in holders.holdings(view, share.pool):
            for group in _groups(key, name, share.pool):
                found.setdefault(group, set()).update(users.get(claim, ()))
    return found


def _groups(key: snapshot.PoolKey, name: str, of: pools.Pool) -> Iterator[_Where]:
    """What a device has in common with others: itself, and the counter sets that it draws on."""
    yield key, f"device {name}"
    device = of.devices.get(name)
    for one in device.consumes if device else ():
        yield key, f"counters {one.set}"
