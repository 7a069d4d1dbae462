"""GPUs that do nothing, through the decider: told, or taken back, as the queue wants it."""

from typing import Any

import pytest

from tests.fakes.deciding import World
from tests.support.builders.scheduler_objects import a_pod, a_queue
from tests.support.scenarios.scheduled_pods import runs, told, works


def a_world(action: str, **more: Any) -> World:
    world = World(1)
    world.add(a_queue("a", idleReclaim={"after": "30m", "action": action}, **more))
    world.add(*a_pod("lazy", queue="a"))
    runs(world, "lazy")
    return world


def test_an_idle_workload_is_reported_once() -> None:
    world = a_world("report")
    works(world, "lazy", "2026-11-21T09:00:00Z")
    world.settle()
    assert told(world, "Idle") == []
    world.settle(1800.0)
    works(world, "lazy", "2026-11-21T09:00:00Z")
    world.settle()
    (words,) = told(world, "Idle")
    assert words.startswith("pod default/lazy did nothing with its GPUs for 30m")
    assert world.server.evicted == []


def test_it_is_evicted_where_the_queue_says_so() -> None:
    world = a_world("evict")
    works(world, "lazy", "2026-11-21T09:00:00Z")
    world.settle(1801.0)
    world.settle()
    assert world.server.evicted == ["lazy"]
    assert "queue a allows 30m" in told(world, "IdleEvicted")[0]


@pytest.mark.parametrize(
    ("last", "percent"), [("2026-11-21T09:00:00Z", 5), ("2026-11-21T09:29:00Z", 0)]
)
def test_an_active_or_recently_active_workload_stays(last: str, percent: int) -> None:
    world = a_world("evict")
    works(world, "lazy", last, percent)
    world.settle(1801.0)
    world.settle()
    assert world.server.evicted == []


def test_idle_workloads_are_preempted_first_where_the_queue_says_so() -> None:
    world = World(2)
    world.add(a_queue("a", idleReclaim={"after": "1m", "action": "preferAsVictim"}))
    world.add(*a_pod("busy", queue="a"), *a_pod("lazy", queue="a"))
    runs(world, "busy", "lazy")
    world.change_pod("busy", startTime="2026-11-21T09:10:00Z")
    works(world, "busy", "2026-11-21T09:00:00Z", 90)
    works(world, "lazy", "2026-11-21T09:00:00Z")
    world.settle(1801.0)
    world.add(*a_pod("high", 1000, queue="a"))
    world.settle()
    world.settle()
    assert world.server.evicted == ["lazy"]


def test_without_an_owner_it_stays_and_why_is_told() -> None:
    world = World(1)
    world.add(a_queue("a", idleReclaim={"after": "30m", "action": "evict"}))
    claim, pod = a_pod("lazy", queue="a")
    del pod["metadata"]["ownerReferences"]
    world.add(claim, pod)
    runs(world, "lazy")
    works(world, "lazy", "2026-11-21T09:00:00Z")
    world.settle(1801.0)
    world.settle()
    assert world.server.evicted == []
    assert (
        "pod default/lazy has no controller that would recreate it elsewhere"
        in told(world, "Idle")[0]
    )
