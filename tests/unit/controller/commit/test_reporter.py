"""What a pod waits for stands in its condition while it waits, and only then."""

from typing import Any

from driver import errors, names, reasons
from driver.controller.commit import reporter
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


def test_the_condition_is_removed_if_another_allocator_served_the_pod() -> None:
    world = a_world_with_a_pod_that_waits()
    assert world.waiting_for() is not None
    reported_pod = objects.allocated("node-0", "gpu-0", "gpu-1")
    world.add(objects.a_claim("claim", objects.a_request("gpu", 3), status=reported_pod))
    world.settle()
    assert world.waiting_for() is None


def test_an_unwritten_condition_is_replaced_by_a_newer_one() -> None:
    written: list[str] = []
    pod_reporter = reporter.Reporter(deciding.Told(), _Hand(written), clock.FakeClock())
    pod = objects.pod()
    pod_reporter.pending(pod, reasons.Reason.NO_FIT, "first")
    pod_reporter.pending(pod, reasons.Reason.NO_FIT, "second")
    assert pod_reporter.write_next()
    assert not pod_reporter.write_next()
    assert written == ["second"]


def test_a_condition_removed_before_its_write_is_never_written() -> None:
    written: list[str] = []
    pod_reporter = reporter.Reporter(deciding.Told(), _Hand(written), clock.FakeClock())
    pod_reporter.pending(objects.pod(), reasons.Reason.NO_FIT, "words")
    pod_reporter.settled(objects.pod())
    assert not pod_reporter.write_next()
    assert written == []


def test_an_unchanged_condition_is_not_written_again() -> None:
    condition = {
        "type": names.CONDITION_ALLOCATED,
        "status": "False",
        "reason": "NoFit",
        "message": "words",
    }
    written: list[str] = []
    pod_reporter = reporter.Reporter(deciding.Told(), _Hand(written), clock.FakeClock())
    pod_reporter.pending(
        objects.pod(status={"conditions": [condition]}), reasons.Reason.NO_FIT, "words"
    )
    assert not pod_reporter.write_next()


def test_a_failed_write_is_retried() -> None:
    written: list[str] = []
    hand = _Hand(written, errors.Unreachable(0, "Unreachable", "no answer"))
    pod_reporter = reporter.Reporter(deciding.Told(), hand, clock.FakeClock())
    pod_reporter.pending(objects.pod(), reasons.Reason.NO_FIT, "words")
    assert not pod_reporter.write_next()
    assert pod_reporter.write_next()
    assert written == ["words"]


def test_a_deleted_pod_is_not_retried() -> None:
    gone = errors.NotFound(404, "NotFound", "pod")
    pod_reporter = reporter.Reporter(deciding.Told(), _Hand([], gone), clock.FakeClock())
    pod_reporter.pending(objects.pod(), reasons.Reason.NO_FIT, "words")
    assert pod_reporter.write_next()
    assert not pod_reporter.write_next()


def test_a_pod_and_each_of_its_claims_get_the_event() -> None:
    recorder = deciding.Told()
    pod_reporter = reporter.Reporter(recorder, _Hand([]), clock.FakeClock())
    pod_reporter.event(objects.pod(), [objects.claim("claim")], reasons.Reason.NO_FIT, "words")
    assert recorder.last == {
        ("Pod", "pod"): (reasons.Reason.NO_FIT, "words"),
        ("ResourceClaim", "claim"): (reasons.Reason.NO_FIT, "words"),
    }


def test_a_bound_pod_gets_the_event_and_no_condition() -> None:
    recorder = deciding.Told()
    pod_reporter = reporter.Reporter(recorder, _Hand([]), clock.FakeClock())
    pod_reporter.unschedulable(
        objects.pod(nodeName="node-0"), (), reasons.Reason.POD_BOUND_TO_OTHER_NODE, "words"
    )
    assert [line for line in recorder.lines if line[0] == "Pod"]
    assert not pod_reporter.write_next()


def test_the_condition_names_the_cause_that_holds_on_every_node() -> None:
    written: list[str] = []
    pod_reporter = reporter.Reporter(deciding.Told(), _Hand(written), clock.FakeClock())
    cause = reasons.Reason.DEVICE_CLASS_NOT_FOUND, "no such class"
    pod_reporter.unschedulable(objects.pod(), (), reasons.Reason.NO_FIT, "words", cause)
    assert pod_reporter.write_next()
    assert written == ["no such class"]


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
