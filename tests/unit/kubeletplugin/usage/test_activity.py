import dataclasses

import pytest

from driver.kubeletplugin.ports import ObservedActivity
from driver.kubeletplugin.usage import activity
from driver.kubeletplugin.usage.activity import ActivityHistory, Observation
from driver.resources.dra.device_status import Activity

MIB, GIB = 1 << 20, 1 << 30
IDLE = ObservedActivity(percent=0, peak_bytes=4 * GIB, last_busy="09:00", first_observed="08:00")
BUSY = ObservedActivity(percent=50, peak_bytes=4 * GIB, last_busy="09:00", first_observed="08:00")


def course(*percents: int | None, every_s: float = 10.0) -> ActivityHistory:
    activity_history = activity.new_history("09:00", fresh=False)
    for number, percent in enumerate(percents):
        look = Observation(percent, 0, number * every_s, f"09:{number:02}")
        activity_history = activity.add_observation(activity_history, look)
    return activity_history


@pytest.mark.parametrize(
    ("percents", "count"),
    [
        ((0,), 0),
        ((0, 0, 0, 0, 0, 1), 1),
        ((100, 50), 75),
        ((80, *[0] * 5), 14),
        ((80, *[0] * 6), 0),
        ((None, 80), None),
        ((None, *[0] * 6), 0),
    ],
)
def test_the_percentage_is_of_the_last_minute_and_0_only_where_nothing_ran(
    percents: tuple[int | None, ...], count: int | None
) -> None:
    assert activity.summarize(course(*percents)).percent == count


def test_the_last_look_at_work_is_kept_and_the_largest_memory_in_whole_mib() -> None:
    activity_history = course(0, 10, None, 0, 0)
    assert activity.summarize(activity_history).last_busy == "09:02"
    for used in (MIB + 1, 5):
        activity_history = activity.add_observation(
            activity_history, Observation(0, used, 60, "09:06")
        )
    assert activity.summarize(activity_history).peak_bytes == 2 * MIB


def test_a_never_active_claims_last_use_is_its_prepare_if_observed() -> None:
    assert activity.new_history("09:00", fresh=True).last_busy == "09:00"
    assert activity.new_history("09:00", fresh=False).last_busy == ""


@pytest.mark.parametrize(
    ("observed_activity", "change", "since_s", "news"),
    [
        (None, {}, 0, True),
        (IDLE, {}, 1e6, False),
        (IDLE, {"percent": 1, "last_busy": "09:30"}, 60, True),
        (IDLE, {"percent": None, "last_busy": "09:30"}, 60, True),
        (IDLE, {"last_busy": "09:30"}, 60, True),
        (IDLE, {"peak_bytes": 4 * GIB + 400 * MIB}, 60, False),
        (IDLE, {"peak_bytes": 4 * GIB + 410 * MIB}, 60, True),
        (BUSY, {"percent": 0}, 60, True),
        (BUSY, {"percent": 69}, 60, False),
        (BUSY, {"percent": 70}, 60, True),
        (BUSY, {"percent": 30}, 60, True),
        (BUSY, {"last_busy": "09:30"}, 299, False),
        (BUSY, {"last_busy": "09:30"}, 300, True),
        (BUSY, {"percent": None, "last_busy": "09:30"}, 299, False),
        (BUSY, {"percent": None, "last_busy": "09:30"}, 300, True),
    ],
)
def test_only_what_changes_a_decision_is_worth_a_word(
    observed_activity: ObservedActivity | None,
    change: dict[str, object],
    since_s: float,
    *,
    news: bool,
) -> None:
    now = dataclasses.replace(observed_activity or IDLE, **change)  # type: ignore[arg-type]
    assert activity.should_report(observed_activity, now, since_s) is news


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        (None, ObservedActivity(0, MIB, "", "09:00"), Activity("08:00", 0, MIB)),
        (None, ObservedActivity(7, MIB, "09:01", "09:00"), Activity("09:01", 7, MIB)),
        (
            Activity("07:00", 0, GIB),
            ObservedActivity(0, MIB, "", "09:00"),
            Activity("07:00", 0, GIB),
        ),
        (
            Activity("07:00", 0, GIB),
            ObservedActivity(0, MIB, "09:01", "09:00"),
            Activity("09:01", 0, GIB),
        ),
        (
            Activity("07:00", 40, None),
            ObservedActivity(0, MIB, "", "09:00"),
            Activity("09:00", 0, MIB),
        ),
        (Activity("07:00"), ObservedActivity(0, MIB, "", "09:00"), Activity("09:00", 0, MIB)),
        (
            Activity("10:00", 40, GIB),
            ObservedActivity(None, MIB, "09:30", "9"),
            Activity("10:00", None, GIB),
        ),
    ],
    ids=["first", "at work", "restart", "again", "was at work", "perhaps at work", "clock"],
)
def test_activity_from_before_a_restart_continues(
    old: Activity | None, new: ObservedActivity, merged: Activity
) -> None:
    assert activity.merge_status(old, new, "08:00") == merged


def test_without_a_time_of_preparation_it_is_the_first_look() -> None:
    assert activity.merge_status(None, ObservedActivity(0, 0, "", "09:00"), "").last_busy == "09:00"
