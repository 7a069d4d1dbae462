"""Steps of the wall clock."""

import datetime as dt
import math

from driver import clock as clocks
from tests.fakes import clock


class Stepped(clock.FakeClock):
    """A clock whose wall time can be stepped alone."""

    def __init__(self) -> None:
        super().__init__()
        self.step_s = 0.0

    def now(self) -> dt.datetime:
        return super().now() + dt.timedelta(seconds=self.step_s)


def test_time_that_passes_is_no_step() -> None:
    time = Stepped()
    detector = clocks.StepDetector(time)
    time.advance(86_400)
    assert detector.seconds_since_step() == math.inf


def test_a_step_is_counted_from_the_call_that_saw_it() -> None:
    for seconds in (3600, -3600):
        time = Stepped()
        detector = clocks.StepDetector(time)
        time.step_s = seconds
        assert detector.seconds_since_step() == 0
        time.advance(30)
        assert detector.seconds_since_step() == 30
