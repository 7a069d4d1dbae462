"""Every way to answer the claims on a node, tried one after the other, until the judge finds none
wrong: slow, plain, and with nothing in common with a search.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from tests.oracle import amounts, asked, inventory, scenarios, truth, validity

Raw = dict[str, Any]
Way = tuple[int, Raw, str, tuple[inventory.Placed, ...]]
"""The number of a claim, what is requested, by which name, and devices for it."""
_WAYS, _RESULTS = 800, 32


def solution(
    world: scenarios.World, node: str, believed: truth.Truth
) -> Sequence[Raw] | Literal[False] | None:
    """Allocations without what lies beside their devices; False: there are none; None: too many
    ways to try.
    """
    judge = validity.Judge(world.cluster, node, believed)
    options: list[list[Way]] = []
    for number, claim in enumerate(world.claims):
        for request in claim["spec"]["devices"]["requests"]:
            ways = list(itertools.islice(_ways(judge, number, request), _WAYS + 1))
            options.append(ways)
    if math.prod(map(len, options)) > _WAYS:
        return None
    for way in itertools.product(*options):
        allocations = _written(world, way)
        if _right(world, allocations, judge):
            return allocations
    return False


def _ways(judge: validity.Judge, number: int, request: Raw) -> Iterator[Way]:
    """Each alternative with each set of devices that it could get."""
    for name, body in asked.alternatives(request):
        placements = [device for device in judge.devices.values() if judge.selectable(body, device)]
        count = len(placements)
        if body.get("allocationMode") != "All":
            placements = [placed for placed in placements if _bearable(placed, body)]
            count = body.get("count", 1)
        if 0 < count <= _RESULTS:
            for devices in itertools.combinations(placements, count):
                yield number, body, name, devices


def _bearable(device: inventory.Placed, body: Raw) -> bool:
    return all(validity.tolerated(taint, body.get("tolerations", ())) for taint in device.taints)


def _written(world: scenarios.World, way: Sequence[Way]) -> list[Raw]:
    allocations: list[Raw] = [{"devices": {"results": []}} for _ in world.claims]
    ids = itertools.count(1)
    for number, body, name, devices in way:
        allocations[number]["devices"]["results"] += [
            _result(body, name, device, next(ids)) for device in devices
        ]
    return allocations


def _result(body: Raw, name: str, device: inventory.Placed, number: int) -> Raw:
    driver, pool, called = device.id
    result: Raw = {"request": name, "driver": driver, "pool": pool, "device": called}
    if body.get("adminAccess"):
        result["adminAccess"] = True
    if device.shared:
        requested = body.get("capacity", {}).get("requests", {})
        result["shareID"] = f"5c7d1f6e-0000-4000-8000-{number:012}"
        result["consumedCapacity"] = {
            key: f"{(amounts.rounded(requested.get(key), capacity) or 0) * 1000}m"
            for key, capacity in device.raw.get("capacity", {}).items()
        }
    return result


def _right(world: scenarios.World, allocations: list[Raw], judge: validity.Judge) -> bool:
    chosen: list[list[asked.Chosen]] = []
    for claim, allocation in zip(world.claims, allocations, strict=True):
        picked, wrong = asked.read(claim, allocation)
        full = len(allocation["devices"]["results"]) > _RESULTS
        if wrong or full or next(judge.of_claim(claim, picked), None) is not None:
            return False
        chosen.append(picked)
    return next(judge.together(chosen), None) is None
