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

_ResourceKey = tuple[snapshot.PoolKey, str]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A device for a way of a request; `near` are the tenants who may be in its way."""

    request: int
    subrequest: int
    device: int
    nearby: subsets.Members
    resources: frozenset[_ResourceKey]


@dataclass(frozen=True, slots=True)
class DeviceBlockers:
    """Who has to go for one device: all that it `needs` and, where that is not enough, some more.

    Whoever else goes, without these the device is not free.
    """

    required: subsets.Members
    alternatives: subsets.Members


@dataclass(frozen=True, slots=True)
class NodeBlockers:
    """So many devices of those that a request could have, each with who is in its way.

    `shared`: a device may be had more than once.
    """

    count: int
    devices: tuple[DeviceBlockers, ...]
    is_shared: bool


class BlockerFinder:
    """Of one node and its parties of tenants, which are called by their places."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        asked: step_budget.WorkloadQuery,
        node: nodes.Node,
        there: Sequence[holders.HolderGroup],
        meter: step_budget.StepBudget,
    ) -> None:
        self._view = view
        self._query = asked
        self._groups = there
        self._budget = meter
        self._views: dict[subsets.Members, without_pods.WithoutPods] = {}
        self._devices = candidates.node_devices(self._build_view(range(len(there))), node)
        self._shares = view.reachable_pools(node.name)
        self._filters = [asked.filters.device_filter(want.claim_index) for want in asked.requests]
        self._nearby = _holders_by_resource(view, self._shares, there)
        self._free: dict[tuple[_Candidate, subsets.Members], bool] = {}
        self._overdrawn: dict[snapshot.PoolKey, bool] = {}
        self._is_unknown = False
        self._by_request = self._find_candidates()

    def candidate_sets(self) -> list[subsets.Members]:
        """Sets of which every set that would do, and holds no smaller one, is a union."""
        if self._is_unknown:
            return [frozenset([at]) for at in range(len(self._groups))]
        found: dict[subsets.Members, None] = {}
        for place in self._candidates():
            forced = None if self._is_joint(place) else self._required_holders(place)
            if forced is None:
                found |= dict.fromkeys(frozenset([at]) for at in place.nearby)
            elif forced:
                found[forced] = None
        return sorted(found, key=lambda one: (len(one), sorted(one)))

    def may_fit(self, gone: subsets.Members) -> bool:
        """Whether enough devices are free, each taken for itself, once these are gone."""
        if self._is_unknown:
            return True
        union: set[int] = set()
        wanted = 0
        for want, ways in zip(self._query.requests, self._by_request, strict=True):
            free = [[one for one in places if self._is_free(one, gone)] for places in ways]
            needs = [
                self._device_count(want.subrequests[way], places) for way, places in enumerate(ways)
            ]
            if all(len(found) < need for found, need in zip(free, needs, strict=True)):
                return False
            if len(ways) == 1 and not self._is_repeatable(ways[0]):
                union.update(one.device for one in free[0])
                wanted += needs[0]
        return len(union) >= wanted

    def node_blockers(self) -> NodeBlockers | None:
        """Of what asks one way for so many devices; None of what asks otherwise."""
        if self._is_unknown or len(self._by_request) != 1 or len(self._by_request[0]) != 1:
            return None
        way, places = self._query.requests[0].subrequests[0], self._by_request[0][0]
        if way.request.everything:
            return None
        found = (self._device_blockers(one) for one in places if self._is_free(one, one.nearby))
        return NodeBlockers(
            self._device_count(way, places), tuple(found), self._is_repeatable(places)
        )

    def _device_blockers(self, place: _Candidate) -> DeviceBlockers:
        needs = frozenset(
            one for one in place.nearby if not self._is_free(place, place.nearby - {one})
        )
        free = self._is_free(place, needs)
        return DeviceBlockers(needs, frozenset() if free else place.nearby - needs)

    def _device_count(self, way: requested.SubRequest, places: Sequence[_Candidate]) -> int:
        if way.request.everything:
            return max(len(places), 1)
        if way.request.admin_access or self._is_repeatable(places):
            return 1
        return way.request.count

    def _is_repeatable(self, places: Iterable[_Candidate]) -> bool:
        """Whether a device may answer more than once."""
        return any(
            self._devices[one.device].device.allow_multiple
            or self._query.requests[one.request].subrequests[one.subrequest].request.admin_access
            for one in places
        )

    def _find_candidates(self) -> list[list[list[_Candidate]]]:
        """By request and way, the devices that would do if all tenants were gone."""
        made: list[list[list[_Candidate]]] = []
        for at, want in enumerate(self._query.requests):
            found: list[list[_Candidate]] = []
            for number, way in enumerate(want.subrequests):
                offer = candidates.find_candidates(
                    way, self._devices, self._shares, self._filters[at]
                )
                self._budget.spend(step_budget.CHECK_STEPS * len(self._devices))
                # An error ends the search of a node, so who is in the way says nothing there.
                self._is_unknown = self._is_unknown or bool(offer.error or offer.selector_errors)
                found.append([self._candidate(at, number, spot) for spot in offer.indexes])
            made.append(found)
        return made

    def _candidate(self, want: int, way: int, at: int) -> _Candidate:
        spot = self._devices[at]
        key = (spot.pool.driver, spot.pool.name)
        groups = frozenset(_resource_keys(key, spot.device.name, spot.pool))
        near = {one for group in groups for one in self._nearby.get(group, ())}
        if self._is_overdrawn(spot.pool):
            # One overdrawn counter bars every device of the pool that draws on any.
            near.update(
                one for (of, _), users in self._nearby.items() if of == key for one in users
            )
        return _Candidate(want, way, at, frozenset(near), groups)

    def _is_overdrawn(self, of: pools.Pool) -> bool:
        key = (of.driver, of.name)
        if key not in self._overdrawn:
            self._overdrawn[key] = min(self._view.remaining_counters(of).values(), default=0) < 0
        return self._overdrawn[key]

    def _candidates(self) -> Iterator[_Candidate]:
        return (one for ways in self._by_request for places in ways for one in places)

    def _is_joint(self, place: _Candidate) -> bool:
        """Whether more than one device of the workload may come to lie on the place's GPU."""
        wants = self._query.requests
        if len(wants) == 1 and all(
            way.request.count == 1 and not way.request.everything for way in wants[0].subrequests
        ):
            return False
        if self._devices[place.device].device.allow_multiple:
            return True
        return any(
            one.device != place.device and one.resources & place.resources
            for one in self._candidates()
        )

    def _required_holders(self, place: _Candidate) -> subsets.Members | None:
        """Who has to go for one device; None where there are several ways."""
        if self._is_free(place, frozenset()) or not self._is_free(place, place.nearby):
            return frozenset()
        forced = frozenset(
            one for one in place.nearby if not self._is_free(place, place.nearby - {one})
        )
        return forced if self._is_free(place, forced) else None

    def _is_free(self, place: _Candidate, gone: subsets.Members) -> bool:
        key = (place, gone & place.nearby)
        if key not in self._free:
            self._budget.spend(step_budget.CHECK_STEPS)
            self._free[key] = self._check_free(place, key[1])
        return self._free[key]

    def _check_free(self, place: _Candidate, gone: subsets.Members) -> bool:
        view = self._cached_view(gone)
        spot = self._devices[place.device]
        spot = spot._replace(holders=view.holders(spot.id))
        way = self._query.requests[place.request].subrequests[place.subrequest]
        offer = candidates.find_candidates(way, [spot], self._shares, self._filters[place.request])
        if not offer.indexes or offer.unavailable:
            return False
        claim = self._query.requests[place.request].claim_index
        return counters.CounterTracker(view, [spot]).can_allocate(0, offer, claim)

    def _cached_view(self, gone: subsets.Members) -> without_pods.WithoutPods:
        if gone not in self._views:
            self._views[gone] = self._build_view(gone)
        return self._views[gone]

    def _build_view(self, gone: Iterable[int]) -> without_pods.WithoutPods:
        return without_pods.WithoutPods(
            self._view, [one for at in gone for one in self._groups[at]]
        )


def _holders_by_resource(
    view: snapshot.Snapshot, shares: Sequence[pools.Share], there: Sequence[holders.HolderGroup]
) -> dict[_ResourceKey, set[int]]:
    """By counter set and by device, the tenants who have any of it."""
    users: dict[str, set[int]] = {}
    for at, party in enumerate(there):
        for lease in (lease for tenant in party for lease in tenant.claims):
            users.setdefault(lease.claim, set()).add(at)
    found: dict[_ResourceKey, set[int]] = {}
    for share in shares:
        key = (share.pool.driver, share.pool.name)
        for name, claim in holders.pool_holdings(view, share.pool):
            for group in _resource_keys(key, name, share.pool):
                found.setdefault(group, set()).update(users.get(claim, ()))
    return found


def _resource_keys(key: snapshot.PoolKey, name: str, of: pools.Pool) -> Iterator[_ResourceKey]:
    """What a device has in common with others: itself, and the counter sets that it draws on."""
    yield key, f"device {name}"
    device = of.devices.get(name)
    for one in device.consumes if device else ():
        yield key, f"counters {one.set}"
