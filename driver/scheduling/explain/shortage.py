"""What is short on one node: how much a request needs of one device, and how much there is. Pure.

It explains a refusal and decides nothing: requests are taken one after the other, devices as they
come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from driver import ids, names
from driver.resources import quantities
from driver.resources.core import nodes
from driver.resources.dra import attributes, capacities, pools
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as requested
from driver.scheduling.allocator.constraints import counters
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.explain import step_budget
from driver.scheduling.snapshot import snapshot


@dataclass(frozen=True, slots=True)
class CapacityGap:
    """One device would need `asked` of a capacity; the most that any has is `free`, of `device`."""

    node: ids.NodeName
    capacity: str
    requested: quantities.Quantity
    free: quantities.Quantity
    device: str


@dataclass(frozen=True, slots=True)
class CountGap:
    """So many devices of a `kind` would be needed of one node, `free` of them can be had.

    `kind` is a MIG profile, `share` or `GPU`; "" where the node has none that would do.
    """

    node: ids.NodeName
    kind: str
    requested: int
    free: int


@dataclass(frozen=True, slots=True)
class NodeResourceGap:
    """The node itself lacks a resource: `cpu` in milli-cores, all else in its unit."""

    node: ids.NodeName
    resource: str
    requested: int
    free: int


Gap = CapacityGap | CountGap | NodeResourceGap


def find_gap(
    view: snapshot.Snapshot, asked: step_budget.WorkloadQuery, node: nodes.Node
) -> Gap | None:
    """What is short first; None where it is no amount and no number, but how devices combine."""
    lack = (
        None
        if asked.workload.is_bound
        else filters.insufficient_resource(view, node, asked.workload.pod)
    )
    if lack is not None:
        return NodeResourceGap(node.name, lack.resource, lack.requested, max(lack.free, 0))
    return _DeviceGaps(view, asked, node).gap()


@dataclass(frozen=True, slots=True)
class _RequestFill:
    """How many devices a request could have, and the way for which they were counted."""

    claim: int
    subrequest: requested.SubRequest
    count: int
    requested: int


class _DeviceGaps:
    def __init__(
        self, view: snapshot.Snapshot, asked: step_budget.WorkloadQuery, node: nodes.Node
    ) -> None:
        self._view = view
        self._query = asked
        self._node = node
        self._devices = candidates.node_devices(view, node)
        self._shares = view.reachable_pools(node.name)

    def gap(self) -> Gap | None:
        found = [*self._fill_requests()]
        short = next((one for one in found if one.count < one.requested), None)
        if short is None:
            return None
        amount = self._capacity_gap(short)
        if amount is not None:
            return amount
        alike = [one for one in found if one.subrequest.matchers == short.subrequest.matchers]
        wanted, had = sum(one.requested for one in alike), sum(one.count for one in alike)
        return CountGap(self._node.name, self._kind(short), wanted, had)

    def _fill_requests(self) -> Iterator[_RequestFill]:
        """Each request's way of which most can be had, devices as they come."""
        taken = counters.CounterTracker(self._view, self._devices)
        for want in self._query.requests:
            made = [self._candidates(want.claim_index, way) for way in want.subrequests]
            best = max(
                made, key=lambda one: min(len(one.indexes) - len(one.unavailable), one.count)
            )
            had = 0
            for place in best.indexes:
                if (
                    had < best.count
                    and place not in best.unavailable
                    and place not in best.selector_errors
                ):
                    had += taken.try_allocate(place, best, want.claim_index)
            yield _RequestFill(want.claim_index, best.subrequest, had, best.count)

    def _candidates(self, claim: int, way: requested.SubRequest) -> candidates.RequestCandidates:
        judge = self._query.filters.device_filter(claim)
        return candidates.find_candidates(way, self._devices, self._shares, judge)

    def _capacity_gap(self, short: _RequestFill) -> CapacityGap | None:
        """The first capacity that is asked and that no device has so much of."""
        could = [*self._matching_devices(short)]
        for name, wanted in short.subrequest.request.minimums.items():
            found = [
                (_free_capacity(spot, name) if free else 0, spot)
                for spot, free in could
                if _has_capacity(spot, name)
            ]
            if not found:
                continue
            most, spot = max(found, key=lambda one: one[0])
            needed = max(_consumed_amount(spot, name, wanted), wanted.nanos)
            if most < needed:
                form = spot.device.capacity[name].value
                free = quantities.like(max(most, 0), form)
                asked = quantities.like(needed, form) if needed != wanted.nanos else wanted
                return CapacityGap(self._node.name, name, asked, free, spot.device.name)
        return None

    def _matching_devices(
        self, short: _RequestFill
    ) -> Iterator[tuple[candidates.NodeDevice, bool]]:
        """Devices that are asked for, whatever they have, and whether any of it could be had."""
        judge = self._query.filters.device_filter(short.claim)
        for spot in self._devices:
            if short.subrequest.matches(spot.id.driver, spot.device) is not True or spot.problem:
                continue
            held = any(not one.result.share_id for one in spot.holders)
            barred = held or candidates.rejection(short.subrequest, spot, judge) is not None
            yield spot, not barred and _has_counters(self._view, spot)

    def _kind(self, short: _RequestFill) -> str:
        kinds = {_kind(self._view.driver, spot) for spot, _ in self._matching_devices(short)}
        return kinds.pop() if len(kinds) == 1 else ("GPU" if kinds else "")


def _has_capacity(spot: candidates.NodeDevice, name: str) -> bool:
    return name in spot.device.capacity


def _free_capacity(spot: candidates.NodeDevice, name: str) -> int:
    return spot.device.capacity[name].value.nanos - candidates.held_capacity(spot, name)


def _consumed_amount(spot: candidates.NodeDevice, name: str, wanted: quantities.Quantity) -> int:
    """What is taken for an amount that is asked: it may be rounded up to a step."""
    taken = capacities.consumed(spot.device.capacity[name], wanted)
    return 0 if taken is None or not spot.device.allow_multiple else taken.nanos


def _has_counters(view: snapshot.Snapshot, spot: candidates.NodeDevice) -> bool:
    """Whether what the device draws on counters is there."""
    if spot.device.allow_multiple and spot.holders:
        return True
    left = view.remaining_counters(spot.pool)
    return all(left.get(key, 0) >= amount for key, amount in pools.drawn(spot.device))


def _kind(driver: str, spot: candidates.NodeDevice) -> str:
    profile = _attribute(driver, spot, names.ATTR_PROFILE)
    if profile:
        return profile
    return "share" if _attribute(driver, spot, names.ATTR_TYPE) == names.TYPE_SHARE else "GPU"


def _attribute(driver: str, spot: candidates.NodeDevice, name: str) -> str:
    value = attributes.lookup(spot.device.attributes, spot.id.driver, f"{driver}/{name}")
    return value if isinstance(value, str) else ""


def largest_gap(found: Sequence[Gap | None]) -> Gap | None:
    """Of what nodes are short of, that of the node that has most."""
    known = [one for one in found if one is not None]
    return max(known, key=_gap_rank, default=None)


def _gap_rank(gap: Gap) -> tuple[bool, float, str]:
    """How much of what is asked there is; what a node has none of at all comes last."""
    match gap:
        case CapacityGap():
            return True, gap.free.nanos / max(gap.requested.nanos, 1), gap.node
        case CountGap():
            return bool(gap.kind), gap.free / max(gap.requested, 1), gap.node
        case NodeResourceGap():
            return True, gap.free / max(gap.requested, 1), gap.node
