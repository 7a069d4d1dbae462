import datetime as dt
from typing import Any

from driver.api import queues as api
from driver.scheduling.queues import status, status_types, tree
from tests.support.builders.queues import NOON, a_workload, an_engine, queue, some

NOW = dt.datetime(2027, 1, 15, 8, tzinfo=dt.UTC)
LATER = dt.datetime(2027, 1, 15, 9, tzinfo=dt.UTC)
HOUR = 3600.0


def a_standing(**more: Any) -> status_types.QueueStatus:
    queue_engine = an_engine(16, queue("a", deserved=4, **more), queue("b"))
    queue_engine.queue_statuses(NOON)
    queue_engine.charge("x", "a", some(6.5), NOON)
    waiting = [a_workload("a0", "a", since=-7500), *(a_workload(f"b{n}", "b") for n in range(16))]
    queue_engine.schedule_order(waiting, NOON)
    return queue_engine.queue_statuses(NOON)["a"]


def condition(shown: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(entry for entry in shown["conditions"] if entry["type"] == kind)


def test_figures_are_flat_and_for_people() -> None:
    shown = status.render(a_standing(), None, 3, NOW, {})
    conditions = shown.pop("conditions")
    assert shown == {
        "observedGeneration": 3,
        "allocated": "6.5",
        "memory": "520Gi",
        "compute": "650%",
        "fairShare": "7.5",
        "deserved": "4",
        "borrowed": "2.5",
        "waiting": 1,
        "oldestWait": "2h5m",
    }
    assert [(entry["type"], entry["status"]) for entry in conditions] == [
        ("Accepted", "True"),
        ("Borrowing", "True"),
    ]
    assert conditions[1] == {
        "type": "Borrowing",
        "status": "True",
        "reason": "QueueBorrows",
        "message": "2.5 GPUs beyond the 4 deserved",
        "observedGeneration": 3,
        "lastTransitionTime": "2027-01-15T08:00:00Z",
    }


def test_the_written_status_matches_the_schema() -> None:
    fault = tree.QueueFault("spec.parent", "queue x does not exist")
    for shown in (
        status.render(a_standing(half_life_s=HOUR), None, 3, NOW, {}),
        status.render(None, fault, 3, NOW, {}),
    ):
        api.QueueStatus.model_validate(shown)


def test_past_use_is_written_with_its_time() -> None:
    queue_status = a_standing(half_life_s=HOUR)
    shown = status.render(queue_status, None, 1, NOW, {})
    assert shown["usage"] == {"at": "2027-01-15T08:00:00Z", "gpuSeconds": "0.000"}


def test_a_refused_queue_names_the_field_and_keeps_its_history() -> None:
    fault = tree.QueueFault("spec.parent", "queue x does not exist")
    previous = {"usage": {"at": "2027-01-15T07:00:00Z", "gpuSeconds": "12"}, "allocated": "4"}
    shown = status.render(None, fault, 2, NOW, previous)
    assert shown == {
        "observedGeneration": 2,
        "usage": previous["usage"],
        "conditions": [
            {
                "type": "Accepted",
                "status": "False",
                "reason": "QueueRefused",
                "message": "spec.parent: queue x does not exist",
                "observedGeneration": 2,
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            }
        ],
    }


def test_a_condition_that_did_not_change_keeps_its_time() -> None:
    first = status.render(a_standing(), None, 1, NOW, {})
    again = status.render(a_standing(), None, 2, LATER, first)
    assert condition(again, "Accepted")["lastTransitionTime"] == "2027-01-15T08:00:00Z"
    fault = tree.QueueFault("spec.parent", "queue x does not exist")
    refused = status.render(None, fault, 3, LATER, again)
    assert condition(refused, "Accepted")["lastTransitionTime"] == "2027-01-15T09:00:00Z"


def test_elapsed_time_alone_causes_no_write() -> None:
    first = status.render(a_standing(half_life_s=HOUR), None, 1, NOW, {})
    later = {**first, "oldestWait": "3h", "usage": {"at": "x", "gpuSeconds": "9"}}
    assert status.is_same_status(first, later)
    assert not status.is_same_status(first, {**first, "waiting": 2})
