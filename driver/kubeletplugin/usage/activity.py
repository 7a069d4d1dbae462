"""Activity of claims' devices, and when a change of it is reported. Pure.

Reports are few, as each is a write: on the first observation, when a device starts working or has
been idle for a minute, when its load differs much from the report, when its memory has grown, and
every few minutes while it works.
"""

from dataclasses import dataclass, replace
from typing import Final

from driver.kubeletplugin import ports
from driver.resources.dra import device_status

WINDOW_S: Final = 60.0
"""Window of a percentage; a device is idle when nothing ran on it for this time."""
EVERY_S: Final = 60.0
"""Minimum interval of a claim's reports."""
REFRESH_S: Final = 300.0
"""Maximum age of the reported time of a busy device."""
_STEP = 20
"""Change in percent that is reported."""
_TENTH = 10
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Observation:
    """A device at one time: `percent` as in `ports.ObservedActivity`, `at_s` monotonic."""

    percent: int | None
    used_bytes: int
    at_s: float
    now: str


@dataclass(frozen=True, slots=True)
class ActivityHistory:
    """A device's observations: those of the last minute, and a summary of the others."""

    started: str
    last_busy: str = ""
    peak_bytes: int = 0
    observations: tuple[Observation, ...] = ()


def new_history(timestamp: str, *, fresh: bool) -> ActivityHistory:
    """Return an empty history. `fresh`: the claim was prepared since the last observation."""
    return ActivityHistory(timestamp, timestamp if fresh else "")


def add_observation(history: ActivityHistory, latest: Observation) -> ActivityHistory:
    """Return the history with one more observation."""
    recent = tuple(
        observation
        for observation in history.observations
        if latest.at_s - observation.at_s < WINDOW_S
    )
    return replace(
        history,
        last_busy=history.last_busy if latest.percent == 0 else latest.now,
        peak_bytes=max(history.peak_bytes, -(-latest.used_bytes // _MIB) * _MIB),
        observations=(*recent, latest),
    )


def summarize(history: ActivityHistory) -> ports.ObservedActivity:
    """Return the activity of a history with an observation."""
    percents = [item.percent for item in history.observations]
    measured = [item for item in percents if item is not None]
    percent = -(-sum(measured) // len(measured)) if len(measured) == len(percents) else None
    return ports.ObservedActivity(percent, history.peak_bytes, history.last_busy, history.started)


def should_report(
    reported: ports.ObservedActivity | None, current: ports.ObservedActivity, since_s: float
) -> bool:
    """Return whether to report now, `since_s` after the last report."""
    if reported is None or (reported.percent == 0) != (current.percent == 0):
        return True
    if (current.peak_bytes - reported.peak_bytes) * _TENTH >= max(reported.peak_bytes, 1):
        return True
    is_later = current.last_busy != reported.last_busy
    if current.percent == 0:
        return is_later
    if reported.percent is not None and current.percent is not None:
        is_later = is_later and since_s >= REFRESH_S
        return is_later or abs(current.percent - reported.percent) >= _STEP
    return is_later and since_s >= REFRESH_S


def merge_status(
    old: device_status.Activity | None, new: ports.ObservedActivity, prepared: str
) -> device_status.Activity:
    """Merge the reported activity with what this process observed.

    Without an earlier report, a device never seen busy was last busy when it was `prepared`; a
    device that an earlier process saw busy may have been so until the first observation.
    """
    if old is None:
        last_busy, peak_bytes = new.last_busy or prepared or new.first_observed, new.peak_bytes
    else:
        unseen = old.last_busy if old.utilization == 0 else new.first_observed
        last_busy = max(old.last_busy, new.last_busy or unseen)
        peak_bytes = max(old.peak_bytes or 0, new.peak_bytes)
    return device_status.Activity(last_busy, new.percent, peak_bytes)
