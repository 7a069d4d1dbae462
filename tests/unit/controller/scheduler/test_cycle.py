"""Whose turn it is, through the decider: queues, limits, and what they are told."""

from typing import Any

from driver import names
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_pod_of, a_queue


def placed(world: World, *found: str) -> list[str]:
    return [name for name in found if world.device(f"{name}-gpu") is not None]


def ends(world: World, name: str) -> None:
    """A pod is over, and its claim is free."""
    world.add(objects.a_claim(f"{name}-gpu"))
    world.remove_pod(name)
    world.settle(2.0)


def test_two_queues_get_their_parts_of_what_there_is() -> None:
    world = World(4)
    world.add(a_queue("a", weight=1), a_queue("b", weight=3))
    world.settle()
    for number in range(4):
        world.add(*a_pod_of("a", f"a{number}"), *a_pod_of("b", f"b{number}"))
    world.settle()
    assert len(placed(world, *(f"a{number}" for number in range(4)))) == 1
    assert len(placed(world, *(f"b{number}" for number in range(4)))) == 3


def test_freed_devices_go_to_the_queue_below_its_fair_share() -> None:
    world = World(4)
    world.add(a_queue("a"), a_queue("b"))
    for number in range(6):
        world.add(*a_pod_of("a", f"a{number}"))
    world.settle()
    assert len(placed(world, *(f"a{number}" for number in range(6)))) == 4
    for number in range(4):
        world.add(*a_pod_of("b", f"b{number}"))
    world.settle()
    for name in placed(world, *(f"a{number}" for number in range(6)))[:2]:
        ends(world, name)
    assert len(placed(world, *(f"b{number}" for number in range(4)))) == 2


def test_a_queue_at_its_limit_is_told_so_and_others_are_not_disturbed() -> None:
    world = World(4)
    world.add(a_queue("a", limit={"gpus": "1"}), a_queue("b"))
    world.add(*a_pod_of("a", "a0"), *a_pod_of("a", "a1"), *a_pod_of("b", "b0"))
    world.settle()
    assert placed(world, "a0", "a1", "b0") == ["a0", "b0"]
    told = [text for kind, reason, text in world.told.lines if reason == "QueueLimit"]
    assert told
    assert {*told} == {"queue a is at its limit: 1 of 1 GPU"}
    ends(world, "a0")
    assert placed(world, "a1") == ["a1"]


def test_a_queue_that_has_all_it_may_of_a_model_gets_another() -> None:
    world = World(1, 1)
    for node, product in (("node-0", "H100"), ("node-1", "A100")):
        found = objects.a_slice(node, 1)
        (device,) = found["spec"]["devices"]
        found["spec"]["devices"] = [objects.with_values(device, productName=product)]
        world.server.version += 1
        found["metadata"]["resourceVersion"] = str(world.server.version)
        world.stores.slices.apply(found)
    world.add(a_queue("a", limit={"models": [{"product": "H100", "gpus": "0"}]}))
    world.add(*a_pod_of("a", "a0"), *a_pod_of("a", "a1"))
    world.settle()
    assert [world.node_of(f"{name}-gpu") for name in ("a0", "a1")] == ["node-1", None]
    assert any("0 of 0 GPUs (H100)" in text for _, reason, text in world.told.lines)


def test_the_status_of_a_queue_says_how_it_stands() -> None:
    world = World(4)
    world.add(a_queue("a", deserved={"gpus": "1"}), a_queue("b"))
    world.add(*a_pod_of("a", "a0"), *a_pod_of("a", "a1"), *a_pod_of("b", "b0"))
    world.settle()
    world.settle(3.0)
    status = world.server.own["a"]["status"]
    assert (status["allocated"], status["deserved"], status["borrowed"]) == ("2", "1", "1")
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [
        ("Accepted", "True"),
        ("Borrowing", "True"),
    ]


def test_a_queue_in_a_circle_is_refused_with_its_field_and_others_go_on() -> None:
    world = World(4)
    world.add(a_queue("a", parent="b"), a_queue("b", parent="a"), a_queue("c"))
    world.add(*a_pod_of("c", "c0"), *a_pod_of("a", "a0"))
    world.settle()
    world.settle(3.0)
    accepted = world.server.own["a"]["status"]["conditions"][0]
    assert (accepted["type"], accepted["status"]) == ("Accepted", "False")
    assert accepted["message"].startswith("spec.parent: the queue is its own ancestor: a -> b -> a")
    assert placed(world, "a0", "c0") == ["a0", "c0"]


def test_nothing_is_written_of_queues_that_stand_as_they_stood() -> None:
    world = World(4)
    world.add(a_queue("a"))
    world.add(*a_pod_of("a", "a0"))
    world.settle()
    world.settle(3.0)
    before = world.server.version
    for _ in range(5):
        world.settle(4.0)
    assert world.server.version == before


def test_priority_goes_first_inside_a_queue() -> None:
    world = World(1)
    world.add(a_queue("a"))
    world.add(*a_pod_of("a", "low", priority=0), *a_pod_of("a", "high", priority=10))
    world.settle()
    assert placed(world, "low", "high") == ["high"]


def test_a_refusal_ends_with_how_the_queue_stands() -> None:
    world = World(1)
    world.add(a_queue("a", deserved={"gpus": "1"}))
    world.add(*a_pod_of("a", "a0"), *a_pod_of("a", "a1"))
    world.settle()
    (words, *_) = [text for _, reason, text in world.told.lines if reason == "NoFit"]
    assert words.endswith("queue a has 1 GPU; fair are 1, 1 deserved")


def test_one_of_two_pods_sharing_a_claim_allocates_it() -> None:
    """Else the second decision hides what the first one gives, and a third pod is given it too."""
    world = World(4)
    world.add(
        *(objects.a_claim(name) for name in ("shared", "own")),
        *(objects.a_pod(f"a{number}", "shared") for number in range(2)),
        objects.a_pod("b", "own"),
    )
    world.settle()
    assert None not in {world.device("shared"), world.device("own")}
    assert world.device("shared") != world.device("own")


def test_both_pods_of_a_shared_claim_run_once_it_is_allocated() -> None:
    world = World(2)
    world.add(objects.a_claim("shared"))
    world.add(*(objects.a_pod(f"a{number}", "shared") for number in range(3)))
    world.settle()
    assert world.device("shared") is not None
    world.add(*a_pod_of("", "late"))
    world.settle()
    assert world.device("late-gpu") not in {None, world.device("shared")}


def test_a_gang_and_a_pod_sharing_a_claim_do_not_both_allocate_it() -> None:
    def member(name: str) -> dict[str, Any]:
        pod = objects.a_pod(name, "shared")
        pod["metadata"]["labels"] = {names.GANG_LABEL: "g"}
        pod["metadata"]["annotations"] = {names.GANG_SIZE: "2"}
        return pod

    world = World(4)
    world.add(objects.a_claim("shared"), objects.a_claim("own"), objects.a_pod("a", "shared"))
    world.add(member("a0"), member("a1"), objects.a_pod("b", "own"))
    world.settle()
    assert world.device("own") not in {None, world.device("shared")}
