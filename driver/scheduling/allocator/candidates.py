"""What a node has for each request: devices in the order of preference, and why others do not do.

Only what does not depend on other devices of the same workload is judged here; `search` does the
rest. A selector that fails on a device is an error for the whole node, as in the reference, if
it is met before a solution (KEP-4381).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""Why a device must not be given to a request, beyond what the API says; None where it may."""


def allow_all(_spot: NodeDevice, _way: requests.SubRequest) -> None:
    """Nothing is judged beyond the API."""


ByNeedCheck = Callable[[requests.SubRequest], bool]
"""Whether a request leaves open which kind of part of a GPU it gets."""


def never_by_need(_way: requests.SubRequest) -> bool:
    """What a request gets is what it asks."""
    return False


@dataclass(slots=True)
class RequestCandidates:
    """The devices for one way, as places in the list of spots.

    `failing` are those on which a selector fails. `takes` is what a share of a device takes of its
    capacities. Of All, `barred` are those without which it cannot be had, and `broken` says why
    nothing can be decided for the node at all, whatever the alternatives. `by_need`: of several
    kinds of parts of a GPU, that of the least memory is to be had.
    """

    subrequest: requests.SubRequest
    by_need: bool = False
    indexes: list[int] = field(default_factory=list)
    selector_errors: dict[int, str] = field(default_factory=dict)
    consumption: dict[int, Mapping[str, quantities.Quantity]] = field(default_factory=dict)
    rejections: Counter[reasons.Reason] = field(default_factory=Counter)
    unavailable: set[int] = field(default_factory=set)
    error: str = ""

    @property
    def count(self) -> int:
        """How many devices the way needs; All needs at least one."""
        return (
            max(len(self.indexes), 1)
            if self.subrequest.request.everything
            else self.subrequest.request.count
        )

    @property
    def rejection_counts(self) -> allocator_types.ReasonCounts:
        """The refusals, by reason."""
        return tuple(sorted(self.rejections.items()))


def node_devices(view: snapshot.Snapshot, node: nodes.Node) -> tuple[NodeDevice, ...]:
    """The devices that a node reaches, in the order of pools, slices and devices."""
    return tuple(
        spot
        for share in view.reachable_pools(node.name)
        for one, devices in share.slices
        for spot in _pool_devices(view, share, one, devices)
    )


def devices_at(
    view: snapshot.Snapshot, node: nodes.Node, places: Iterable[int]
) -> Mapping[int, NodeDevice]:
    """Some of the devices that a node reaches, by their places among all of them."""
    wanted = {*places}
    found: dict[int, NodeDevice] = {}
    start = 0
    for share in view.reachable_pools(node.name):
        for one, devices in share.slices:
            inside = [place for place in wanted if start <= place < start + len(devices)]
            chosen = [devices[place - start] for place in inside]
            found |= zip(inside, _pool_devices(view, share, one, chosen), strict=True)
            start += len(devices)
    return found


def _pool_devices(
    view: snapshot.Snapshot,
    share: pools.Share,
    of: slices.Slice,
    devices: Iterable[slices.Device],
) -> Iterator[NodeDevice]:
    driver, name, problem = share.pool.driver, share.pool.name, share.problem
    used = view.used_devices(share.pool)
    for device in devices:
        identity = claims.DeviceId(driver, name, device.name)
        holders = view.holders(identity) if device.name in used else ()
        yield NodeDevice(identity, device, of, share.pool, problem, holders)


@dataclass(frozen=True, slots=True)
class DeviceFilter:
    """What else is judged of devices for a request; taints of `disregarded` keys do not count."""

    ignored_taints: frozenset[str] = frozenset()
    check: DeviceCheck = allow_all
    by_need: ByNeedCheck = never_by_need


def find_candidates(
    way: requests.SubRequest,
    found: Sequence[NodeDevice],
    shares: Sequence[pools.Share],
    judge: DeviceFilter,
) -> RequestCandidates:
    """What the node has for a way."""
    made = RequestCandidates(way, judge.by_need(way))
    look_at = _add_required if way.request.everything else _add_if_free
    for place, spot in enumerate(found):
        look_at(made, place, spot, judge)
    if way.request.everything:
        wrong = next((one for one in shares if one.problem), None)
        made.error = f"pool {wrong.pool.name} {wrong.problem}" if wrong else made.error
    return made


def _add_if_free(
    made: RequestCandidates, place: int, spot: NodeDevice, judge: DeviceFilter
) -> None:
    """Any device will do that is free now."""
    way = made.subrequest
    if spot.problem:
        made.rejections[reasons.Reason.POOL_INCOMPLETE] += 1
        return
    matched = way.matches(spot.id.driver, spot.device)
    if matched is False:
        made.rejections[reasons.Reason.SELECTOR_MISMATCH] += 1
        return
    reason = rejection(way, spot, judge)
    taken = _is_allocated(spot) and not way.request.admin_access
    if isinstance(matched, cel.Failed):
        # One in use is not looked at (the reference skips it first), so it fails nobody.
        made.rejections[reasons.Reason.SELECTOR_FAILED] += 1
        if not taken:
            made.selector_errors[place] = matched.why
            made.indexes.append(place)
        return
    takes, short = _consumption(way, spot, used=True)
    reason = reason or short or (reasons.Reason.DEVICE_TAKEN if taken else None)
    if reason is not None:
        made.rejections[reason] += 1
        return
    made.indexes.append(place)
    made.consumption[place] = takes


def _add_required(
    made: RequestCandidates, place: int, spot: NodeDevice, judge: DeviceFilter
) -> None:
    """Every device that matches is needed, in use or not."""
    way = made.subrequest
    matched = way.matches(spot.id.driver, spot.device)
    if matched is False:
        made.rejections[reasons.Reason.SELECTOR_MISMATCH] += 1
        return
    if isinstance(matched, cel.Failed):
        made.rejections[reasons.Reason.SELECTOR_FAILED] += 1
        made.error = f"a selector fails on {spot.id.device}: {matched.why}"
        return
    takes, short = _consumption(way, spot, used=False)
    if short is not None:
        made.rejections[short] += 1
        return
    taken = _is_allocated(spot) and not way.request.admin_access
    reason = rejection(way, spot, judge) or (reasons.Reason.DEVICE_TAKEN if taken else None)
    made.indexes.append(place)
    made.consumption[place] = takes
    if reason is not None:
        made.rejections[reason] += 1
        made.unavailable.add(place)


def rejection(
    way: requests.SubRequest, spot: NodeDevice, judge: DeviceFilter
) -> reasons.Reason | None:
    """Why a way may not have a device, whoever has it and however much of it is left."""
    if spot.device.beyond or spot.slice.beyond:
        return reasons.Reason.DEVICE_BEYOND
    keys = _untolerated_taints(way, spot.device, judge.ignored_taints)
    if keys:
        cordoned = keys == {names.CORDONED_TAINT}
        return reasons.Reason.DEVICE_CORDONED if cordoned else reasons.Reason.DEVICE_TAINTED
    return judge.check(spot, way)


def _untolerated_taints(
    way: requests.SubRequest, device: slices.Device, disregarded: frozenset[str]
) -> frozenset[str]:
    """The keys of the taints that keep it off the device."""
    return frozenset(
        taint.key
        for taint in device.taints
        if taint.blocks
        and taint.key not in disregarded
        and not any(
            t.tolerates(taint.key, taint.value, taint.effect) for t in way.request.tolerations
        )
    )


def _is_allocated(spot: NodeDevice) -> bool:
    """Whether a claim has the device for itself."""
    return any(not holder.result.share_id for holder in spot.holders)


def _consumption(
    way: requests.SubRequest, spot: NodeDevice, *, used: bool
) -> tuple[Mapping[str, quantities.Quantity], reasons.Reason | None]:
    """What the request takes of each capacity; a reason where that is not there (KEP-5075).

    Of a device that is not shared nothing is taken: the amounts are a mere filter. `used` counts
    what others have of it.
    """
    request, device = way.request, spot.device
    if not request.minimums and not device.allow_multiple:
        return {}, None
    if any(name not in device.capacity for name in request.minimums):
        return {}, reasons.Reason.CAPACITY_SHORT
    takes: dict[str, quantities.Quantity] = {}
    for name, capacity in device.capacity.items():
        amount = capacities.consumed(capacity, request.minimums.get(name))
        if amount is None or amount.nanos < 0 or _available(spot, name, used=used) < amount.nanos:
            return {}, reasons.Reason.CAPACITY_SHORT
        takes[name] = amount
    return (takes if device.allow_multiple else {}), None


def _available(spot: NodeDevice, name: str, *, used: bool) -> int:
    """What is left of a capacity, in nano-units."""
    value = spot.device.capacity[name].value.nanos
    return value - held_capacity(spot, name) if used else value


def held_capacity(spot: NodeDevice, name: str) -> int:
    """What others have of a capacity, in nano-units."""
    return sum(
        amount.nanos
        for holder in spot.holders
        if holder.result.share_id and (amount := holder.result.consumed.get(name))
    )
