"""Work on a GPU that failed, through the decider: a place is held, then it is evicted whole."""

import pytest

from driver import names
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_gang_member as a_member
from tests.support.builders.scheduler_objects import a_pod
from tests.support.scenarios.scheduled_pods import has, held, leaves, runs, told

XID_79 = {"key": names.TAINT_XID, "value": "79", "effect": "NoSchedule"}


def fails(world: World, node: str, device: str, count: int, **taint: str) -> None:
    """A GPU of a node has a taint."""
    found = objects.a_slice(node, count)
    for one in found["spec"]["devices"]:
        if one["name"] == device:
            one["taints"] = [*one["taints"], {**XID_79, **taint}]
    world.server.version += 1
    found["metadata"]["resourceVersion"] = str(world.server.version)
    world.stores.slices.apply(found)
    world.settle()
    world.settle()


def test_a_gang_on_a_failed_gpu_is_evicted_whole_with_devices_reserved() -> None:
    world = World(2, 2)
    world.add(*a_member("m0"), *a_member("m1"), *a_pod("other"))
    runs(world, "m0", "m1", "other")
    node, device = str(world.node_of("m0-gpu")), str(world.device("m0-gpu"))
    fails(world, node, device, 2)
    assert sorted(world.server.evicted) == ["m0", "m1"]
    (one,) = held(world)
    assert one["spec"]["for"] == {"gang": "train"}
    assert (node, device) not in {(e["node"], e["device"]) for e in one["status"]["devices"]}
    (words, *_) = told(world, "Preempted")
    assert f"{device} on {node} failed (xid 79)" in words
    for name in ("m0", "m1"):
        leaves(world, name)
    world.add(*a_member("m2"), *a_member("m3"))
    world.settle()
    assert has(world, "m2")
    assert has(world, "m3")
    assert (world.node_of("m2-gpu"), world.device("m2-gpu")) != (node, device)
    assert has(world, "other")


def test_a_pod_by_itself_stays_unless_it_asks() -> None:
    world = World(2)
    world.add(*a_pod("stays"), *a_pod("goes", annotations={names.ON_FAULT: "replace"}))
    runs(world, "stays", "goes")
    for name in ("stays", "goes"):
        fails(world, "node-0", str(world.device(f"{name}-gpu")), 2)
    assert world.server.evicted == ["goes"]


def test_a_gang_that_says_keep_stays() -> None:
    world = World(4)
    said = {names.ON_FAULT: "keep"}
    world.add(*a_member("m0", **said), *a_member("m1", **said))
    runs(world, "m0", "m1")
    fails(world, "node-0", str(world.device("m0-gpu")), 4)
    assert world.server.evicted == []


def test_informational_gpu_taints_evict_no_pod() -> None:
    world = World(4)
    world.add(*a_member("m0"), *a_member("m1"))
    runs(world, "m0", "m1")
    fails(world, "node-0", str(world.device("m0-gpu")), 4, effect="None")
    assert world.server.evicted == []


@pytest.mark.parametrize("value", ["hung", "unread"])
def test_a_gpu_that_may_be_back_by_itself_moves_nobody(value: str) -> None:
    world = World(4)
    world.add(*a_member("m0"), *a_member("m1"))
    runs(world, "m0", "m1")
    device = str(world.device("m0-gpu"))
    fails(world, "node-0", device, 4, key=names.TAINT_LOST, value=value)
    assert world.server.evicted == []
    fails(world, "node-0", device, 4, key=names.TAINT_LOST, value="lost")
    assert sorted(world.server.evicted) == ["m0", "m1"]


def test_without_a_place_it_is_evicted_too_and_keeps_its_place_in_the_queue() -> None:
    world = World(2)
    world.add(*a_member("m0"), *a_member("m1"))
    runs(world, "m0", "m1")
    world.add(*a_pod("later"))
    fails(world, "node-0", str(world.device("m0-gpu")), 2)
    (one,) = held(world)
    assert one["spec"]["since"] == "2026-11-21T09:00:00Z"
    assert sorted({*world.server.evicted}) == ["m0", "m1"]


def test_a_bare_pod_of_a_gang_is_lost_to_nobody() -> None:
    world = World(4)
    bare = a_member("m1")
    del bare[1]["metadata"]["ownerReferences"]
    world.add(*a_member("m0"), *bare)
    runs(world, "m0", "m1")
    fails(world, "node-0", str(world.device("m0-gpu")), 4)
    assert world.server.evicted == []
    assert "nobody would make pod default/m1 again elsewhere" in told(world, "FaultKept")[0]
