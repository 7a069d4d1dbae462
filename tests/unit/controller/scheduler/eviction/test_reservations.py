"""Reservations through the decider: held for their holder, lent until they start, given back."""

from typing import Any

from driver import names
from driver.kube import gvr
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_reservation
from tests.support.scenarios.scheduled_pods import has


def a_pod(name: str, **annotations: str) -> list[dict[str, Any]]:
    pod = objects.a_pod(name, f"{name}-gpu")
    pod["metadata"]["annotations"] = annotations
    return [objects.a_claim(f"{name}-gpu"), pod]


def status(world: World, name: str = "kept") -> dict[str, Any]:
    return dict(world.server.own[f"default/{name}"].get("status", {}))


def test_reserved_devices_go_only_to_the_holder() -> None:
    world = World(1)
    world.add(a_reservation())
    world.settle()
    assert (status(world)["phase"], status(world)["count"]) == ("Held", 1)
    world.add(*a_pod("other"))
    world.settle()
    assert not has(world, "other")
    world.add(*a_pod("mine"))
    world.settle()
    assert has(world, "mine")
    world.settle(31.0)
    assert status(world)["phase"] == "Used"


def test_nothing_is_held_on_a_cordoned_node() -> None:
    world = World(1, 1)
    world.cordon("node-0")
    world.add(a_reservation())
    world.settle()
    (device,) = status(world)["devices"]
    assert device["node"] == "node-1"


def test_an_unused_reservation_is_released() -> None:
    world = World(1)
    world.add(a_reservation(ttl="5m"))
    world.settle()
    world.add(*a_pod("other"))
    world.settle()
    assert not has(world, "other")
    world.settle(301.0)
    world.settle(2.0)
    assert status(world)["phase"] == "Expired"
    assert has(world, "other")


def test_before_it_starts_it_is_lent_to_what_is_over_by_then() -> None:
    world = World(1)
    world.add(a_reservation(start="2026-11-21T10:00:00Z"))
    world.settle()
    assert status(world)["phase"] == "Held"
    world.add(*a_pod("long"), *a_pod("short", **{names.MAX_RUN_TIME: "30m"}))
    world.settle()
    assert not has(world, "long")
    assert has(world, "short")


def test_pods_that_overrun_into_a_reservation_are_evicted() -> None:
    world = World(1)
    world.add(a_reservation(start="2026-11-21T10:00:00Z", ttl="2h"))
    world.settle()
    world.add(*a_pod("short", **{names.MAX_RUN_TIME: "30m"}))
    world.settle()
    node = world.node_of("short-gpu")
    world.change_pod("short", node=node, phase="Running", startTime="2026-11-21T09:00:10Z")
    world.settle(1900.0)
    assert world.server.evicted == []
    world.settle(1800.0)
    world.settle()
    assert world.server.evicted == ["short"]
    told = [text for kind, reason, text in world.told.lines if reason == "Preempted"]
    assert "it said that it runs 1800 s at most" in told[0]


def test_a_reservation_for_a_missing_class_is_refused_with_the_field() -> None:
    world = World(1)
    wrong = {"name": "gpu", "exactly": {"deviceClassName": "none.example.com", "count": 1}}
    world.add(a_reservation(devices={"requests": [wrong]}))
    world.add(*a_pod("other"))
    world.settle()
    (accepted,) = status(world)["conditions"]
    assert (accepted["type"], accepted["status"]) == ("Accepted", "False")
    assert accepted["message"] == (
        "spec.devices.requests[0].exactly.deviceClassName: DeviceClass none.example.com "
        "does not exist"
    )
    assert has(world, "other")


def test_a_reservation_waits_until_there_is_room() -> None:
    world = World(1)
    world.add(*a_pod("other"))
    world.settle()
    world.add(a_reservation())
    world.settle()
    assert status(world)["phase"] == "Pending"
    world.add(objects.a_claim("other-gpu"))
    world.remove_pod("other")
    world.settle(2.0)
    assert status(world)["phase"] == "Held"


def test_a_new_leader_holds_what_the_last_one_did() -> None:
    first = World(2)
    first.add(a_reservation())
    first.settle()
    world = World(2)
    world.add(first.server.own["default/kept"])
    world.settle()
    assert status(world)["devices"] == status(first)["devices"]
    world.add(*a_pod("a"), *a_pod("b"))
    world.settle()
    assert [has(world, "a"), has(world, "b")].count(True) == 1


def test_a_reservation_that_is_deleted_holds_nothing() -> None:
    world = World(1)
    world.add(a_reservation())
    world.settle()
    world.add(*a_pod("other"))
    world.settle()
    assert not has(world, "other")
    found = world.server.own["default/kept"]
    world.server.delete(gvr.RESERVATIONS, "kept", "default", uid=found["metadata"]["uid"])
    world.settle(2.0)
    assert has(world, "other")
