import pytest

from driver.devices import health, quarantine_policy
from driver.devices.quarantine_policy import FailureHistory

DAY_S = 24 * 3600.0


def failing(past: FailureHistory, *ends: float) -> FailureHistory:
    """A GPU that failed a minute before each of these times, and recovered then."""
    for end in ends:
        past = quarantine_policy.update(past, end - 60, ill=True)
        past = quarantine_policy.update(past, end, ill=False)
    return past


def values(past: FailureHistory) -> list[str]:
    return [ailment.value for ailment in quarantine_policy.ailments(past)]


def test_the_third_failure_within_a_day_keeps_a_gpu_out_once_it_is_over() -> None:
    twice = failing(FailureHistory(), 1000, 2000)
    assert values(twice) == []
    again = quarantine_policy.update(twice, 3000, ill=True)
    assert values(again) == []
    (ailment,) = quarantine_policy.ailments(quarantine_policy.update(again, 4000, ill=False))
    assert (ailment.key, ailment.value, ailment.effect) == (
        "ration.dev/quarantine",
        "3",
        "NoSchedule",
    )
    assert "3 times" in ailment.message
    assert "ration.dev/clear-quarantine" in ailment.message


@pytest.mark.parametrize(("third", "out"), [(1000 + DAY_S - 1, True), (1000 + DAY_S, False)])
def test_a_failure_counts_for_a_day(third: float, *, out: bool) -> None:
    assert (values(failing(FailureHistory(), 1000, 2000, third)) == ["3"]) is out


def test_a_failure_that_goes_on_is_one_however_often_it_is_looked_at() -> None:
    past = FailureHistory()
    for index in range(100):
        past = quarantine_policy.update(past, index, ill=True)
    assert past == FailureHistory(ill=True)
    assert quarantine_policy.update(past, 100, ill=False).failures == (100,)


def test_a_quarantine_outlasts_the_day_and_counts_on() -> None:
    past = failing(FailureHistory(), 1000, 2000, 3000, 5 * DAY_S)
    assert values(past) == ["4"]
    assert past.since == 3000


def test_the_history_of_failures_is_bounded() -> None:
    assert values(failing(FailureHistory(), *range(1000, 300_000, 1000))) == ["99"]


def test_cleared_it_begins_anew_and_what_ails_it_now_counts_when_it_is_over() -> None:
    past = quarantine_policy.update(failing(FailureHistory(), 1000, 2000, 3000), 4000, ill=True)
    free = quarantine_policy.clear(past)
    assert quarantine_policy.ailments(free) == ()
    assert quarantine_policy.update(free, 5000, ill=False).failures == (5000,)


def test_a_clock_that_was_set_back_does_not_make_failures_last() -> None:
    ahead = failing(FailureHistory(), 1000 + 300 * DAY_S)
    back = failing(ahead, 5000)
    assert back.failures == (5000, 5000)
    assert values(failing(back, 6000 + DAY_S)) == []


def test_a_gpu_in_quarantine_is_as_healthy_as_without() -> None:
    ailments = quarantine_policy.ailments(failing(FailureHistory(), 1, 2, 3))
    xid = health.Ailment("ration.dev/xid", "48", "NoSchedule", "")
    assert health.is_healthy(ailments) is True
    assert health.is_healthy((*ailments, xid)) is False


@pytest.mark.parametrize(
    ("annotation", "cleared"),
    [
        ("GPU-a", True),
        ("GPU-b, GPU-a", True),
        ("all", True),
        ("all,2026-11-22", True),
        ("GPU-b", False),
        ("", False),
        (" , ", False),
    ],
)
def test_an_annotation_names_gpus_or_all(annotation: str, *, cleared: bool) -> None:
    assert quarantine_policy.is_named(quarantine_policy.parse_names(annotation), "GPU-a") is cleared
