"""Pods that are on a node already: what is done for claims that are not allocated there."""

from typing import Any

from driver import names
from driver.resources.dra import claims
from driver.scheduling.lifecycle import bound_pods
from driver.scheduling.snapshot import allocation_hold
from tests.fakes.deciding import World
from tests.support.builders import objects

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}


def node_of(world: World, name: str = "claim") -> str | None:
    allocation = world.claim(name).allocation
    return allocation.results[0].device.pool if allocation else None


def owned(name: str = "pod", *used: str, **spec: Any) -> dict[str, Any]:
    raw = objects.a_pod(name, *used, **spec)
    raw["metadata"]["ownerReferences"] = [{**OWNER, "controller": True}]
    return raw


def reasons(world: World) -> set[str]:
    return {reason for kind, reason, _ in world.told.lines if kind == "Pod"}


def test_a_pod_made_with_a_node_name_gets_its_devices_there() -> None:
    world = World(1, 1)
    world.add(objects.a_claim(), objects.a_pod(nodeName="node-1"))
    world.settle()
    world.settle(bound_pods.GRACE_S)
    assert node_of(world) == "node-1"
    assert world.claim().consumers == (allocation_hold.pod_entry(objects.pod()),)


def test_filters_of_the_scheduler_do_not_count_for_a_bound_pod() -> None:
    world = World(1)
    cordoned = objects.a_node("node-0")
    cordoned["spec"]["unschedulable"] = True
    world.stores.nodes.apply(world._newer(cordoned))
    world.add(objects.a_claim(), objects.a_pod(nodeName="node-0"))
    world.settle()
    world.settle(bound_pods.GRACE_S)
    assert node_of(world) == "node-0"


def test_a_pod_bound_away_from_its_claim_gets_it_where_it_is() -> None:
    world = World(1, 1)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert node_of(world) == "node-0"
    world.scheduled("pod", "node-1")
    world.settle()
    world.settle(bound_pods.GRACE_S)
    world.settle(2.0)
    assert node_of(world) == "node-1"
    assert world.claim().consumers == (allocation_hold.pod_entry(objects.pod()),)
    assert "AllocationCleared" in reasons(world)


def test_a_bound_pod_whose_node_is_full_is_told_and_evicted_for_another() -> None:
    world = World(1, 1)
    world.add(objects.a_claim("first"), objects.a_pod("first", "first", nodeName="node-1"))
    world.settle()
    world.settle(bound_pods.GRACE_S)
    world.add(objects.a_claim(), owned("pod", "claim"))
    world.settle()
    world.scheduled("pod", "node-1")
    for _ in range(3):
        world.settle(2.0)
    assert "BoundAwayFromClaim" in reasons(world)
    assert "pod" in world.server.evicted


def test_a_pod_that_named_its_full_node_itself_is_told_and_stays() -> None:
    world = World(1)
    world.add(objects.a_claim("first"), objects.a_pod("first", "first"))
    world.settle()
    world.add(objects.a_claim(), owned("pod", "claim", nodeName="node-0"))
    for _ in range(3):
        world.settle(2.0)
    assert "BoundAwayFromClaim" in reasons(world)
    assert not world.server.evicted


def test_a_pod_of_a_node_that_does_not_exist_is_told_so() -> None:
    world = World(1)
    world.add(objects.a_claim(), objects.a_pod(nodeName="nowhere"))
    world.settle()
    world.settle(bound_pods.GRACE_S)
    told = [message for _, reason, message in world.told.lines if reason == "NodeNotFound"]
    assert told
    assert "nowhere" in told[0]


def test_a_claim_used_by_another_pod_does_not_follow_a_bound_pod() -> None:
    world = World(1, 1)
    user = claims.render_consumer(allocation_hold.pod_entry(objects.pod("user")))
    status = objects.allocated("node-0", "gpu-0", reserved=[user])
    world.add(objects.a_pod("user", "claim", nodeName="node-0", status={"phase": "Running"}))
    world.add(objects.a_claim(status=status), objects.a_pod(nodeName="node-1"))
    world.settle()
    world.settle(5.0)
    assert node_of(world) == "node-0"
    assert "BoundAwayFromClaim" in reasons(world)


def test_a_claim_that_is_the_schedulers_is_left_alone() -> None:
    world = World(1)
    foreign = objects.a_claim()
    foreign["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "other"
    world.stores.classes.apply(objects.a_class("other", 'device.driver == "other.example.com"'))
    world.add(foreign, objects.a_pod(nodeName="node-0"))
    world.settle()
    world.settle(5.0)
    assert world.claim().allocation is None
    assert names.CLAIM_FINALIZER not in world.claim().finalizers


def test_spread_does_not_count_for_a_bound_pod_either() -> None:
    world = World(2, 2)
    labels = {"app": "web"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    for name in ("first", "pod"):
        raw = objects.a_pod(name, name, nodeName="node-0", topologySpreadConstraints=[constraint])
        raw["metadata"]["labels"] = labels
        world.add(objects.a_claim(name), raw)
    world.settle()
    world.settle(bound_pods.GRACE_S)
    assert (node_of(world, "first"), node_of(world, "pod")) == ("node-0", "node-0")
