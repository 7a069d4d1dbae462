"""Gangs through the decider: all members are written and bound together, or none is."""

import datetime as dt

import pytest

from driver import names
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_gang, a_member


def reached(world: World, *members: str) -> None:
    """kube-scheduler has taken members as far as their binding."""
    for name in members:
        world.change_pod(name, nominatedNodeName=world.node_of(f"{name}-gpu"))


def reasons_told(world: World) -> set[str]:
    return {reason for kind, reason, _ in world.told.lines if kind == "Pod"}


def test_members_are_written_together_and_wait_for_each_other() -> None:
    world = World(2)
    world.add(*a_gang(2))
    world.settle()
    for name in ("m0-gpu", "m1-gpu"):
        allocation = world.claim(name).allocation
        assert allocation is not None
        assert allocation.results[0].binding == (names.GANG_READY,)
        assert allocation.results[0].failing == (names.GANG_FAILED,)
    assert world.server.said == []


def test_once_the_scheduler_has_reached_all_they_may_be_bound() -> None:
    world = World(2)
    world.add(*a_gang(2))
    world.settle()
    reached(world, "m0")
    world.settle()
    assert world.server.said == []
    reached(world, "m1")
    world.settle()
    assert sorted(world.server.said) == [
        ("m0-gpu", names.GANG_READY),
        ("m1-gpu", names.GANG_READY),
    ]
    assert world.claim("m0-gpu").device_statuses[0].condition(names.GANG_READY) is not None


def test_a_scheduler_that_nominates_nobody_is_not_waited_for() -> None:
    world = World(2)
    world.add(*a_gang(2))
    world.settle()
    for _ in range(20):
        world.settle(1.0)
    assert len(world.server.said) == 2


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    world = World(1)
    world.add(*a_gang(2))
    world.settle()
    assert world.device("m0-gpu") is None
    assert world.device("m1-gpu") is None
    assert world.server.written == []
    told = next(text for kind, reason, text in world.told.lines if reason == "NoFit")
    assert told.startswith("gang default/train: No place for all 2 of the gang in the cluster")


def test_a_gang_waits_until_all_of_it_is_there() -> None:
    world = World(2)
    world.add(*a_gang(2)[:2])
    world.settle()
    assert world.device("m0-gpu") is None
    assert world.told.lines == []
    world.settle(2.0)
    assert ("Pod", "GangPending", "waits for 1 more of its 2 pods") in world.told.lines
    world.add(*a_gang(2)[2:])
    world.settle()
    assert world.device("m0-gpu") is not None
    assert world.device("m1-gpu") is not None


def test_a_gang_is_placed_when_room_for_all_of_it_comes() -> None:
    world = World(2)
    world.add(objects.a_claim("other"), objects.a_pod("other", "other"))
    world.settle()
    world.add(*a_gang(2))
    world.settle()
    assert world.device("m0-gpu") is None
    world.add({**objects.a_claim("other")})
    world.remove_pod("other")
    world.settle(2.0)
    assert world.device("m0-gpu") is not None


def test_a_gang_that_is_not_bound_in_time_is_released_whole() -> None:
    world = World(2)
    world.add(*a_gang(2, **{names.GANG_TIMEOUT: "30s"}))
    world.settle()
    reached(world, "m0", "m1")
    world.settle()
    world.change_pod("m1", **objects.refused("0/1 nodes are available: 1 Insufficient cpu."))
    for _ in range(35):
        world.settle(1.0)
    failed = [name for name, kind in world.server.said if kind == names.GANG_FAILED]
    assert sorted(failed) == ["m0-gpu", "m1-gpu"]
    assert "GangReleased" in reasons_told(world)


def test_a_step_of_the_wall_clock_does_not_end_the_time_of_a_gang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(2)
    world.add(*a_gang(2, **{names.GANG_TIMEOUT: "30s"}))
    world.settle()
    reached(world, "m0", "m1")
    world.settle()
    wall = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: wall() + dt.timedelta(hours=1))
    for _ in range(28):
        world.settle(1.0)
    assert "GangReleased" not in reasons_told(world)
    for _ in range(40):
        world.settle(1.0)
    assert "GangReleased" in reasons_told(world)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_gang_is_bound_although_the_wall_clock_is_stepped(
    monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    world = World(2)
    world.add(*a_gang(2, **{names.GANG_TIMEOUT: "30s"}))
    world.settle()
    wall = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: wall() + dt.timedelta(hours=hours))
    reached(world, "m0", "m1")
    for _ in range(5):
        world.settle(1.0)
    assert {kind for _, kind in world.server.said} == {names.GANG_READY}


def test_a_clock_that_is_behind_stamps_nothing_before_its_pod_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(2)
    wall = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: wall() - dt.timedelta(hours=1))
    world.add(*a_gang(2))
    world.settle()
    for name in ("m0", "m1"):
        allocation = world.claim(f"{name}-gpu").allocation
        assert allocation is not None
        assert allocation.stamped == world.pods[name]["metadata"]["creationTimestamp"]


def test_a_node_that_the_scheduler_refused_a_member_is_left_out_for_a_while() -> None:
    world = World(1, 1, 1)
    world.add(*a_gang(2, **{names.GANG_TIMEOUT: "30s"}))
    world.settle()
    refused = world.node_of("m1-gpu")
    world.change_pod("m1", **objects.refused())
    for _ in range(42):
        world.settle(1.0)
    assert world.node_of("m1-gpu") not in {None, refused}


def test_its_devices_are_freed_only_once_the_scheduler_has_heard() -> None:
    world = World(2)
    world.add(*a_gang(2, **{names.GANG_TIMEOUT: "30s"}))
    world.settle()
    world.settle(31.0)
    assert {kind for _, kind in world.server.said} == {names.GANG_FAILED}
    assert world.device("m0-gpu") is not None
    world.cordon("node-0")
    for _ in range(8):
        world.settle(1.0)
    assert world.device("m0-gpu") is None
    assert world.device("m1-gpu") is None


def test_a_gang_larger_than_it_says_is_told_and_nothing_else_is_disturbed() -> None:
    world = World(4)
    world.add(*a_gang(2), objects.a_claim("m9-gpu"), a_member("m9", "2"))
    world.add(objects.a_claim("other"), objects.a_pod("other", "other"))
    world.settle()
    assert world.device("other") is not None
    assert world.device("m0-gpu") is None
    assert any(
        reason == "GangInvalid" and "metadata.annotations[ration.dev/gang-size]: 2 is below" in text
        for _, reason, text in world.told.lines
    )


def test_a_pod_group_places_its_min_count_and_the_rest_when_devices_are_free() -> None:
    world = World(2)
    world.add({"metadata": objects.meta("train"), "spec": {"minMember": 2}})
    for at in range(3):
        world.add(objects.a_claim(f"m{at}-gpu"), a_member(f"m{at}", ""))
    world.settle()
    placed = [f"m{at}" for at in range(3) if world.device(f"m{at}-gpu") is not None]
    assert len(placed) == 2
    reached(world, *placed)
    for _ in range(3):
        world.settle(10.0)
    assert {kind for _, kind in world.server.said} == {names.GANG_READY}


def test_a_new_leader_completes_a_gang_that_was_written_in_part() -> None:
    world = World(2)
    world.add(*a_gang(2)[:2])
    allocated = World(2)
    allocated.add(*a_gang(2))
    allocated.settle()
    world.add(allocated.server.claims["default/m0-gpu"], *a_gang(2)[2:])
    world.settle()
    assert {world.device("m0-gpu"), world.device("m1-gpu")} == {"gpu-0", "gpu-1"}


def test_a_replaced_member_of_a_running_gang_is_placed_by_itself() -> None:
    world = World(3)
    world.add(*a_gang(2))
    world.settle()
    for name in ("m0", "m1"):
        world.change_pod(name, node="node-0", phase="Running")
    world.settle()
    world.remove_pod("m1")
    world.add(objects.a_claim("m2-gpu"), a_member("m2", "2"))
    world.settle()
    assert world.device("m2-gpu") is not None


def test_a_gang_under_a_foreign_gate_is_not_allocated() -> None:
    world = World(2)
    found = a_gang(2)
    found[1]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    world.add(*found)
    world.settle()
    assert world.device("m0-gpu") is None
    assert world.device("m1-gpu") is None


def test_an_unschedulable_gang_loses_its_gates_and_an_incomplete_one_keeps_them() -> None:
    for present, ungated in ((2, {"m0", "m1"}), (1, set[str]())):
        world = World(1)
        gang = a_gang(2)
        for pod in (gang[1], gang[3]):
            pod["spec"]["schedulingGates"] = [{"name": names.ALLOCATION_GATE}]
        world.add(*gang[: 2 * present])
        world.settle()
        assert {*world.server.ungated} == ungated


def test_a_gated_gang_is_given_to_the_scheduler_once_all_is_written() -> None:
    world = World(2)
    found = a_gang(2)
    for pod in (found[1], found[3]):
        pod["spec"]["schedulingGates"] = [{"name": names.ALLOCATION_GATE}]
    world.add(*found)
    world.settle()
    assert {*world.server.ungated} == {"m0", "m1"}
