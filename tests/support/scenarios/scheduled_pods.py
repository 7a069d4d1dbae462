"""Steps and questions of tests that run the scheduler in memory (`tests.fakes.deciding`)."""

from typing import Any

from tests.fakes.deciding import World
from tests.support.builders import objects


def runs(world: World, *names: str) -> None:
    """kube-scheduler has bound them, and they run."""
    world.settle()
    for name in names:
        node = world.node_of(f"{name}-gpu")
        world.change_pod(name, node=node, phase="Running", startTime="2026-11-21T09:00:00Z")
    world.settle()


def leaves(world: World, name: str) -> None:
    """The pod is gone, and its claim is free."""
    world.remove_pod(name)
    world.add(objects.a_claim(f"{name}-gpu"))
    world.settle()


def has(world: World, name: str) -> bool:
    return world.device(f"{name}-gpu") is not None


def held(world: World) -> list[dict[str, Any]]:
    return [entry for entry in world.server.own.values() if entry["kind"] == "Reservation"]


def told(world: World, reason: str) -> list[str]:
    return [text for kind, why, text in world.told.lines if kind == "Pod" and why == reason]


def works(world: World, name: str, last: str, percent: int = 0) -> None:
    """What the plugin says of the devices of a pod's claim."""
    claim = world.server.claims[f"default/{name}-gpu"]
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    keys = {key: result[key] for key in ("driver", "pool", "device")}
    data = {"lastBusy": last, "utilization": percent}
    world.add({**claim, "status": {**claim["status"], "devices": [{**keys, "data": data}]}})
