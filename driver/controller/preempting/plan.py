"""plan: who goes so that a waiting pod or gang can be placed, and where it is placed then. Pure.

Of all that the law allows what throws the least GPU-seconds away is taken, then the fewest pods,
then the first by name. Steps are counted: past them the best that was found is told, and that it
may not be the least.
"""

from driver.controller.allocation import allocate, outcome, settings
from driver.controller.allocation.gangs import result, seating
from driver.controller.allocation.whatif import asking
from driver.controller.preempting import alone, law, together, units, wanted

STEPS = 50_000
"""About a second, where all of them are needed."""


class Planner:
    """Remembers what nodes are like: that makes the next plan quick and changes none."""

    def __init__(self, deciding: settings.Settings) -> None:
        self._deciding = deciding
        self._view: object = None
        self._forget()

    def _forget(self) -> None:
        self._allocator = allocate.Allocator(self._deciding)
        self._known = together.Known(self._deciding)

    def plan(
        self,
        ask: wanted.Ask,
        right: law.Law,
        book: units.Book,
        meter: asking.Meter | None = None,
    ) -> wanted.Plan | wanted.NoPlan:
        """All or nothing for all members; nobody leaves where they fit as it is.

        The view is left as it is. Pods that are being deleted have what they have: where their end
        is waited for, ask of the view without them (`absence.Absence`).
        """
        if ask.view is not self._view:
            self._forget()
            self._view = ask.view
        meter = asking.Meter(STEPS) if meter is None else meter
        if ask.single is None:
            return self._together(ask, right, book, meter)
        return self._alone(ask, ask.single, right, book, meter)

    def _together(
        self, ask: wanted.Ask, right: law.Law, book: units.Book, meter: asking.Meter
    ) -> wanted.Plan | wanted.NoPlan:
        if not ask.refused:
            seated = seating.place(ask.members, ask.view, ask.near, ask.deciding, self._known.told)
            if isinstance(seated, result.Seated):
                return wanted.Plan((), wanted.in_order(ask, seated))
            if seated.blocker is not None:
                return wanted.NoPlan(wanted.Why.IN_VAIN)
        if not right.preemptor.preempts:
            return wanted.NoPlan(wanted.Why.NEVER)
        return together.Search(ask, right, book, self._known, meter).answer()

    def _alone(
        self,
        ask: wanted.Ask,
        workload: outcome.Workload,
        right: law.Law,
        book: units.Book,
        meter: asking.Meter,
    ) -> wanted.Plan | wanted.NoPlan:
        if not ask.refused:
            answer = self._allocator.decide(ask.view, workload)
            if isinstance(answer, outcome.Placement):
                return wanted.Plan((), (result.Seat(workload, answer),))
        asked = alone.asked(ask, workload, self._known.judges)
        if asked is None:
            return wanted.NoPlan(wanted.Why.IN_VAIN)
        if not right.preemptor.preempts:
            return wanted.NoPlan(wanted.Why.NEVER)
        return alone.Search(ask, asked, right, book, self._known.grounds, meter).answer()


def plan(
    ask: wanted.Ask, right: law.Law, book: units.Book, meter: asking.Meter | None = None
) -> wanted.Plan | wanted.NoPlan:
    """A plan without remembering anything."""
    return Planner(ask.deciding).plan(ask, right, book, meter)
