"""Candidate devices of a node for each request, in order of preference, and rejection reasons.

Only conditions that do not depend on other devices of the workload are checked here; `search`
does the rest. A selector that fails on a device is an error for the whole node, as in the
reference, if it is met before a solution (KEP-4381).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from driver import names, reasons
from driver.resources import quantities
from driver.resources.cel import selector as cel
from driver.resources.core import nodes
from driver.resources.dra import capacities, claims, pools, slices
from driver.scheduling.allocator import requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import snapshot


class NodeDevice(NamedTuple):
    """A device that a node reaches."""

    id: claims.DeviceId
    device: slices.Device
    slice: slices.Slice
    pool: pools.Pool
    problem: str
    holders: Sequence[snapshot.Holder]


DeviceCheck = Callable[[NodeDevice, requests.SubRequest], reasons.Reason | None]
"""Returns why a device is rejected for a request beyond the API's rules; None if it is not."""


def allow_all(_spot: NodeDevice, _way: requests.SubRequest) -> None:
    """Reject nothing beyond the API."""


ByNeedCheck = Callable[[requests.SubRequest], bool]
"""Returns whether a request leaves the kind of part of a GPU open."""


def never_by_need(_way: requests.SubRequest) -> bool:
    """Return False: the request names the kind of device."""
    return False


@dataclass(slots=True)
class RequestCandidates:
    """Devices for one subrequest, as indexes into the node's devices.

    `rejected` are those that it cannot have now, with the reason, `selector_errors` those on which
    a selector fails. `consumption` is what a share of a device
    consumes of its capacities. For All, `unavailable` are those without which it cannot be had, and
    `error` says why nothing can be decided for the node at all, whatever the alternatives.
    `by_need`: of several kinds of parts of a GPU, the one with the least memory is selected.
    """

    subrequest: requests.SubRequest
    by_need: bool = False
    indexes: list[int] = field(default_factory=list)
    selector_errors: dict[int, str] = field(default_factory=dict)
    consumption: dict[int, Mapping[str, quantities.Quantity]] = field(default_factory=dict)
    rejected: MutableMapping[int, reasons.Reason] = field(default_factory=dict)
    unavailable: set[int] = field(default_factory=set)
    error: str = ""

    @property
    def count(self) -> int:
        """Number of devices that the subrequest needs; All needs at least one."""
        return (
            max(len(self.indexes), 1)
            if self.subrequest.request.all_devices
            else self.subrequest.request.count
        )

    @property
    def rejections(self) -> Counter[reasons.Reason]:
        """Number of rejected devices by reason."""
        return Counter(self.rejected.values())

    @property
    def rejection_counts(self) -> allocator_types.ReasonCounts:
        """Rejected devices by reason."""
        return tuple(sorted(self.rejections.items()))


def node_devices(view: snapshot.Snapshot, node: nodes.Node) -> tuple[NodeDevice, ...]:
    """Return the devices that a node reaches, in the order of pools, slices and devices."""
    return tuple(
        device
        for share in view.reachable_pools(node.name)
        for resource_slice, devices in share.slices
        for device in _pool_devices(view, share, resource_slice, devices)
    )


def devices_at(
    view: snapshot.Snapshot, node: nodes.Node, indexes: Iterable[int]
) -> Mapping[int, NodeDevice]:
    """Return the devices of a node at some indexes."""
    remaining = {*indexes}
    by_index: dict[int, NodeDevice] = {}
    start = 0
    for share in view.reachable_pools(node.name):
        for resource_slice, devices in share.slices:
            inside = [index for index in remaining if start <= index < start + len(devices)]
            chosen = [devices[index - start] for index in inside]
            by_index |= zip(inside, _pool_devices(view, share, resource_slice, chosen), strict=True)
            start += len(devices)
    return by_index


def _pool_devices(
    view: snapshot.Snapshot,
    share: pools.NodePool,
    resource_slice: slices.Slice,
    devices: Iterable[slices.Device],
) -> Iterator[NodeDevice]:
    driver, name, problem = share.pool.driver, share.pool.name, share.problem
    used = view.used_devices(share.pool)
    for device in devices:
        identity = claims.DeviceId(driver, name, device.name)
        holders = view.holders(identity) if device.name in used else ()
        yield NodeDevice(identity, device, resource_slice, share.pool, problem, holders)


@dataclass(frozen=True, slots=True)
class DeviceFilter:
    """Checks of devices beyond the API; taints of `ignored_taints` keys do not count.

    With `ignores_unknown_fields` a device is judged by the fields that are known here: whoever
    allocates it may know the others.
    """

    ignored_taints: frozenset[str] = frozenset()
    check: DeviceCheck = allow_all
    by_need: ByNeedCheck = never_by_need
    ignores_unknown_fields: bool = False


def find_candidates(
    subrequest: requests.SubRequest,
    node_devices: Sequence[NodeDevice],
    shares: Sequence[pools.NodePool],
    device_filter: DeviceFilter,
) -> RequestCandidates:
    """Return the node's candidates for a subrequest."""
    options = RequestCandidates(subrequest, device_filter.by_need(subrequest))
    for index, device in enumerate(node_devices):
        add_device(options, index, device, device_filter)
    if subrequest.request.all_devices:
        incomplete = next((share for share in shares if share.problem), None)
        options.error = (
            f"pool {incomplete.pool.name} {incomplete.problem}" if incomplete else options.error
        )
    return options


def add_device(
    options: RequestCandidates, index: int, device: NodeDevice, device_filter: DeviceFilter
) -> None:
    """Add a device of a node to the candidates, or why the request cannot have it now."""
    add = _add_required if options.subrequest.request.all_devices else _add_if_free
    add(options, index, device, device_filter)


def _add_if_free(
    options: RequestCandidates, index: int, device: NodeDevice, device_filter: DeviceFilter
) -> None:
    """Add the device if it matches and is free now."""
    subrequest = options.subrequest
    if device.problem:
        options.rejected[index] = reasons.Reason.POOL_INCOMPLETE
        return
    matched = subrequest.matches(device.id.driver, device.device)
    if matched is False:
        options.rejected[index] = reasons.Reason.SELECTOR_MISMATCH
        return
    reason = rejection(subrequest, device, device_filter)
    allocated = _is_allocated(device) and not subrequest.request.admin_access
    if isinstance(matched, cel.EvaluationFailure):
        # A device in use is skipped first, as in the reference, so it is no error.
        options.rejected[index] = reasons.Reason.SELECTOR_FAILED
        if not allocated:
            options.selector_errors[index] = matched.why
            options.indexes.append(index)
        return
    used = not subrequest.request.admin_access
    consumption, shortage = _consumption(subrequest, device, used=used)
    reason = reason or shortage or (reasons.Reason.DEVICE_IN_USE if allocated else None)
    if reason is not None:
        options.rejected[index] = reason
        return
    options.indexes.append(index)
    options.consumption[index] = consumption


def _add_required(
    options: RequestCandidates, index: int, device: NodeDevice, device_filter: DeviceFilter
) -> None:
    """Add the device if it matches: All needs it, in use or not."""
    subrequest = options.subrequest
    matched = subrequest.matches(device.id.driver, device.device)
    if matched is False:
        options.rejected[index] = reasons.Reason.SELECTOR_MISMATCH
        return
    if isinstance(matched, cel.EvaluationFailure):
        options.rejected[index] = reasons.Reason.SELECTOR_FAILED
        options.error = f"a selector fails on {device.id.device}: {matched.why}"
        return
    consumption, shortage = _consumption(subrequest, device, used=False)
    if shortage is not None:
        options.rejected[index] = shortage
        return
    allocated = _is_allocated(device) and not subrequest.request.admin_access
    reason = rejection(subrequest, device, device_filter) or (
        reasons.Reason.DEVICE_IN_USE if allocated else None
    )
    options.indexes.append(index)
    options.consumption[index] = consumption
    if reason is not None:
        options.rejected[index] = reason
        options.unavailable.add(index)


def rejection(
    subrequest: requests.SubRequest, device: NodeDevice, device_filter: DeviceFilter
) -> reasons.Reason | None:
    """Return why a subrequest may not have a device, whatever is left of it; None if it may."""
    unknown = device.device.unsupported or device.slice.unsupported
    if unknown and not device_filter.ignores_unknown_fields:
        return reasons.Reason.UNSUPPORTED_DEVICE_FIELDS
    keys = _untolerated_taints(subrequest, device.device, device_filter.ignored_taints)
    if keys:
        cordoned = keys == {names.CORDONED_TAINT}
        return reasons.Reason.DEVICE_CORDONED if cordoned else reasons.Reason.DEVICE_TAINTED
    return device_filter.check(device, subrequest)


def _untolerated_taints(
    subrequest: requests.SubRequest, device: slices.Device, disregarded: frozenset[str]
) -> frozenset[str]:
    """Return the keys of the taints that the subrequest does not tolerate."""
    return frozenset(
        taint.key
        for taint in device.taints
        if taint.blocks
        and taint.key not in disregarded
        and not any(
            t.tolerates(taint.key, taint.value, taint.effect)
            for t in subrequest.request.tolerations
        )
    )


def _is_allocated(device: NodeDevice) -> bool:
    """Return whether a claim has the device for itself."""
    return any(not holder.result.share_id for holder in device.holders)


def _consumption(
    subrequest: requests.SubRequest, node_device: NodeDevice, *, used: bool
) -> tuple[Mapping[str, quantities.Quantity], reasons.Reason | None]:
    """Return what the request consumes of each capacity; a reason if it is short (KEP-5075).

    A device that is not shared is not consumed: the amounts are a mere filter. `used` subtracts
    what others have of it.
    """
    request, device = subrequest.request, node_device.device
    if not request.minimums and not device.allow_multiple:
        return {}, None
    if any(name not in device.capacity for name in request.minimums):
        return {}, reasons.Reason.INSUFFICIENT_CAPACITY
    consumption: dict[str, quantities.Quantity] = {}
    for name, capacity in device.capacity.items():
        amount = capacities.consumed_capacity(capacity, request.minimums.get(name))
        if (
            amount is None
            or amount.nanos < 0
            or _available(node_device, name, used=used) < amount.nanos
        ):
            return {}, reasons.Reason.INSUFFICIENT_CAPACITY
        consumption[name] = amount
    return (consumption if device.allow_multiple else {}), None


def _available(device: NodeDevice, name: str, *, used: bool) -> int:
    """Return what is left of a capacity, in nano-units."""
    value = device.device.capacity[name].value.nanos
    return value - held_capacity(device, name) if used else value


def held_capacity(device: NodeDevice, name: str) -> int:
    """Return what others have of a capacity, in nano-units."""
    return sum(
        amount.nanos
        for holder in device.holders
        if holder.result.share_id and (amount := holder.result.consumed.get(name))
    )
