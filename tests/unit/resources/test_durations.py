import pytest

from driver.resources import durations


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (-1, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (61, "1m1s"),
        (3600, "1h"),
        (7500, "2h5m"),
        (90000, "1d1h"),
        (864000, "10d"),
    ],
)
def test_times_are_told_in_their_two_largest_units(seconds: float, message: str) -> None:
    assert durations.format_duration(seconds) == message
