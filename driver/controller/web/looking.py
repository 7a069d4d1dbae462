"""What there is to see, by the controller's caches: at most one look a second."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from driver import clock
from driver.controller import stores
from driver.controller.reports import model, reading, seen
from driver.controller.web import ports

LOOK_S = 1.0
"""However often it is asked, so that readers take no more of the process than this."""


@dataclass(frozen=True, slots=True)
class Minded:
    """What is known beside the caches.

    `away` raises Away where this replica cannot tell; `stale` names, in words, what has not been
    heard of for long.
    """

    away: Callable[[], None]
    stale: Callable[[], Sequence[str]]
    explain: reading.Explain
    moments: Callable[[], Sequence[model.Moment]]


class Looking:
    """A source of reports. Thread safe; readers wait for one another's look, and nobody else."""

    def __init__(
        self, found: stores.Stores, driver: str, minded: Minded, time: clock.Clock
    ) -> None:
        self._stores = found
        self._driver = driver
        self._minded = minded
        self._clock = time
        self._lock = threading.Lock()
        self._last: tuple[float, reading.Reading] | None = None

    def now(self) -> reading.Reading:
        """What there is to see. Raises Away."""
        self._minded.away()
        with self._lock:
            now = self._clock.monotonic()
            if self._last is None or now - self._last[0] >= LOOK_S:
                before = self._last[1].found if self._last else None
                self._last = now, self._look(before)
            return self._last[1]

    def _look(self, before: seen.Seen | None) -> reading.Reading:
        found = self._stores
        objects = seen.Objects(
            driver=self._driver,
            nodes=found.nodes.snapshot(),
            slices=found.slices.snapshot(),
            classes=found.classes.snapshot(),
            claims=found.claims.snapshot(),
            pods=found.pods.snapshot(),
            rules=found.rules.snapshot(),
            queues=found.teams.snapshot(),
            reservations=found.reserved.snapshot(),
            missing=tuple(self._minded.stale()),
        )
        at, minded = clock.rfc3339(self._clock.now()), self._minded
        return reading.Reading(seen.Seen(objects, before), at, minded.explain, minded.moments())


def standing_by(leads: Callable[[], bool], leader: Callable[[], str]) -> None:
    """Raise Away where this replica does not lead."""
    if leads():
        return
    name = leader()
    who = f"{name} leads: ask that one" if name else "nobody leads yet: ask again in a moment"
    raise ports.Away(f"this replica stands by; {who}", name)


def filling(empty: Iterable[str]) -> None:
    """Raise Away while caches have no listing yet."""
    names = ", ".join(empty)
    if names:
        raise ports.Away(f"this replica leads, and is still listing {names}: ask again in a moment")
