"""Queues: amounts as integers, durations in seconds, and what is wrong with its path."""

from typing import Any

import pytest

from driver import errors
from driver.resources import queues


def a_queue(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "vision"}, "spec": spec}


def test_amounts_are_read_exactly() -> None:
    queue = queues.parse(
        a_queue(
            deserved={"gpus": "0.5", "memory": "40Gi", "compute": 50},
            limit={"gpus": 4, "models": [{"product": "H100", "gpus": 2}]},
        )
    )
    assert queue.deserved == queues.Amounts(500, 40 << 30, 50)
    assert queue.limit == queues.Amounts(4000, models={"H100": 2000})


def test_durations_are_seconds_and_none_is_none() -> None:
    queue = queues.parse(a_queue(halfLife="24h", minRunTime="1h30m", starvationBound="90s"))
    assert (queue.half_life_s, queue.min_runtime_s, queue.starvation_s) == (86400, 5400, 90)
    assert queues.parse(a_queue()).half_life_s == 0


def test_past_use_that_was_written_is_read() -> None:
    written = {"usage": {"at": "2026-11-21T09:00:00Z", "gpuSeconds": "12.500"}}
    usage = queues.parse({**a_queue(), "status": written}).usage
    assert usage == queues.Usage("2026-11-21T09:00:00Z", 12.5)


@pytest.mark.parametrize(
    ("spec", "location"),
    [
        ({"weight": 0}, "spec.weight"),
        ({"halfLife": "soon"}, "spec.halfLife"),
        ({"colour": "red"}, "spec.colour"),
        ({"limit": {"gpus": "-1"}}, "spec.limit.gpus"),
    ],
)
def test_errors_name_the_field_path(spec: dict[str, Any], location: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        queues.parse(a_queue(**spec))
    assert caught.value.location.startswith(location)
