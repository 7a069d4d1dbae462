"""Answers to readers, through the decider: for the picture of now."""

from driver import ids, names
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer
from driver.scheduling.lifecycle import backfill_plan
from tests.fakes import quickstart
from tests.fakes.deciding import World
from tests.support.builders.scheduler_objects import a_pod_of, a_queue


def answer(world: World, name: str) -> explainer.Explanation | None:
    asked = world.decider.explain_queries.request(ids.Key(f"default/{name}"))
    world.settle(0.0)
    return asked.result(0)


def text(world: World, name: str) -> str:
    full = answer(world, name)
    assert full is not None
    return full.text


def full_world() -> World:
    world = World(2)
    world.add(*quickstart.whole("first"))
    world.settle()
    world.add(*quickstart.whole("large", 2))
    world.settle()
    return world


def test_several_readers_of_a_pod_get_one_answer() -> None:
    world = full_world()
    key = ids.Key("default/large")
    assert world.decider.explain_queries.request(key) is world.decider.explain_queries.request(key)


def test_a_placed_pod_reports_its_placement() -> None:
    full = answer(full_world(), "first")
    assert full is not None
    assert isinstance(full.result, allocator_types.Placement)


def test_nothing_is_known_of_a_missing_pod() -> None:
    assert answer(full_world(), "nobody") is None


def test_each_answer_has_its_own_time() -> None:
    world = full_world()
    before = answer(world, "large")
    world.settle(20.0)
    after = answer(world, "large")
    assert before is not None
    assert after is not None
    assert before.time < after.time


def test_the_first_in_line_is_not_told_of_its_own_devices() -> None:
    world = World(2, backfill=backfill_plan.BackfillRules(600.0, 300.0, 1.0, without_queues=True))
    world.add(*quickstart.whole("first"))
    world.settle()
    world.add(*quickstart.whole("large", 2))
    world.settle(700.0)
    assert world.decider.current_plan() is not None
    assert "1 of 2 devices fit" in text(world, "large")
    assert backfill_plan.PLAN_SENTENCE in text(world, "large")


def test_a_pod_that_its_queue_keeps_waiting_is_told_of_the_limit() -> None:
    world = World(4)
    world.add(a_queue("a", limit={"gpus": "1"}))
    world.add(*a_pod_of("a", "a0"), *a_pod_of("a", "a1"))
    world.settle()
    full = answer(world, "a1")
    assert full is not None
    assert isinstance(full.result, allocator_types.Unschedulable)
    assert full.result.detail == "queue a is at its limit: 1 of 1 GPU"


def test_a_gang_reports_how_many_members_fit_now() -> None:
    world = World(2)
    world.add(*quickstart.whole("first"))
    world.settle()
    for number in range(2):
        found = quickstart.whole(f"worker-{number}")
        found[1]["metadata"]["labels"] = {names.GANG_LABEL: "train", names.GANG_SIZE: "2"}
        world.add(*found)
    world.settle(5.0)
    assert "at most 1 of 2" in text(world, "worker-1")
