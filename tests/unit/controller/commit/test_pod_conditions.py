"""What a pod waits for stands in its condition while it waits, and only then."""

from typing import Any

from driver import errors, names, reasons
from driver.controller.commit import pod_conditions
from tests.fakes import clock, deciding, server_side
from tests.support.builders import objects


def a_world_with_a_pod_that_waits() -> deciding.World:
    world = deciding.World(2)
    world.add(objects.a_claim("claim", objects.a_request("gpu", 3)), objects.a_pod())
    world.settle()
    return world


def test_a_pod_without_a_place_says_why_in_its_condition() -> None:
    waits = a_world_with_a_pod_that_waits().waiting_for()
    assert waits is not None
    assert waits.reason == reasons.Reason.NO_FIT
    assert "2 of 3 devices fit" in waits.message
    assert waits.since


def test_a_pod_that_is_placed_says_it_no_more() -> None:
    world = a_world_with_a_pod_that_waits()
    assert world.waiting_for() is not None
    world.stores.slices.apply(objects.a_slice("node-0", 4) | {"metadata": _newer("node-0")})
    world.settle()
    assert world.node_of() == "node-0"
    assert world.waiting_for() is None


def test_a_pod_that_another_allocator_served_says_it_no_more() -> None:
    world = a_world_with_a_pod_that_waits()
    assert world.waiting_for() is not None
    given = objects.allocated("node-0", "gpu-0", "gpu-1")
    world.add(objects.a_claim("claim", objects.a_request("gpu", 3), status=given))
    world.settle()
    assert world.waiting_for() is None


def test_an_unwritten_condition_is_replaced_by_a_newer_one() -> None:
    written: list[str] = []
    one = pod_conditions.ConditionWriter(_Hand(written), clock.FakeClock())
    pod = objects.pod()
    one.report_pending(pod, "NoFit", "first")
    one.report_pending(pod, "NoFit", "second")
    assert one.write_next()
    assert not one.write_next()
    assert written == ["second"]


def test_a_word_that_was_taken_back_before_it_was_written_is_never_written() -> None:
    written: list[str] = []
    one = pod_conditions.ConditionWriter(_Hand(written), clock.FakeClock())
    one.report_pending(objects.pod(), "NoFit", "words")
    one.report_allocated(objects.pod())
    assert not one.write_next()
    assert written == []


def test_a_word_that_stands_there_is_not_written_again() -> None:
    condition = {
        "type": names.CONDITION_ALLOCATED,
        "status": "False",
        "reason": "NoFit",
        "message": "words",
    }
    written: list[str] = []
    one = pod_conditions.ConditionWriter(_Hand(written), clock.FakeClock())
    one.report_pending(objects.pod(status={"conditions": [condition]}), "NoFit", "words")
    assert not one.write_next()


def test_a_write_that_fails_is_kept_for_the_next_time() -> None:
    written: list[str] = []
    hand = _Hand(written, errors.Unreachable(0, "Unreachable", "no answer"))
    one = pod_conditions.ConditionWriter(hand, clock.FakeClock())
    one.report_pending(objects.pod(), "NoFit", "words")
    assert not one.write_next()
    assert one.write_next()
    assert written == ["words"]


def test_a_pod_that_is_gone_is_forgotten() -> None:
    one = pod_conditions.ConditionWriter(
        _Hand([], errors.NotFound(404, "NotFound", "pod")), clock.FakeClock()
    )
    one.report_pending(objects.pod(), "NoFit", "words")
    assert one.write_next()
    assert not one.write_next()


def _newer(node: str) -> objects.Raw:
    return {**objects.a_slice(node)["metadata"], "resourceVersion": "1000"}


class _Hand(server_side.Server):
    """Notes the messages that are written; refuses the first where it is told to."""

    def __init__(self, written: list[str], refuse: errors.ApiError | None = None) -> None:
        super().__init__()
        left = [refuse] if refuse else []

        def take(_: str, body: dict[str, Any]) -> None:
            if left:
                raise left.pop()
            (condition,) = body["status"]["conditions"]
            written.append(condition["message"])

        self.said_of_pods = take
