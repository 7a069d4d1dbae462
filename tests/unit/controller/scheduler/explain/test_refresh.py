"""What is told is true when it is read, through the decider: events, conditions, explain, rows."""

import pytest

from driver import ids, names
from driver.controller.scheduler.explain import refresh
from driver.controller.web import source as web_source
from driver.scheduling.reports.documents import explanation
from tests.fakes import quickstart
from tests.fakes.deciding import World
from tests.support.builders import objects

TOO_BIG = ids.Key("default/too-big")
AGE_S = 2 * refresh.REFRESH_S


def explained(world: World, key: ids.Key = TOO_BIG) -> str:
    """The answer to a reader now."""
    answer = world.decider.explain_queries.request(key)
    world.settle(0.0)
    full = answer.result(0)
    assert full is not None
    return full.text


def row(world: World, name: str) -> str:
    """The message in the page's list of what waits."""
    minded = web_source.SourceInputs(
        lambda: None,
        tuple,
        explanation.explain_by(world.decider.last_explanation),
        tuple,
        lambda: None,
    )
    found = web_source.ReportSource(world.stores, names.DRIVER, minded, world.clock).read()
    return next(one.message for one in found.waiting().items if one.name == name)


def everything_told(world: World, name: str) -> list[str]:
    waits = world.waiting_for(name)
    assert waits is not None
    ends = (("Pod", name), ("ResourceClaim", f"{name}-gpu"))
    told = [world.told.last[end][1] for end in ends]
    return [*told, waits.message, explained(world, ids.Key(f"default/{name}")), row(world, name)]


@pytest.mark.parametrize("together", [1, 2, 3, 5, 10])
def test_the_message_for_an_oversized_pod_names_the_node_and_the_blocker(together: int) -> None:
    world = quickstart.world()
    pods = quickstart.pod_names()
    for start in range(0, len(pods), together):
        for name in pods[start : start + together]:
            world.add(*quickstart.a_pod(name))
        world.settle()
    events = [text for _, _, text in world.told.lines if "of 8 devices fit" in text]
    for text in [*events, *everything_told(world, quickstart.TOO_BIG)]:
        assert "best is node-1: 6 free; freeing pod default/either would do" in text
        assert "2 GPUs of node-1 are taken by pod default/either" in text


def test_a_pod_that_is_being_written_is_in_the_way_already() -> None:
    world = quickstart.world()
    pods = quickstart.pod_names()
    quickstart.arrive(world, pods[:-2])
    world.pool.slow = True
    world.add(*quickstart.a_pod(quickstart.EITHER))
    world.settle()
    world.add(*quickstart.a_pod(quickstart.TOO_BIG))
    world.settle()
    (text,) = {text for kind, _, text in world.told.lines if "of 8 devices fit" in text}
    assert "best is node-1: 6 free; freeing pod default/either would do" in text
    world.pool.catch_up()
    world.settle()
    for text in everything_told(world, quickstart.TOO_BIG):
        assert "best is node-1: 6 free; freeing pod default/either would do" in text


def replaced() -> World:
    """The pod in the way of `large` is gone, and another is there, with as much."""
    world = World(2)
    world.add(*quickstart.whole("first"))
    world.settle()
    world.add(*quickstart.whole("large", 2))
    world.settle()
    assert "freeing pod default/first would do" in world.told.last["Pod", "large"][1]
    world.remove_pod("first")
    world.add(objects.a_claim("first-gpu"))
    urgent = quickstart.whole("second", priority=10)
    world.add(*urgent)
    world.settle()
    return world


def test_a_nearest_fit_that_is_another_by_now_is_told_within_a_minute() -> None:
    world = replaced()
    world.settle(refresh.REFRESH_S)
    world.settle(refresh.REFRESH_S)
    for text in everything_told(world, "large"):
        assert "freeing pod default/second would do" in text
        assert "first" not in text


def test_a_query_is_answered_at_once_for_the_current_state() -> None:
    world = replaced()
    assert "freeing pod default/second would do" in explained(world, ids.Key("default/large"))


def test_words_that_still_hold_are_not_said_again() -> None:
    world = World(2)
    world.add(*quickstart.whole("first"))
    world.settle()
    world.add(*quickstart.whole("large", 2))
    world.settle()
    count = len(world.told.lines)
    for number in range(10):
        world.put_node("node-0", {"turn": str(number)})
        world.settle(refresh.REFRESH_S + 1)
    assert len(world.told.lines) == count


def test_however_often_the_rest_changes_a_pod_is_told_no_more_often() -> None:
    world = replaced()
    before = len(world.told.lines)
    last = "second"
    for number in range(60):
        world.remove_pod(last)
        world.add(objects.a_claim(f"{last}-gpu"))
        last = f"passing-{number}"
        world.add(*quickstart.whole(last, priority=10))
        world.settle(5.0)
    again = [one for one in world.told.lines[before:] if "1 of 2 devices fit" in one[2]]
    assert 0 < len(again) <= 2 * 330 / refresh.REFRESH_S
