"""PodGroups of Kubernetes' own through the decider: their gangs, and the claims that they share."""

from typing import Any

from driver import names
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold
from tests.fakes.apiserver import patches
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_pod_group, a_pod_of_group

GROUP = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")


def sharing(*pods: str, min_count: int = 2) -> World:
    """A world in which the pods of a group name one claim, and all is settled."""
    world = World(1, 1)
    world.add(a_pod_group(min_count), objects.a_claim("shared"))
    world.add(*(a_pod_of_group(name, "shared") for name in pods))
    world.settle()
    return world


def group_reserves(world: World, claim: str = "shared") -> None:
    """kube-scheduler writes the group's entry when it binds the first of its pods."""
    body = {"status": {"reservedFor": [claims.render_consumer(GROUP)]}}
    world.add(patches.strategic(world.server.claims[f"default/{claim}"], body))


def run(world: World, *pods: str) -> None:
    """All pods of the group are reached, reserved for and bound."""
    node = world.node_of("shared")
    for name in pods:
        world.change_pod(name, nominatedNodeName=node)
    world.settle()
    group_reserves(world)
    for name in pods:
        world.change_pod(name, node=node, phase="Running")
    world.settle()


def messages(world: World, reason: str) -> list[str]:
    return [text for kind, name, text in world.told.lines if (kind, name) == ("Pod", reason)]


def test_a_claim_that_a_group_shares_is_allocated_once_for_all_its_pods() -> None:
    world = sharing("a", "b")
    claim = world.claim("shared")
    assert [name for name, part, _ in world.server.written if part == "status"] == ["shared"]
    assert claim.consumers == (allocation_hold.pod_hold(objects.pod("a")),)
    world.change_pod("a", nominatedNodeName=world.node_of("shared"))
    world.settle()
    assert world.server.said == []
    world.change_pod("b", nominatedNodeName=world.node_of("shared"))
    world.settle()
    assert world.server.said == [("shared", names.GANG_READY)]


def test_the_hold_goes_once_the_group_has_reserved_and_its_pods_are_bound() -> None:
    world = sharing("a", "b")
    run(world, "a", "b")
    assert world.claim("shared").consumers == (GROUP,)


def test_the_devices_of_a_group_stay_its_own_while_its_pods_come_and_go() -> None:
    world = sharing("a", "b")
    run(world, "a", "b")
    device = world.device("shared")
    for name in ("a", "b"):
        world.remove_pod(name)
    for _ in range(5):
        world.settle(60.0)
    assert (world.device("shared"), world.claim("shared").consumers) == (device, (GROUP,))
    previous = [*world.server.written]
    world.add(a_pod_of_group("c", "shared"), a_pod_of_group("d", "shared"))
    world.settle()
    assert world.server.written == previous


def test_an_allocation_without_its_group_is_freed_after_a_while() -> None:
    world = sharing("a", "b")
    run(world, "a", "b")
    for name in ("a", "b"):
        world.remove_pod(name)
    world.add(patches.strategic(world.server.claims["default/shared"], _without_group()))
    for _ in range(3):
        world.settle(30.0)
    assert world.device("shared") is None


def _without_group() -> dict[str, Any]:
    return {"status": {"reservedFor": [{"$patch": "delete", "uid": GROUP.uid}]}}


def test_who_lacks_the_devices_of_a_group_is_told_its_pods() -> None:
    world = sharing("a", "b")
    run(world, "a", "b")
    world.add(objects.a_claim("next"), objects.a_pod("next", "next"))
    world.settle()
    world.add(objects.a_claim("last"), objects.a_pod("last", "last"))
    world.settle()
    assert any(
        "taken by pods default/a, default/b (claim shared)" in text
        for text in messages(world, "NoFit")
    )


def test_pods_of_a_group_without_a_min_count_are_placed_one_by_one() -> None:
    world = World(1)
    world.add(a_pod_group())
    for name in ("a", "b"):
        world.add(objects.a_claim(f"{name}-gpu"), a_pod_of_group(name, f"{name}-gpu"))
    world.settle()
    devices = {world.device("a-gpu"), world.device("b-gpu")}
    assert devices == {"gpu-0", None}


def test_a_pod_of_another_priority_than_its_group_gets_no_devices() -> None:
    world = World(2)
    world.add(a_pod_group(priority=5), objects.a_claim("gpu"), a_pod_of_group("a", "gpu"))
    world.settle()
    assert world.device("gpu") is None
    (text,) = messages(world, "GangInvalid")
    assert "PodGroup train has the priority 5, pod a 0" in text


def test_a_group_on_a_failed_gpu_is_not_evicted_and_told_why() -> None:
    world = sharing("a", "b")
    run(world, "a", "b")
    node, device = world.node_of("shared"), world.device("shared")
    failed = objects.a_slice(str(node), 1)
    taint = {"key": names.TAINT_XID, "value": "79", "effect": "NoSchedule"}
    for entry in failed["spec"]["devices"]:
        entry["taints"] = [*entry["taints"], taint]
    world.stores.slices.apply(world.server.newer(failed))
    world.settle()
    world.settle()
    assert device == "gpu-0"
    assert world.server.evicted == []
    words = messages(world, "FaultEvictionNotAllowed")
    assert any(
        "default/shared is reserved for PodGroup train until that is deleted" in text
        for text in words
    )
