"""Back-off between tries. Pure except for its count of failures."""

from collections.abc import Callable
from dataclasses import dataclass

Jitter = Callable[[], float]
"""A number in [0, 1), uniformly: `random.Random().random` of the composition root."""

_SPREAD = 0.5


def no_jitter() -> float:
    """Return 0, for waits that no other process shares, and for tests."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The first wait is at least `base_s`, each next one twice as long, up to `max_s`."""

    base_s: float
    max_s: float

    def wait_s(self, failures: int, jitter: Jitter, at_least_s: float = 0.0) -> float:
        """Return the seconds after the `failures`-th consecutive failure (1 is the first).

        `at_least_s` is the server's Retry-After; it may exceed `max_s`. Jitter adds up to half of
        the wait, so that clients spread out and none comes back too early.
        """
        doublings = min(failures - 1, 32)  # no float grows without end
        wait = max(min(self.base_s * 2.0**doublings, self.max_s), at_least_s)
        return wait * (1 + _SPREAD * jitter())


class Backoff:
    """Counts one loop's consecutive failures."""

    def __init__(self, pace: Pace, jitter: Jitter) -> None:
        self._pace = pace
        self._jitter = jitter
        self._failures = 0

    def after_failure(self, at_least_s: float | None = None) -> float:
        """Return the seconds to wait now."""
        self._failures += 1
        return self._pace.wait_s(self._failures, self._jitter, at_least_s or 0.0)

    def reset(self) -> None:
        """Reset after a success: the next failure is the first again."""
        self._failures = 0
