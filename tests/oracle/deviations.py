"""Deviations of the reference from the rules, each by its name.

One is a bug of 1.37.1 (K-4); the rest are consequences of how it searches: it gives up a node at
the first error.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.oracle import asked, inventory, oracle, scenarios, selectors, truth

Raw = dict[str, Any]
_KINDS = {
    "CEL runtime error": "cel",
    "CEL compile error": "cel-compile",
    "because a claim constraint would not be satisfied": "all-constraint",
    "is currently being updated": "all-incomplete",
    "is currently invalid": "all-invalid",
    "exceeds the claim limit": "limit",
    "filter operation aborted": "timeout",
    "could not retrieve device class": "class",
}
_EXCUSED = frozenset({"cel", "all-constraint", "timeout"})


def kind_of(error: oracle.OracleError) -> str:
    """A short word for an error of the reference."""
    return next((kind for text, kind in _KINDS.items() if text in error.what), error.what)


def of_refusal(
    world: scenarios.World,
    allocations: Sequence[Raw],
    error: oracle.OracleError | None,
) -> str:
    """Return why the reference rejects a valid allocation on a node; empty: nothing known.

    - cel, timeout: it stopped at an error.
    - all-constraint: a device of an `All` request breaks a constraint: an error, though another
      alternative or other devices for an earlier request would do.
    - all-up-front: an `All` alternative makes it refuse the node for an unusable pool, though
      another alternative was chosen.
    - #140729: admin access must find counters and capacity free as if it took them.
    - admin-first: a device that admin access of one claim uses is not given to the next claim of
      the same pod.
    """
    kind = "" if error is None else kind_of(error)
    if kind in _EXCUSED:
        return kind
    picked = [
        chosen
        for claim, allocation in zip(world.claims, allocations, strict=True)
        for chosen in asked.read(claim, allocation)[0]
    ]
    if kind in {"all-incomplete", "all-invalid"} and not any(
        chosen.everything for chosen in picked
    ):
        return "all-up-front"
    return _of_admin(world, picked) if kind == "" else ""


def _of_admin(world: scenarios.World, picked: Sequence[asked.Chosen]) -> str:
    placements = inventory.Inventory(world.cluster).devices
    admin = {_id(result) for chosen in picked if chosen.admin for result in chosen.results}
    if any(placements[key].shared or placements[key].raw.get("consumesCounters") for key in admin):
        return "#140729"
    others = {_id(result) for chosen in picked if not chosen.admin for result in chosen.results}
    return "admin-first" if admin & others else ""


def contested(world: scenarios.World, node: str, believed: truth.Truth) -> bool:
    """Return whether a selector of some request fails on a device that is usable on the node."""
    cluster = world.cluster
    classes = {device_class["metadata"]["name"]: device_class for device_class in cluster.classes}
    devices = list(inventory.Inventory(cluster).on(node, cluster.nodes[node]))
    for body in _bodies(world):
        chosen = [
            entry["cel"]["expression"]
            for entry in (
                *classes[body["deviceClassName"]]["spec"].get("selectors", ()),
                *body.get("selectors", ()),
            )
        ]
        if any(_fails(chosen, device, believed) for device in devices):
            return True
    return False


def _fails(chosen: Sequence[str], device: inventory.Placed, believed: truth.Truth) -> bool:
    for expression in chosen:
        verdict = believed.of(expression, device)
        if isinstance(verdict, selectors.Failed):
            return True
        if verdict is not True:
            return False
    return False


def _bodies(world: scenarios.World) -> Iterator[Raw]:
    for claim in world.claims:
        for request in claim["spec"]["devices"]["requests"]:
            for _, body in asked.alternatives(request):
                yield body


def _id(result: Raw) -> inventory.Id:
    return result["driver"], result["pool"], result["device"]
