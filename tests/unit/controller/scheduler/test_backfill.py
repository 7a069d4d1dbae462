"""Backfill, through the decider: small work passes large work only if it does not delay it."""

from typing import Any

from driver import names
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.scenarios.scheduled_pods import has, leaves, runs


def a_pod(name: str, gpus: int = 1, *, most: str = "") -> list[dict[str, Any]]:
    pod = objects.a_pod(name, f"{name}-gpu")
    pod["metadata"]["annotations"] = {names.MAX_RUN_TIME: most} if most else {}
    return [objects.a_claim(f"{name}-gpu", objects.a_request("gpu", gpus)), pod]


def blocked(*nodes: int, most: str = "") -> World:
    """One of the GPUs is in use, and `large` waits for two of one node."""
    world = World(*nodes)
    world.add(*a_pod("first", most=most))
    runs(world, "first")
    world.add(*a_pod("large", 2))
    world.settle()
    assert not has(world, "large")
    return world


def test_small_work_that_would_delay_the_head_waits() -> None:
    world = blocked(2, most="1h")
    world.add(*a_pod("small"))
    world.settle()
    assert not has(world, "small")


def test_small_work_that_is_over_before_runs() -> None:
    world = blocked(2, most="1h")
    world.add(*a_pod("long", most="2h"))
    world.add(*a_pod("short", most="30m"))
    world.settle()
    assert not has(world, "long")
    assert has(world, "short")


def test_small_work_runs_where_the_head_cannot() -> None:
    world = blocked(2, 1)
    world.add(*a_pod("small"))
    world.settle()
    assert has(world, "small")


def test_the_head_runs_once_what_it_waits_for_is_over() -> None:
    world = blocked(2, most="1h")
    world.add(*a_pod("small"))
    world.settle()
    leaves(world, "first")
    assert has(world, "large")
    assert not has(world, "small")


def test_when_the_head_is_gone_nothing_is_kept() -> None:
    world = blocked(2, most="1h")
    world.add(*a_pod("small"))
    world.settle()
    world.remove_pod("large")
    world.settle(2.0)
    world.add(*a_pod("other"))
    world.settle(2.0)
    assert has(world, "small")


def test_an_infeasible_workload_reserves_nothing() -> None:
    world = World(2)
    world.add(*a_pod("huge", 3))
    world.settle()
    world.add(*a_pod("small"))
    world.settle()
    assert has(world, "small")


def test_more_important_work_takes_what_is_kept_for_the_head() -> None:
    world = blocked(2, most="1h")
    found = a_pod("urgent")
    found[1]["spec"]["priority"] = 10
    world.add(*found)
    world.settle()
    assert has(world, "urgent")


def test_short_work_on_what_is_kept_prolongs_it_for_nobody() -> None:
    world = World(3)
    world.add(*a_pod("never-starts", most="1h"))
    world.settle()
    world.add(*a_pod("large", 3), *a_pod("z-long"))
    for number in range(8):
        world.add(*a_pod(f"short-{number}", most="10m"))
        world.settle(300.0)
        world.remove_pod(f"short-{number}")
        world.stores.claims.apply(
            world._newer(objects.a_claim(f"short-{number}-gpu")), deleted=True
        )
        world.settle(300.0)
    assert world.device("z-long-gpu")
