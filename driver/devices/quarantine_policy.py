"""GPUs that fail again and again: counted, and kept out of use until a person clears them. Pure.

A failure is over when nothing ails the GPU any more that something ailed; what only informs is no
failure. A GPU with MOST of them in WINDOW_S is in quarantine from then on, however well it is.
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
"""More are not told apart: the list is kept on disk."""


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """What is remembered of a GPU: when its failures were over (Unix seconds, the oldest first).

    `ill`: one is not over yet. `since`: in quarantine, from when on.
    """

    failures: tuple[float, ...] = ()
    ill: bool = False
    since: float | None = None


NO_FAILURES = FailureHistory()


def update(past: FailureHistory, now: float, *, ill: bool) -> FailureHistory:
    """After a look at the GPU at `now`; without a change of the GPU, the same."""
    if past.ill == ill:
        return _expire(past, now)
    if ill:
        return dataclasses.replace(_expire(past, now), ill=True)
    # A clock that was set back must not keep a failure longer than the window.
    before = tuple(min(at, now) for at in _expire(past, now).failures)
    failures = (*before, now)[-_COUNTED:]
    since = past.since
    if since is None and len(failures) >= FAILURE_LIMIT:
        since = now
    return FailureHistory(failures, ill=False, since=since)


def clear(past: FailureHistory) -> FailureHistory:
    """Nothing that is over counts any more; what ails it now will when it is over."""
    return FailureHistory(ill=past.ill)


def ailments(past: FailureHistory) -> tuple[health.Ailment, ...]:
    """The quarantine, as what ails the whole GPU: the value is the count of failures."""
    if past.since is None:
        return ()
    count = len(past.failures)
    text = (
        f"it has failed {count} times and recovered each time, {FAILURE_LIMIT} times within "
        f"{WINDOW_S / 3600:g} hours; cleared by the Node's annotation {names.CLEAR_QUARANTINE}"
    )
    return (health.Ailment(names.TAINT_QUARANTINE, str(count), "NoSchedule", text),)


def is_quarantine(one: health.Ailment) -> bool:
    """Whether that is what keeps the GPU out, and no illness of it."""
    return one.key == names.TAINT_QUARANTINE


def parse_names(annotation: str) -> frozenset[str]:
    """The UUIDs that an annotation names to be cleared, `all` among them; `GPU-a, GPU-b`."""
    return frozenset(part.strip() for part in annotation.split(",") if part.strip())


def is_named(annotation: Iterable[str], gpu: str) -> bool:
    """Whether a GPU is among those that are named."""
    wanted = frozenset(annotation)
    return names.ALL in wanted or gpu in wanted


def _expire(past: FailureHistory, now: float) -> FailureHistory:
    """Without failures that are out of the window; one in quarantine keeps all of them."""
    if past.since is not None:
        return past
    kept = tuple(at for at in past.failures if now - at < WINDOW_S)
    return past if kept == past.failures else dataclasses.replace(past, failures=kept)
