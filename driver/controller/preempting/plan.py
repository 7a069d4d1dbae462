"""plan: who goes so that a waiting pod or gang can be placed, and where it is placed then. Pure.

Of all that the law allows what throws the least GPU-seconds away is taken, then the fewest pods,
then the first by name. Steps are counted: past them the best that was found is told, and that it
may not be the least.
"""

from driver.controller.allocation.whatif import asking
from driver.controller.preempting import alone, law, together, units, wanted

STEPS = 50_000
"""About a second, where all of them are needed."""


def plan(
    ask: wanted.Ask, right: law.Law, book: units.Book, meter: asking.Meter | None = None
) -> wanted.Plan | wanted.NoPlan:
    """All or nothing for all members; nobody leaves where they fit as it is.

    The view is left as it is. Pods that are being deleted have what they have: where their end is
    waited for, ask of the view without them (`absence.Absence`).
    """
    meter = asking.Meter(STEPS) if meter is None else meter
    single = ask.single
    if single is not None:
        return alone.plan(ask, single, right, book, meter)
    return together.plan(ask, right, book, meter)
