"""Quarantine of GPUs that fail repeatedly: failures are counted until a person clears them. Pure.

A failure is over when a GPU with ailments has none again; informational ailments do not count. A
GPU with FAILURE_LIMIT of them in WINDOW_S is in quarantine from then on, even while it is healthy.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from driver import names
from driver.devices import health

FAILURE_LIMIT: Final = 3
WINDOW_S: Final = 24 * 3600.0
_COUNTED = 99
"""Maximum of failures kept: the list is on disk."""


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """Failures of a GPU by the time they were over (Unix seconds, oldest first).

    `ill`: a failure is not over yet. `since`: start of the quarantine.
    """

    failures: tuple[float, ...] = ()
    ill: bool = False
    since: float | None = None


NO_FAILURES = FailureHistory()


def update(history: FailureHistory, now: float, *, ill: bool) -> FailureHistory:
    """Return the history after a poll at `now`; unchanged while the GPU's health is."""
    if history.ill == ill:
        return _expire(history, now)
    if ill:
        return dataclasses.replace(_expire(history, now), ill=True)
    # A clock that was set back must not keep a failure longer than the window.
    earlier = tuple(min(timestamp, now) for timestamp in _expire(history, now).failures)
    failures = (*earlier, now)[-_COUNTED:]
    since = history.since
    if since is None and len(failures) >= FAILURE_LIMIT:
        since = now
    return FailureHistory(failures, ill=False, since=since)


def clear(history: FailureHistory) -> FailureHistory:
    """Return the history without past failures; a current failure counts once it is over."""
    return FailureHistory(ill=history.ill)


def ailments(history: FailureHistory) -> tuple[health.Ailment, ...]:
    """Return the quarantine as an ailment of the whole GPU: its value is the number of failures."""
    if history.since is None:
        return ()
    count = len(history.failures)
    text = (
        f"it has failed {count} times and recovered each time, {FAILURE_LIMIT} times within "
        f"{WINDOW_S / 3600:g} hours; cleared by the Node's annotation {names.CLEAR_QUARANTINE}"
    )
    return (health.Ailment(names.TAINT_QUARANTINE, str(count), "NoSchedule", text),)


def is_quarantine(ailment: health.Ailment) -> bool:
    """Return whether the ailment is the quarantine, not a current fault."""
    return ailment.key == names.TAINT_QUARANTINE


def parse_names(annotation: str) -> frozenset[str]:
    """Return the UUIDs an annotation names to be cleared, possibly `all`: `GPU-a, GPU-b`."""
    return frozenset(part.strip() for part in annotation.split(",") if part.strip())


def is_named(annotation: Iterable[str], gpu: str) -> bool:
    """Return whether a GPU is among the names."""
    cleared = frozenset(annotation)
    return names.ALL in cleared or gpu in cleared


def _expire(history: FailureHistory, now: float) -> FailureHistory:
    """Drop failures outside the window; in quarantine all are kept."""
    if history.since is not None:
        return history
    recent = tuple(timestamp for timestamp in history.failures if now - timestamp < WINDOW_S)
    return history if recent == history.failures else dataclasses.replace(history, failures=recent)
