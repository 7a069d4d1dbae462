"""Blockers of each device of a node that a request could have. Pure.

Holders that are evicted together form a group. Sets of groups are excluded, and never one that
would free enough: devices are checked one by one, so several at once may have more blockers.
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
    """A device for a subrequest; `nearby` are the groups that may block it."""

    request: int
    subrequest: int
    device: int
    nearby: subsets.Members
    resources: frozenset[_ResourceKey]


@dataclass(frozen=True, slots=True)
class DeviceBlockers:
    """Blockers of one device: `required` groups and, if those do not free it, some alternatives.

    The device is not free without them, whichever others are evicted.
    """

    required: subsets.Members
    alternatives: subsets.Members


@dataclass(frozen=True, slots=True)
class NodeBlockers:
    """Number of devices needed, and the blockers of each candidate device.

    `is_shared`: a device may serve more than one request.
    """

    count: int
    devices: tuple[DeviceBlockers, ...]
    is_shared: bool


class BlockerFinder:
    """Blockers on one node; groups of holders are identified by their indexes."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        query: step_budget.WorkloadQuery,
        node: nodes.Node,
        groups: Sequence[holders.HolderGroup],
        budget: step_budget.StepBudget,
    ) -> None:
        self._view = view
        self._query = query
        self._groups = groups
        self._budget = budget
        self._views: dict[subsets.Members, without_pods.WithoutPods] = {}
        self._devices = candidates.node_devices(self._build_view(range(len(groups))), node)
        self._shares = view.reachable_pools(node.name)
        self._filters = [
            query.filters.device_filter(request.claim_index) for request in query.requests
        ]
        self._nearby = _holders_by_resource(view, self._shares, groups)
        self._free: dict[tuple[_Candidate, subsets.Members], bool] = {}
        self._overdrawn: dict[snapshot.PoolKey, bool] = {}
        self._is_unknown = False
        self._by_request = self._find_candidates()

    def candidate_sets(self) -> list[subsets.Members]:
        """Return sets of which every minimal sufficient set is a union."""
        if self._is_unknown:
            return [frozenset([index]) for index in range(len(self._groups))]
        sets: dict[subsets.Members, None] = {}
        for candidate in self._candidates():
            required = None if self._is_joint(candidate) else self._required_holders(candidate)
            if required is None:
                sets |= dict.fromkeys(frozenset([index]) for index in candidate.nearby)
            elif required:
                sets[required] = None
        return sorted(sets, key=lambda members: (len(members), sorted(members)))

    def may_fit(self, removed: subsets.Members) -> bool:
        """Return whether enough devices are free without some groups, each taken for itself."""
        if self._is_unknown:
            return True
        union: set[int] = set()
        needed = 0
        for request, subrequests in zip(self._query.requests, self._by_request, strict=True):
            free_by_way = [
                [candidate for candidate in places if self._is_free(candidate, removed)]
                for places in subrequests
            ]
            needs = [
                self._device_count(request.subrequests[index], places)
                for index, places in enumerate(subrequests)
            ]
            if all(
                len(free_candidates) < need
                for free_candidates, need in zip(free_by_way, needs, strict=True)
            ):
                return False
            if len(subrequests) == 1 and not self._is_repeatable(subrequests[0]):
                union.update(candidate.device for candidate in free_by_way[0])
                needed += needs[0]
        return len(union) >= needed

    def node_blockers(self) -> NodeBlockers | None:
        """Return the blockers of a single request without alternatives; None for any other."""
        if self._is_unknown or len(self._by_request) != 1 or len(self._by_request[0]) != 1:
            return None
        subrequest, candidate_list = self._query.requests[0].subrequests[0], self._by_request[0][0]
        if subrequest.request.all_devices:
            return None
        devices = (
            self._device_blockers(candidate)
            for candidate in candidate_list
            if self._is_free(candidate, candidate.nearby)
        )
        return NodeBlockers(
            self._device_count(subrequest, candidate_list),
            tuple(devices),
            self._is_repeatable(candidate_list),
        )

    def _device_blockers(self, candidate: _Candidate) -> DeviceBlockers:
        required = frozenset(
            holder
            for holder in candidate.nearby
            if not self._is_free(candidate, candidate.nearby - {holder})
        )
        free = self._is_free(candidate, required)
        return DeviceBlockers(required, frozenset() if free else candidate.nearby - required)

    def _device_count(
        self, subrequest: requested.SubRequest, candidate_list: Sequence[_Candidate]
    ) -> int:
        if subrequest.request.all_devices:
            return max(len(candidate_list), 1)
        if subrequest.request.admin_access or self._is_repeatable(candidate_list):
            return 1
        return subrequest.request.count

    def _is_repeatable(self, candidate_list: Iterable[_Candidate]) -> bool:
        """Return whether a device may serve more than once."""
        return any(
            self._devices[candidate.device].device.allow_multiple
            or self._query.requests[candidate.request]
            .subrequests[candidate.subrequest]
            .request.admin_access
            for candidate in candidate_list
        )

    def _find_candidates(self) -> list[list[list[_Candidate]]]:
        """Return the devices that would match without any holder, by request and subrequest."""
        by_request: list[list[list[_Candidate]]] = []
        for index, request in enumerate(self._query.requests):
            by_subrequest: list[list[_Candidate]] = []
            for number, subrequest in enumerate(request.subrequests):
                options = candidates.find_candidates(
                    subrequest, self._devices, self._shares, self._filters[index]
                )
                self._budget.spend(step_budget.CHECK_STEPS * len(self._devices))
                # An error ends the search of a node, so its blockers are not known.
                self._is_unknown = self._is_unknown or bool(
                    options.error or options.selector_errors
                )
                by_subrequest.append(
                    [self._candidate(index, number, position) for position in options.indexes]
                )
            by_request.append(by_subrequest)
        return by_request

    def _candidate(self, request: int, subrequest: int, index: int) -> _Candidate:
        device = self._devices[index]
        key = (device.pool.driver, device.pool.name)
        groups = frozenset(_resource_keys(key, device.device.name, device.pool))
        near = {holder for group in groups for holder in self._nearby.get(group, ())}
        if self._is_overdrawn(device.pool):
            # One overdrawn counter excludes every device of the pool that draws on any.
            near.update(
                holder
                for (pool_key, _), users in self._nearby.items()
                if pool_key == key
                for holder in users
            )
        return _Candidate(request, subrequest, index, frozenset(near), groups)

    def _is_overdrawn(self, pool: pools.Pool) -> bool:
        key = (pool.driver, pool.name)
        if key not in self._overdrawn:
            self._overdrawn[key] = min(self._view.remaining_counters(pool).values(), default=0) < 0
        return self._overdrawn[key]

    def _candidates(self) -> Iterator[_Candidate]:
        return (
            candidate
            for subrequests in self._by_request
            for candidate_list in subrequests
            for candidate in candidate_list
        )

    def _is_joint(self, candidate: _Candidate) -> bool:
        """Return whether several devices of the workload may be on the candidate's GPU."""
        requests = self._query.requests
        if len(requests) == 1 and all(
            subrequest.request.count == 1 and not subrequest.request.all_devices
            for subrequest in requests[0].subrequests
        ):
            return False
        if self._devices[candidate.device].device.allow_multiple:
            return True
        return any(
            other.device != candidate.device and other.resources & candidate.resources
            for other in self._candidates()
        )

    def _required_holders(self, candidate: _Candidate) -> subsets.Members | None:
        """Return the groups that block a device; None if there are alternatives."""
        if self._is_free(candidate, frozenset()) or not self._is_free(candidate, candidate.nearby):
            return frozenset()
        required = frozenset(
            holder
            for holder in candidate.nearby
            if not self._is_free(candidate, candidate.nearby - {holder})
        )
        return required if self._is_free(candidate, required) else None

    def _is_free(self, candidate: _Candidate, removed: subsets.Members) -> bool:
        key = (candidate, removed & candidate.nearby)
        if key not in self._free:
            self._budget.spend(step_budget.CHECK_STEPS)
            self._free[key] = self._check_free(candidate, key[1])
        return self._free[key]

    def _check_free(self, candidate: _Candidate, removed: subsets.Members) -> bool:
        view = self._cached_view(removed)
        device = self._devices[candidate.device]
        device = device._replace(holders=view.holders(device.id))
        subrequest = self._query.requests[candidate.request].subrequests[candidate.subrequest]
        options = candidates.find_candidates(
            subrequest, [device], self._shares, self._filters[candidate.request]
        )
        if not options.indexes or options.unavailable:
            return False
        claim = self._query.requests[candidate.request].claim_index
        return counters.CounterTracker(view, [device]).can_allocate(0, options, claim)

    def _cached_view(self, removed: subsets.Members) -> without_pods.WithoutPods:
        if removed not in self._views:
            self._views[removed] = self._build_view(removed)
        return self._views[removed]

    def _build_view(self, gone: Iterable[int]) -> without_pods.WithoutPods:
        return without_pods.WithoutPods(
            self._view, [holder for index in gone for holder in self._groups[index]]
        )


def _holders_by_resource(
    view: snapshot.Snapshot, shares: Sequence[pools.NodePool], groups: Sequence[holders.HolderGroup]
) -> dict[_ResourceKey, set[int]]:
    """Return the groups that use any of a resource, by counter set and by device."""
    users: dict[str, set[int]] = {}
    for index, group in enumerate(groups):
        for held_claim in (held_claim for holder in group for held_claim in holder.claims):
            users.setdefault(held_claim.claim, set()).add(index)
    by_resource: dict[_ResourceKey, set[int]] = {}
    for share in shares:
        key = (share.pool.driver, share.pool.name)
        for name, claim in holders.pool_holdings(view, share.pool):
            for resource in _resource_keys(key, name, share.pool):
                by_resource.setdefault(resource, set()).update(users.get(claim, ()))
    return by_resource


def _resource_keys(key: snapshot.PoolKey, name: str, pool: pools.Pool) -> Iterator[_ResourceKey]:
    """Yield the resources that a device shares with others: itself, and its counter sets."""
    yield key, f"device {name}"
    device = pool.devices.get(name)
    for counter_set in device.consumes if device else ():
        yield key, f"counters {counter_set.set}"
