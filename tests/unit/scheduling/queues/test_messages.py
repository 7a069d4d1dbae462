import pytest

from driver.resources import queues
from driver.scheduling.queues import messages as queue_messages
from driver.scheduling.queues import status_types
from tests.support.builders.queues import a_workload, an_engine, named, queue, some

NOW = 1_800_000_000.0


def over(limit: float | queues.Amounts, has: float, asks: float) -> str:
    queue_engine = an_engine(16, queue("vision", limit=limit))
    queue_engine.charge("x", "vision", some(has, "T4"))
    exceeded_limit = queue_engine.exceeded_limit("vision", some(asks, "T4"))
    assert exceeded_limit is not None
    return queue_messages.limit_message(exceeded_limit)


def test_a_queue_at_its_limit() -> None:
    assert over(16, has=16, asks=1) == "queue vision is at its limit: 16 of 16 GPUs"


def test_a_queue_that_would_exceed_its_limit() -> None:
    message = "queue vision would exceed its limit: it has 2.5 of 3 GPUs, and 1 more are requested"
    assert over(3, has=2.5, asks=1) == message


def test_limits_of_memory_compute_and_models_are_told_in_their_units() -> None:
    assert over(named(memory=160 << 30), has=2, asks=1) == (
        "queue vision is at its limit: 160Gi of 160Gi of GPU memory"
    )
    assert over(named(compute=200), has=2, asks=1) == (
        "queue vision is at its limit: 200% of 200% of GPU compute"
    )
    assert over(named(models={"T4": 2000}), has=2, asks=1) == (
        "queue vision is at its limit: 2 of 2 GPUs (T4)"
    )


def test_a_queue_that_may_not_borrow() -> None:
    queue_engine = an_engine(16, queue("vision", deserved=2, borrowing=False))
    queue_engine.charge("x", "vision", some(2))
    exceeded_limit = queue_engine.exceeded_limit("vision", some(1))
    assert exceeded_limit is not None
    assert queue_messages.limit_message(exceeded_limit) == (
        "queue vision is at its deserved share, and may not borrow: 2 of 2 GPUs"
    )


def standings() -> dict[str, status_types.QueueStatus]:
    queue_engine = an_engine(16, queue("vision"), queue("nlp", weight=3, deserved=4))
    queue_engine.charge("x", "vision", some(12))
    queue_engine.charge("y", "nlp", some(2.5))
    queue_engine.schedule_order([a_workload(f"n{n}", "nlp") for n in range(9)], NOW)
    return {**queue_engine.queue_statuses(NOW)}


def test_usage_and_fair_share_are_described() -> None:
    queue_statuses = standings()
    assert (
        queue_messages.share_message("vision", queue_statuses["vision"])
        == "queue vision has 12 GPUs; its fair share is 4.5"
    )
    assert queue_messages.share_message("nlp", queue_statuses["nlp"]) == (
        "queue nlp has 2.5 GPUs; its fair share is 11.5, 4 deserved"
    )


def test_past_use_is_told_where_it_counts() -> None:
    queue_engine = an_engine(16, queue("vision", half_life_s=3600.0))
    queue_engine.queue_statuses(NOW)
    queue_engine.charge("x", "vision", some(8), NOW)
    queue_status = queue_engine.queue_statuses(NOW + 3600.0)["vision"]
    assert (
        queue_messages.share_message("vision", queue_status)
        == "queue vision has 8 GPUs, 4 on average; its fair share is 8"
    )


@pytest.mark.parametrize(
    ("count", "message"),
    [(0, "0"), (12500, "12.5"), (125, "0.125"), (1001, "1.001"), (-500, "-0.5"), (30, "0.03")],
)
def test_gpus_are_told_without_needless_zeros(count: int, message: str) -> None:
    assert queue_messages.gpus(count) == message
