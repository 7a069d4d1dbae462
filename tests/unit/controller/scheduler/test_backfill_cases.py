"""Nothing idle is kept without an end, through the decider: by what pods get and are told alone."""

import datetime as dt
from typing import Any

import pytest

from driver import names
from driver.scheduling.lifecycle import backfill_plan
from tests.fakes import quickstart
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_queue

HOUR = 3600.0
SOON = backfill_plan.BackfillRules(600.0, 300.0, 1.0, without_queues=True)
"""Ten minutes of waiting, then rounds of five minutes."""


def placed(world: World, *pods: str) -> list[str]:
    return [name for name in pods if world.device(f"{name}-gpu") is not None]


def told(world: World, name: str) -> str:
    """The condition of a pod."""
    waits = world.waiting_for(name)
    return waits.message if waits is not None else ""


def leave(world: World, name: str) -> None:
    world.remove_pod(name)
    world.add(objects.a_claim(f"{name}-gpu"))


def beside(world: World, rules_apply: float = 0.0) -> World:
    """One of two GPUs is in use without a known end, and `large` has waited for both."""
    world.add(*quickstart.whole("first"))
    world.settle()
    world.add(*quickstart.whole("large", 2))
    world.settle()
    world.settle(rules_apply)
    return world


def test_the_demo_and_eight_more_pods_of_every_mode_run_beside_one_that_waits() -> None:
    world = quickstart.world()
    quickstart.arrive(world, quickstart.pod_names())
    assert placed(world, quickstart.TOO_BIG) == []
    more = [name for name in quickstart.pod_names() if name not in {"notebook-b", "too-big"}]
    assert len(more) == 8
    for _ in range(4):
        world.settle(60.0)
    for name in more:
        world.add(*quickstart.a_pod(name, f"{name}-2"))
        world.settle()
    later = [f"{name}-2" for name in more]
    assert placed(world, *later) == later


def test_small_pods_run_beside_one_that_waits_for_others_without_an_end() -> None:
    world = World(8, 8)
    for name, gpus in (("five", 5), ("other-five", 5), ("eight", 8)):
        world.add(*quickstart.whole(name, gpus))
        world.settle(10.0)
    assert placed(world, "five", "other-five", "eight") == ["five", "other-five"]
    small = [f"small-{number}" for number in range(6)]
    for name in small:
        world.add(*quickstart.whole(name))
        world.settle(10.0)
    assert placed(world, *small) == small


def test_a_gang_beside_one_that_waits_is_told_how_many_of_it_fit() -> None:
    world = quickstart.world()
    quickstart.arrive(world, quickstart.pod_names())
    for number in range(4):
        found = quickstart.whole(f"worker-{number}", 2)
        found[1]["metadata"]["labels"] = {names.GANG_LABEL: "train", names.GANG_SIZE: "4"}
        found[1]["metadata"]["creationTimestamp"] = "2026-11-21T09:01:00Z"
        world.add(*found)
    world.settle(5.0)
    assert "at most 3 of 4" in told(world, "worker-0")
    assert "ept for" not in told(world, "worker-0")


def test_without_queues_nothing_is_kept_however_long_it_waits() -> None:
    world = beside(World(2), 30 * 24 * HOUR)
    world.add(*quickstart.whole("small"))
    world.settle()
    assert placed(world, "small") == ["small"]
    assert world.decider.current_plan() is None


def test_past_its_starvation_bound_devices_are_kept_for_a_round_and_not_longer() -> None:
    world = beside(World(2, backfill=SOON), 700.0)
    plan = world.decider.current_plan()
    assert plan is not None
    assert (plan.key, plan.reason) == ("default/large", backfill_plan.PlanReason.STARVED)
    assert plan.until - plan.since == dt.timedelta(seconds=300)
    world.add(*quickstart.whole("small"))
    world.settle()
    assert placed(world, "small") == []
    world.settle(310.0)
    assert world.decider.current_plan() is None
    assert placed(world, "small") == ["small"]


def test_after_a_rest_comes_another_round() -> None:
    world = beside(World(2, backfill=SOON), 700.0)
    world.settle(310.0)
    assert world.decider.current_plan() is None
    world.settle(310.0)
    assert world.decider.current_plan() is not None


def test_while_one_rests_nothing_is_kept_for_another_that_starves() -> None:
    world = beside(World(2, backfill=SOON))
    world.add(*quickstart.whole("larger", 2))
    world.settle(700.0)
    seen = []
    for _ in range(40):
        plan = world.decider.current_plan()
        seen.append(plan is not None)
        world.settle(30.0)
    assert 0.4 <= sum(seen) / len(seen) <= 0.6


def test_devices_freed_in_a_cycle_go_to_the_starving_workload() -> None:
    world = beside(World(2, backfill=SOON), 700.0)
    world.add(*quickstart.whole("small"))
    world.settle()
    leave(world, "first")
    world.settle()
    assert placed(world, "large", "small") == ["large"]


def test_before_the_bound_nothing_is_kept() -> None:
    world = beside(World(2, backfill=SOON), 300.0)
    world.add(*quickstart.whole("small"))
    world.settle()
    assert placed(world, "small") == ["small"]


def test_no_more_of_the_fleet_is_kept_than_may_be() -> None:
    rules = backfill_plan.BackfillRules(600.0, without_queues=True)
    world = beside(World(2, backfill=rules), 700.0)
    assert world.decider.current_plan() is None
    wide = beside(World(2, 2, backfill=rules), 0.0)
    wide.add(*quickstart.whole("second"), *quickstart.whole("huge", 2))
    wide.settle(700.0)
    plan = wide.decider.current_plan()
    assert plan is None or len(plan.devices) <= 2


@pytest.mark.parametrize(("waited", "kept"), [(0.5 * HOUR, False), (1.1 * HOUR, True)])
def test_with_queues_an_hour_is_the_bound(*, waited: float, kept: bool) -> None:
    world = World(2, 2)
    world.add(a_queue("a"))
    beside(world)
    world.add(*quickstart.whole("both", 2), *quickstart.whole("next", 2))
    world.settle(waited)
    assert (world.decider.current_plan() is not None) is kept


def test_a_pod_blocked_by_a_backfill_reservation_names_its_owner_and_end() -> None:
    world = beside(World(2, backfill=SOON), 700.0)
    plan = world.decider.current_plan()
    assert plan is not None
    world.add(*quickstart.whole("small"))
    world.settle()
    assert f"1 GPU of node-0 is kept for default/large until {plan.end}" in told(world, "small")
    assert "1 is taken by pod default/first" in told(world, "small")
    world.settle(40.0)
    assert f"Kept for it until {plan.end}: 1 GPU of node-0" in told(world, "large")


def test_a_run_time_that_is_overrun_does_not_keep_devices_for_ever() -> None:
    world = World(2)
    first = quickstart.whole("first")
    first[1]["metadata"]["annotations"] = {names.MAX_RUN_TIME: "10m"}
    world.add(*first)
    world.settle()
    start = world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    world.change_pod("first", node="node-0", phase="Running", startTime=start)
    world.add(*quickstart.whole("large", 2))
    world.settle()
    world.add(*quickstart.whole("small"))
    world.settle()
    assert placed(world, "small") == []
    for _ in range(20):
        world.settle(60.0)
    assert placed(world, "small") == ["small"]


def test_freed_devices_go_to_the_longest_pending_pod() -> None:
    world = World(1)
    world.add(*quickstart.whole("first"))
    world.settle()
    world.add(*quickstart.whole("older"))
    world.settle()
    leave(world, "first")
    world.decider.process([])
    newer: list[dict[str, Any]] = quickstart.whole("newer")
    newer[1]["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    world.add(*newer)
    world.settle(0.0)
    world.settle()
    assert placed(world, "older", "newer") == ["older"]
