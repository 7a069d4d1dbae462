"""What the devices of claims did, look by look, and what of it is worth telling. Pure.

Told is little, because every word is a write: at first, when a device began to work or has not for
a minute, when it works much more or less than was told, when memory has grown, and every few
minutes while it works.
"""

from dataclasses import dataclass, replace
from typing import Final

from driver.kubeletplugin import ports
from driver.resources.dra import device_status

WINDOW_S: Final = 60.0
"""What a percentage is of; a device is idle when nothing ran on it for so long."""
EVERY_S: Final = 60.0
"""Between two words on a claim, at least."""
REFRESH_S: Final = 300.0
"""How old the time may be that is told of a device at work."""
_STEP = 20
"""Percent that are worth a word."""
_TENTH = 10
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Observation:
    """What a look found of a device: `percent` as in `ports.Seen`, `at_s` by the steady clock."""

    percent: int | None
    used_bytes: int
    at_s: float
    now: str


@dataclass(frozen=True, slots=True)
class ActivityHistory:
    """A device's looks so far: those of the last minute, and what is kept of the others."""

    started: str
    last_busy: str = ""
    peak_bytes: int = 0
    observations: tuple[Observation, ...] = ()


def new_history(now: str, *, fresh: bool) -> ActivityHistory:
    """Before the first look. `fresh`: the claim was prepared since the look before this one."""
    return ActivityHistory(now, now if fresh else "")


def add_observation(course: ActivityHistory, look: Observation) -> ActivityHistory:
    """The course with one more look."""
    recent = tuple(one for one in course.observations if look.at_s - one.at_s < WINDOW_S)
    return replace(
        course,
        last_busy=course.last_busy if look.percent == 0 else look.now,
        peak_bytes=max(course.peak_bytes, -(-look.used_bytes // _MIB) * _MIB),
        observations=(*recent, look),
    )


def summarize(course: ActivityHistory) -> ports.ObservedActivity:
    """What there is to tell of a course with a look."""
    percents = [one.percent for one in course.observations]
    known = [one for one in percents if one is not None]
    percent = -(-sum(known) // len(known)) if len(known) == len(percents) else None
    return ports.ObservedActivity(percent, course.peak_bytes, course.last_busy, course.started)


def should_report(
    told: ports.ObservedActivity | None, now: ports.ObservedActivity, since_s: float
) -> bool:
    """Whether it is worth a word, `since_s` after the last one."""
    if told is None or (told.percent == 0) != (now.percent == 0):
        return True
    if (now.peak_bytes - told.peak_bytes) * _TENTH >= max(told.peak_bytes, 1):
        return True
    later = now.last_busy != told.last_busy
    if now.percent == 0:
        return later
    if told.percent is not None and now.percent is not None:
        later = later and since_s >= REFRESH_S
        return later or abs(now.percent - told.percent) >= _STEP
    return later and since_s >= REFRESH_S


def merge_status(
    old: device_status.Activity | None, new: ports.ObservedActivity, prepared: str
) -> device_status.Activity:
    """What is to be said, of what was said before and of what this process has seen.

    Without anything before, a device that was never at work was so when it was `prepared`; what a
    process before this one saw at work may have been so until we looked.
    """
    if old is None:
        last_busy, peak_bytes = new.last_busy or prepared or new.first_observed, new.peak_bytes
    else:
        unseen = old.last_busy if old.utilization == 0 else new.first_observed
        last_busy = max(old.last_busy, new.last_busy or unseen)
        peak_bytes = max(old.peak_bytes or 0, new.peak_bytes)
    return device_status.Activity(last_busy, new.percent, peak_bytes)
