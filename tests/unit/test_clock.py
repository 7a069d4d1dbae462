"""Time since stamps of a wall clock that may be stepped."""

import datetime as dt

import pytest

from driver import clock as clocks
from tests.fakes import clock


class Stepped(clock.FakeClock):
    """A clock whose wall time can be stepped alone."""

    def __init__(self) -> None:
        super().__init__()
        self.step_s = 0.0

    def now(self) -> dt.datetime:
        return super().now() + dt.timedelta(seconds=self.step_s)


def test_without_a_step_it_is_the_difference_of_the_wall_clock() -> None:
    time = Stepped()
    elapsed, stamp = clocks.ElapsedTime(time), time.now()
    time.advance(86_400)
    assert elapsed.seconds_since(stamp) == 86_400


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_after_a_step_it_is_the_time_since_the_step_was_seen(step_s: float) -> None:
    time = Stepped()
    elapsed, stamp = clocks.ElapsedTime(time), time.now()
    time.advance(10)
    time.step_s = step_s
    assert elapsed.seconds_since(stamp) == 0
    time.advance(30)
    assert elapsed.seconds_since(stamp) == 30
    assert elapsed.seconds_since(time.now()) == 0


def test_a_stamp_of_the_future_counts_from_the_start() -> None:
    time = Stepped()
    elapsed, stamp = clocks.ElapsedTime(time), time.now() + dt.timedelta(hours=1)
    time.advance(20)
    assert elapsed.seconds_since(stamp) == 20
