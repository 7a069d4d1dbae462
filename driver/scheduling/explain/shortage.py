"""Shortage on one node: what a request needs of one device, and what is there. Pure.

It explains a rejection and decides nothing: requests and devices are taken in order.
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
    """A device would need `requested` of a capacity; the most available is `free`, of `device`."""

    node: ids.NodeName
    capacity: str
    requested: quantities.Quantity
    free: quantities.Quantity
    device: str


@dataclass(frozen=True, slots=True)
class CountGap:
    """`requested` devices of a `kind` are needed on one node, `free` of them are available.

    `kind` is a MIG profile, `share` or `GPU`; "" if the node has no matching one.
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
    view: snapshot.Snapshot, query: step_budget.WorkloadQuery, node: nodes.Node
) -> Gap | None:
    """Return the first shortage; None if it is no amount or number, but how devices combine."""
    lack = (
        None
        if query.workload.is_bound
        else filters.insufficient_resource(view, node, query.workload.pod)
    )
    if lack is not None:
        return NodeResourceGap(node.name, lack.resource, lack.requested, max(lack.free, 0))
    return _DeviceGaps(view, query, node).gap()


@dataclass(frozen=True, slots=True)
class _RequestFill:
    """Number of devices that a request gets, and the subrequest for which they were counted."""

    claim: int
    subrequest: requested.SubRequest
    count: int
    requested: int


class _DeviceGaps:
    def __init__(
        self, view: snapshot.Snapshot, query: step_budget.WorkloadQuery, node: nodes.Node
    ) -> None:
        self._view = view
        self._query = query
        self._node = node
        self._devices = candidates.node_devices(view, node)
        self._shares = view.reachable_pools(node.name)

    def gap(self) -> Gap | None:
        fills = [*self._fill_requests()]
        short = next((fill for fill in fills if fill.count < fill.requested), None)
        if short is None:
            return None
        amount = self._capacity_gap(short)
        if amount is not None:
            return amount
        alike = [fill for fill in fills if fill.subrequest.matchers == short.subrequest.matchers]
        requested, allocated = (
            sum(fill.requested for fill in alike),
            sum(fill.count for fill in alike),
        )
        return CountGap(self._node.name, self._kind(short), requested, allocated)

    def _fill_requests(self) -> Iterator[_RequestFill]:
        """Yield each request's subrequest with the most devices, devices in order."""
        tracker = counters.CounterTracker(self._view, self._devices)
        for request in self._query.requests:
            alternatives = [
                self._candidates(request.claim_index, subrequest)
                for subrequest in request.subrequests
            ]
            best = max(
                alternatives,
                key=lambda alternative: min(
                    len(alternative.indexes) - len(alternative.unavailable), alternative.count
                ),
            )
            allocated = 0
            for index in best.indexes:
                if (
                    allocated < best.count
                    and index not in best.unavailable
                    and index not in best.selector_errors
                ):
                    allocated += tracker.try_allocate(index, best, request.claim_index)
            yield _RequestFill(request.claim_index, best.subrequest, allocated, best.count)

    def _candidates(
        self, claim: int, subrequest: requested.SubRequest
    ) -> candidates.RequestCandidates:
        device_filter = self._query.filters.device_filter(claim)
        return candidates.find_candidates(subrequest, self._devices, self._shares, device_filter)

    def _capacity_gap(self, short: _RequestFill) -> CapacityGap | None:
        """Return the first capacity of which no device has the requested amount."""
        matching = [*self._matching_devices(short)]
        for name, minimum in short.subrequest.request.minimums.items():
            free_devices = [
                (_free_capacity(device, name) if free else 0, device)
                for device, free in matching
                if _has_capacity(device, name)
            ]
            if not free_devices:
                continue
            most, device = max(free_devices, key=lambda entry: entry[0])
            needed = max(_consumed_amount(device, name, minimum), minimum.nanos)
            if most < needed:
                form = device.device.capacity[name].value
                free = quantities.format_like(max(most, 0), form)
                requested = (
                    quantities.format_like(needed, form) if needed != minimum.nanos else minimum
                )
                return CapacityGap(self._node.name, name, requested, free, device.device.name)
        return None

    def _matching_devices(
        self, short: _RequestFill
    ) -> Iterator[tuple[candidates.NodeDevice, bool]]:
        """Yield matching devices, and whether any of their capacity is available."""
        device_filter = self._query.filters.device_filter(short.claim)
        for device in self._devices:
            if (
                short.subrequest.matches(device.id.driver, device.device) is not True
                or device.problem
            ):
                continue
            held = any(not holder.result.share_id for holder in device.holders)
            barred = (
                held or candidates.rejection(short.subrequest, device, device_filter) is not None
            )
            yield device, not barred and _has_counters(self._view, device)

    def _kind(self, short: _RequestFill) -> str:
        kinds = {_kind(self._view.driver, device) for device, _ in self._matching_devices(short)}
        return kinds.pop() if len(kinds) == 1 else ("GPU" if kinds else "")


def _has_capacity(device: candidates.NodeDevice, name: str) -> bool:
    return name in device.device.capacity


def _free_capacity(device: candidates.NodeDevice, name: str) -> int:
    return device.device.capacity[name].value.nanos - candidates.held_capacity(device, name)


def _consumed_amount(
    device: candidates.NodeDevice, name: str, requested: quantities.Quantity
) -> int:
    """Return what an amount consumes: it may be rounded up to a step."""
    consumed = capacities.consumed_capacity(device.device.capacity[name], requested)
    return 0 if consumed is None or not device.device.allow_multiple else consumed.nanos


def _has_counters(view: snapshot.Snapshot, device: candidates.NodeDevice) -> bool:
    """Return whether the counters that the device draws on are available."""
    if device.device.allow_multiple and device.holders:
        return True
    left = view.remaining_counters(device.pool)
    return all(left.get(key, 0) >= amount for key, amount in pools.counter_draws(device.device))


def _kind(driver: str, device: candidates.NodeDevice) -> str:
    profile = _attribute(driver, device, names.ATTR_PROFILE)
    if profile:
        return profile
    return "share" if _attribute(driver, device, names.ATTR_TYPE) == names.TYPE_SHARE else "GPU"


def _attribute(driver: str, device: candidates.NodeDevice, name: str) -> str:
    value = attributes.find_attribute(
        device.device.attributes, device.id.driver, f"{driver}/{name}"
    )
    return value if isinstance(value, str) else ""


def largest_gap(gaps_or_none: Sequence[Gap | None]) -> Gap | None:
    """Return the gap of the node that has most."""
    gaps = [gap for gap in gaps_or_none if gap is not None]
    return max(gaps, key=_gap_rank, default=None)


def _gap_rank(gap: Gap) -> tuple[bool, float, str]:
    """Return the available part of the request; a node that has none at all comes last."""
    match gap:
        case CapacityGap():
            return True, gap.free.nanos / max(gap.requested.nanos, 1), gap.node
        case CountGap():
            return bool(gap.kind), gap.free / max(gap.requested, 1), gap.node
        case NodeResourceGap():
            return True, gap.free / max(gap.requested, 1), gap.node
