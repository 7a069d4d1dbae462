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


class Spot(NamedTuple):
    """A device that a node reaches."""

    id: claims.DeviceId
    device: slices.Device
    slice: slices.Slice
    pool: pools.Pool
    problem: str
    holders: Sequence[snapshot.Holder]


WhyNot = Callable[[Spot, requests.Way], reasons.Reason | None]
"""Why a device must not be given to a request, beyond what the API says; None where it may."""


def anything(_spot: Spot, _way: requests.Way) -> None:
    """Nothing is judged beyond the API."""


ByNeed = Callable[[requests.Way], bool]
"""Whether a request leaves open which kind of part of a GPU it gets."""


def never(_way: requests.Way) -> bool:
    """What a request gets is what it asks."""
    return False


@dataclass(slots=True)
class Offer:
    """The devices for one way, as places in the list of spots.

    `failing` are those on which a selector fails. `takes` is what a share of a device takes of its
    capacities. Of All, `barred` are those without which it cannot be had, and `broken` says why
    nothing can be decided for the node at all, whatever the alternatives. `by_need`: of several
    kinds of parts of a GPU, that of the least memory is to be had.
    """

    way: requests.Way
    by_need: bool = False
    places: list[int] = field(default_factory=list)
    failing: dict[int, str] = field(default_factory=dict)
    takes: dict[int, Mapping[str, quantities.Quantity]] = field(default_factory=dict)
    refused: Counter[reasons.Reason] = field(default_factory=Counter)
    barred: set[int] = field(default_factory=set)
    broken: str = ""

    @property
    def count(self) -> int:
        """How many devices the way needs; All needs at least one."""
        return max(len(self.places), 1) if self.way.request.everything else self.way.request.count

    @property
    def counts(self) -> allocator_types.Counts:
        """The refusals, by reason."""
        return tuple(sorted(self.refused.items()))


def spots(view: snapshot.Snapshot, node: nodes.Node) -> tuple[Spot, ...]:
    """The devices that a node reaches, in the order of pools, slices and devices."""
    return tuple(
        spot
        for share in view.reachable_pools(node.name)
        for one, devices in share.slices
        for spot in _spots(view, share, one, devices)
    )


def some(view: snapshot.Snapshot, node: nodes.Node, places: Iterable[int]) -> Mapping[int, Spot]:
    """Some of the devices that a node reaches, by their places among all of them."""
    wanted = {*places}
    found: dict[int, Spot] = {}
    start = 0
    for share in view.reachable_pools(node.name):
        for one, devices in share.slices:
            inside = [place for place in wanted if start <= place < start + len(devices)]
            chosen = [devices[place - start] for place in inside]
            found |= zip(inside, _spots(view, share, one, chosen), strict=True)
            start += len(devices)
    return found


def _spots(
    view: snapshot.Snapshot,
    share: pools.Share,
    of: slices.Slice,
    devices: Iterable[slices.Device],
) -> Iterator[Spot]:
    driver, name, problem = share.pool.driver, share.pool.name, share.problem
    used = view.used_devices(share.pool)
    for device in devices:
        identity = claims.DeviceId(driver, name, device.name)
        holders = view.holders(identity) if device.name in used else ()
        yield Spot(identity, device, of, share.pool, problem, holders)


@dataclass(frozen=True, slots=True)
class Judge:
    """What else is judged of devices for a request; taints of `disregarded` keys do not count."""

    disregarded: frozenset[str] = frozenset()
    why_not: WhyNot = anything
    by_need: ByNeed = never


def offer(
    way: requests.Way,
    found: Sequence[Spot],
    shares: Sequence[pools.Share],
    judge: Judge,
) -> Offer:
    """What the node has for a way."""
    made = Offer(way, judge.by_need(way))
    look_at = _every if way.request.everything else _some
    for place, spot in enumerate(found):
        look_at(made, place, spot, judge)
    if way.request.everything:
        wrong = next((one for one in shares if one.problem), None)
        made.broken = f"pool {wrong.pool.name} {wrong.problem}" if wrong else made.broken
    return made


def _some(made: Offer, place: int, spot: Spot, judge: Judge) -> None:
    """Any device will do that is free now."""
    way = made.way
    if spot.problem:
        made.refused[reasons.Reason.POOL_INCOMPLETE] += 1
        return
    matched = way.matches(spot.id.driver, spot.device)
    if matched is False:
        made.refused[reasons.Reason.SELECTOR_MISMATCH] += 1
        return
    reason = why_not(way, spot, judge)
    taken = _taken(spot) and not way.request.admin_access
    if isinstance(matched, cel.Failed):
        # One in use is not looked at (the reference skips it first), so it fails nobody.
        made.refused[reasons.Reason.SELECTOR_FAILED] += 1
        if not taken:
            made.failing[place] = matched.why
            made.places.append(place)
        return
    takes, short = _takes(way, spot, used=True)
    reason = reason or short or (reasons.Reason.DEVICE_TAKEN if taken else None)
    if reason is not None:
        made.refused[reason] += 1
        return
    made.places.append(place)
    made.takes[place] = takes


def _every(made: Offer, place: int, spot: Spot, judge: Judge) -> None:
    """Every device that matches is needed, in use or not."""
    way = made.way
    matched = way.matches(spot.id.driver, spot.device)
    if matched is False:
        made.refused[reasons.Reason.SELECTOR_MISMATCH] += 1
        return
    if isinstance(matched, cel.Failed):
        made.refused[reasons.Reason.SELECTOR_FAILED] += 1
        made.broken = f"a selector fails on {spot.id.device}: {matched.why}"
        return
    takes, short = _takes(way, spot, used=False)
    if short is not None:
        made.refused[short] += 1
        return
    taken = _taken(spot) and not way.request.admin_access
    reason = why_not(way, spot, judge) or (reasons.Reason.DEVICE_TAKEN if taken else None)
    made.places.append(place)
    made.takes[place] = takes
    if reason is not None:
        made.refused[reason] += 1
        made.barred.add(place)


def why_not(way: requests.Way, spot: Spot, judge: Judge) -> reasons.Reason | None:
    """Why a way may not have a device, whoever has it and however much of it is left."""
    if spot.device.beyond or spot.slice.beyond:
        return reasons.Reason.DEVICE_BEYOND
    keys = _untolerated(way, spot.device, judge.disregarded)
    if keys:
        cordoned = keys == {names.CORDONED_TAINT}
        return reasons.Reason.DEVICE_CORDONED if cordoned else reasons.Reason.DEVICE_TAINTED
    return judge.why_not(spot, way)


def _untolerated(
    way: requests.Way, device: slices.Device, disregarded: frozenset[str]
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


def _taken(spot: Spot) -> bool:
    """Whether a claim has the device for itself."""
    return any(not holder.result.share_id for holder in spot.holders)


def _takes(
    way: requests.Way, spot: Spot, *, used: bool
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
        if amount is None or amount.nanos < 0 or _room(spot, name, used=used) < amount.nanos:
            return {}, reasons.Reason.CAPACITY_SHORT
        takes[name] = amount
    return (takes if device.allow_multiple else {}), None


def _room(spot: Spot, name: str, *, used: bool) -> int:
    """What is left of a capacity, in nano-units."""
    value = spot.device.capacity[name].value.nanos
    return value - held_of(spot, name) if used else value


def held_of(spot: Spot, name: str) -> int:
    """What others have of a capacity, in nano-units."""
    return sum(
        amount.nanos
        for holder in spot.holders
        if holder.result.share_id and (amount := holder.result.consumed.get(name))
    )
