"""Tests that reported activity is never too idle, across any work and restarts."""

import datetime as dt
from typing import TYPE_CHECKING

import hypothesis
from hypothesis import strategies as st

from driver import clock
from driver.kubeletplugin.usage import activity
from driver.resources.dra import device_status
from tests.fakes import clock as fake_clock

if TYPE_CHECKING:
    from driver.kubeletplugin import ports

LOOK_S = 10.0
PREPARED = clock.rfc3339(fake_clock.START)
percents = st.sampled_from([0, 0, 0, 1, 40, 100, None])
spells = st.tuples(percents, st.integers(1, 40))
steps = st.lists(spells | st.just("restart"), min_size=1, max_size=12)


class World:
    """One device, the plugin that looks at it, and the claim that it is told on."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.busy_at = PREPARED
        self.claim: device_status.Activity | None = None
        self.words = 0
        self.looked = False
        self.restart()

    def restart(self) -> None:
        self.course: activity.ActivityHistory | None = None
        self.told: ports.ObservedActivity | None = None
        self.told_s = 0.0

    @property
    def now(self) -> str:
        return clock.rfc3339(fake_clock.START + dt.timedelta(seconds=self.now_s))

    def look(self, percent: int | None) -> None:
        self.now_s += LOOK_S
        if percent != 0:
            self.busy_at = self.now
        fresh, self.looked = not self.looked, True
        course = self.course or activity.new_history(self.now, fresh=fresh)
        self.course = activity.add_observation(
            course, activity.Observation(percent, 0, self.now_s, self.now)
        )
        seen = activity.summarize(self.course)
        since_s = self.now_s - self.told_s
        if self.told is not None and since_s < activity.EVERY_S:
            return
        if activity.should_report(self.told, seen, since_s):
            self.told, self.told_s = seen, self.now_s
            self.claim = activity.merge_status(self.claim, seen, PREPARED)
            self.words += 1


@hypothesis.given(steps)
def test_a_claim_reported_idle_was_idle_since_the_reported_time(
    story: list[str | tuple[int | None, int]],
) -> None:
    world = World()
    previous = ""
    for step in story:
        if isinstance(step, str):
            world.restart()
            continue
        percent, looks = step
        for _ in range(looks):
            world.look(percent)
            claim = world.claim
            assert isinstance(claim, device_status.Activity)
            assert claim.last_busy >= previous
            previous = claim.last_busy
            # A word is a minute old at most when the device has begun to work since.
            if claim.idle_since and world.now_s - world.told_s >= activity.EVERY_S:
                assert claim.idle_since >= world.busy_at


@hypothesis.given(steps)
def test_a_claim_idle_for_two_minutes_is_reported_idle_once(
    story: list[str | tuple[int | None, int]],
) -> None:
    world = World()
    for step in story:
        if isinstance(step, str):
            world.restart()
        else:
            for _ in range(step[1]):
                world.look(step[0])
    for _ in range(13):
        world.look(0)
    assert world.claim is not None
    assert world.claim.idle_since
    words = world.words
    for _ in range(1000):
        world.look(0)
    assert world.words == words


@hypothesis.given(st.lists(percents, min_size=60, max_size=120))
def test_no_more_than_a_word_a_minute_is_said(looks: list[int | None]) -> None:
    world = World()
    for percent in looks:
        world.look(percent)
    assert world.words <= len(looks) * LOOK_S / activity.EVERY_S + 1
