"""Marks of nodes through the decider: they come and go with what is on the node."""

from typing import Any

import pytest

from driver import clock, errors, names
from driver.kube import gvr
from tests.fakes import deciding
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_pod, a_reservation
from tests.support.scenarios.scheduled_pods import leaves

KEPT = {names.KARPENTER_KEEP: "true", names.AUTOSCALER_KEEP: "true"}
COMPLETE = {names.POOL_COMPLETE: "true"}


def a_world(*gpus_by_node: int) -> deciding.World:
    world = deciding.World(*gpus_by_node, demanded=deciding.on_demand_of())
    rests(world)
    return world


def rests(world: deciding.World, seconds: float = 1.0) -> None:
    world.settle(seconds)
    world.settle()


def marks(world: deciding.World, node: str = "node-0") -> dict[str, str]:
    """Of the node's labels and annotations, those that are ours or as ours."""
    meta = world.server.nodes[node]["metadata"]
    found = {**meta["labels"], **meta.get("annotations", {})}
    return {
        key: found[key] for key in (names.POOL_COMPLETE, names.BROUGHT_FOR, *KEPT) if key in found
    }


def annotates(world: deciding.World, manager: str, node: str = "node-0", **found: str) -> None:
    """Somebody applies annotations."""
    uid = world.server.nodes[node]["metadata"]["uid"]
    body = {"metadata": {"name": node, "uid": uid, "annotations": found}}
    world.server.apply(gvr.NODES, node, body, manager=manager)
    rests(world)


def publishes(world: deciding.World, node: str, count: int, **pool: Any) -> None:
    world.stores.slices.apply(world.server.newer(objects.a_slice(node, count, **pool)))
    rests(world)


def test_a_node_is_complete_once_all_its_slices_are_there() -> None:
    world = a_world(0)
    assert marks(world) == {}
    publishes(world, "node-0", 2, resourceSliceCount=2)
    assert marks(world) == {}
    publishes(world, "node-0", 2, resourceSliceCount=2, part=1)
    assert marks(world) == COMPLETE


def test_a_republished_pool_stays_complete_and_a_deleted_one_does_not() -> None:
    world = a_world(2)
    assert marks(world) == COMPLETE
    publishes(world, "node-0", 2, generation=2, resourceSliceCount=2)
    assert marks(world) == COMPLETE
    gone = world.server.newer(objects.a_slice("node-0", 2))
    world.stores.slices.apply(gone, deleted=True)
    rests(world)
    assert marks(world) == {}


def test_a_node_is_kept_as_long_as_somebody_has_a_device_of_it() -> None:
    world = a_world(2, 2)
    world.add(*a_pod("one"))
    rests(world)
    node = world.node_of("one-gpu")
    other = ({"node-0", "node-1"} - {node}).pop()
    assert marks(world, str(node)) == COMPLETE | KEPT
    assert marks(world, other) == COMPLETE
    leaves(world, "one")
    rests(world)
    assert marks(world, str(node)) == COMPLETE


def test_a_node_is_kept_while_its_slices_are_away() -> None:
    world = a_world(2)
    world.add(*a_pod("one"))
    rests(world)
    world.stores.slices.apply(world.server.newer(objects.a_slice("node-0", 2)), deleted=True)
    rests(world)
    assert marks(world) == KEPT
    leaves(world, "one")
    rests(world)
    assert marks(world) == {}


def test_a_node_is_kept_for_a_reservation_until_that_is_over() -> None:
    world = a_world(2)
    world.add(a_reservation(ttl="5m"))
    rests(world)
    assert marks(world) == COMPLETE | KEPT
    rests(world, 301.0)
    assert marks(world) == COMPLETE


def test_a_node_of_others_is_left_alone_whatever_its_marks() -> None:
    world = a_world(0)
    world.stores.slices.apply(world.server.newer(objects.a_slice("node-0", 0)), deleted=True)
    annotates(world, "somebody", **KEPT)
    world.server.applied.clear()
    rests(world)
    assert marks(world) == KEPT
    assert world.server.applied == []


def test_user_annotations_stay_when_ours_are_removed() -> None:
    world = a_world(2)
    annotates(world, "somebody", **{names.KARPENTER_KEEP: "true"})
    world.add(*a_pod("one"))
    rests(world)
    assert marks(world) == COMPLETE | KEPT
    leaves(world, "one")
    rests(world)
    assert marks(world) == COMPLETE | {names.KARPENTER_KEEP: "true"}


def test_user_changes_of_our_annotation_are_not_overwritten() -> None:
    world = a_world(2)
    annotates(world, "somebody", **{names.KARPENTER_KEEP: "false"})
    world.add(*a_pod("one"))
    rests(world)
    assert marks(world) == COMPLETE | KEPT | {names.KARPENTER_KEEP: "false"}
    world.server.applied.clear()
    rests(world, 60.0)
    assert world.server.applied == []
    annotates(world, "somebody")
    assert marks(world) == COMPLETE | KEPT


def test_a_write_that_is_refused_is_made_later() -> None:
    world = a_world(2)
    world.server.refuse["apply"] = errors.ServerError(500, "InternalError", "not now")
    world.add(*a_pod("one"))
    rests(world)
    rests(world, 5.0)
    assert marks(world) == COMPLETE | KEPT


def test_the_next_leader_takes_off_what_the_last_one_put_on() -> None:
    world = a_world(2)
    world.add(*a_pod("one"))
    rests(world)
    before = world.decider
    world.decider = world.make_decider()
    leaves(world, "one")
    rests(world)
    assert world.decider is not before
    assert marks(world) == COMPLETE


def test_a_requested_node_is_protected_no_longer_than_the_arrival_timeout() -> None:
    world = a_world(2)
    world.add(
        objects.a_claim("late-gpu", objects.a_request(count=9)), objects.a_pod("late", "late-gpu")
    )
    came = clock.rfc3339(world.clock.now())
    told = f"pod/default/late {came}"
    annotates(world, names.NODES_FIELD_MANAGER, **{names.BROUGHT_FOR: told})
    assert marks(world) == COMPLETE | KEPT | {names.BROUGHT_FOR: told}
    rests(world, 1100.0)
    assert names.BROUGHT_FOR in marks(world)
    rests(world, 120.0)
    assert marks(world) == COMPLETE


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_node_that_is_about_to_be_taken_away_is_kept_no_more(effect: str) -> None:
    world = a_world(2)
    world.add(*a_pod("one"))
    rests(world)
    taint = {"key": "karpenter.sh/disrupted", "effect": effect}
    world.put_node("node-0", taints=[taint])
    rests(world)
    assert marks(world) == COMPLETE
    world.put_node("node-0")
    rests(world)
    assert marks(world) == COMPLETE | KEPT


def test_without_nodes_on_demand_no_node_is_marked() -> None:
    world = deciding.World(2)
    world.add(*a_pod("one"))
    rests(world)
    assert world.device("one-gpu") is not None
    assert world.server.applied == []
    world.put_node("node-0", taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])
    rests(world)
    assert marks(world) == {}
