"""The first of all that waits and finds no place now: where it will start soonest is kept for it.

What comes later in the order takes of that only what it is done with before (backfill, EASY:
Lifka, JSSPP 1995). So small work passes large work as long as it does not delay it.
"""

import structlog

from driver import ids
from driver.controller import state, writers
from driver.controller.allocation import settings
from driver.controller.allocation.whatif import asking
from driver.controller.preempting import soonest, units, wanted
from driver.controller.reservations import planning, term
from driver.controller.waiting import candidates

_log = structlog.get_logger(__name__)
KEY = ids.Key("head:")
"""What is kept is held by it; no claim has such a key."""
_STEPS = 2_000
"""Of one look for where it starts: about 50 ms."""
_AGAIN_S = 2.0
_PATIENT = 20.0
"""What is kept is looked for anew no more often, nor before so many times what that took."""


class Head:
    """On the decider's thread. What it remembers may be lost: the next look finds it again."""

    def __init__(self, known: state.State, book: units.Book, deciding: settings.Settings) -> None:
        self._known = known
        self._book = book
        self._deciding = deciding
        self._kept: soonest.Kept | None = None
        self._again = 0.0
        self.item: writers.Item | None = None

    def renew(self) -> bool:
        """What does not wait any more keeps nothing; whether that is new."""
        if self.item is None or self._known.memory.waiting.get(self.item) is not None:
            return False
        self.drop()
        return True

    def lift(self) -> None:
        """For what comes before it: nothing is kept until `settle`."""
        if self._kept is not None:
            self._known.view.put_hold(KEY, None)

    def settle(self) -> None:
        """What comes later finds it kept."""
        if self._kept is not None:
            held = planning.of_seats(self._known.view, self._kept.seats)
            self._known.view.put_hold(KEY, term.allocation(held))

    def drop(self) -> None:
        """Nothing is kept."""
        self.item = self._kept = None
        self._known.view.put_hold(KEY, None)

    def keep(self, one: candidates.Candidate) -> bool:
        """Keep where a candidate starts soonest; False where it does at no time."""
        now = self._known.clock.monotonic()
        if one.item == self.item and now < self._again:
            self.settle()
            return True
        self.drop()
        view = self._known.view
        everyone = (there for unit in self._book.all(view).values() for there in unit.people)
        ask = wanted.Ask(view, one.workloads, self._deciding, one.near)
        found = soonest.soonest(ask, everyone, self._known.clock.now(), asking.Meter(_STEPS))
        if found is None:
            return False
        ended = self._known.clock.monotonic()
        self.item, self._kept = one.item, found
        self._again = ended + max(_AGAIN_S, _PATIENT * (ended - now))
        self.settle()
        _log.debug("kept", item=one.item, start=found.start, waits_for=found.waits_for[:3])
        return True

    def lends(self, one: candidates.Candidate) -> bool:
        """Whether a candidate is over before the head starts, by what it declares."""
        start = self._kept.start if self._kept is not None else None
        now = self._known.clock.now()
        return start is not None and all(
            term.is_over_by(work.pod, start, now) for work in one.workloads
        )
