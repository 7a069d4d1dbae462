"""A plan for one pod: the cheapest set of units on the best node. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from driver.controller.allocation import allocate, answers, judges, nodefit, outcome
from driver.controller.allocation.gangs import result
from driver.controller.allocation.whatif import absence, asking, freeing
from driver.controller.preempting import law, units, wanted
from driver.resources import nodes


def plan(
    ask: wanted.Ask,
    workload: outcome.Workload,
    right: law.Law,
    book: units.Book,
    meter: asking.Meter,
) -> wanted.Plan | wanted.NoPlan:
    """The cheapest one; with no one leaving where the pod fits as it is."""
    answer = allocate.allocate(ask.view, workload, ask.deciding)
    if isinstance(answer, outcome.Placement):
        return wanted.Plan((), (result.Seat(workload, answer),))
    asked = _asked(ask, workload)
    if asked is None or not right.preemptor.preempts:
        return wanted.NoPlan(wanted.Why.IN_VAIN if asked is None else wanted.Why.NEVER)
    return _Search(ask, asked, right, book, meter).answer()


def _asked(ask: wanted.Ask, workload: outcome.Workload) -> asking.Asking | None:
    """By the policies that decide about the workload, so that devices are chosen as later."""
    asked = asking.of(ask.view, workload, ask.deciding)
    if asked is None:
        return None
    judge = judges.Judges(ask.deciding.ranking).of(ask.view, asked.wants)
    if isinstance(judge, outcome.NoFit):
        return None
    return replace(asked, deciding=replace(asked.deciding, ranking=judge))


@dataclass(frozen=True, slots=True)
class _There:
    """A node with the units that may go, the cheapest first."""

    node: nodes.Node
    found: Sequence[law.Judged]


class _Search:
    def __init__(
        self,
        ask: wanted.Ask,
        asked: asking.Asking,
        right: law.Law,
        book: units.Book,
        meter: asking.Meter,
    ) -> None:
        self._ask = ask
        self._asked = asked
        self._right = right
        self._book = book
        self._known = wanted.Known(right)
        self._search = freeing.Search(ask.view, asked, self._known, meter, self._known.allows)

    def answer(self) -> wanted.Plan | wanted.NoPlan:
        best: freeing.Freed | None = None
        least = True
        for there in self._nodes():
            if best is not None and wanted.cost_of(there.found[:1]) >= best.cost:
                break
            if self._search.meter.spent:
                least = False
                break
            self._search.meter.count(asking.NODE)
            parties = [self._known.put(one) for one in there.found]
            under = best.cost if best else None
            ways = freeing.ways_of_parties(self._search, there.node, parties, under)
            best = next(ways, None) or best
        if best is None:
            spent = self._search.meter.spent
            why = wanted.Why.SPENT if spent else wanted.Why.IN_VAIN
            every = self._book.all(self._ask.view).values()
            return wanted.none(why, map(self._right.judged, every))
        if least and best.least and not self._search.meter.spent:
            return self._plan(best, least=True)
        return self._plan(self._fewer(best), least=False)

    def _nodes(self) -> list[_There]:
        """Where somebody may go, the cheapest first."""
        found: list[_There] = []
        for name, node in sorted(self._ask.view.nodes.items()):
            if name in self._asked.workload.avoid:
                continue
            judged = map(self._right.judged, self._book.on(self._ask.view, node))
            there = sorted((one for one in judged if one.barred is None), key=_rank)
            if there:
                found.append(_There(node, there))
        return sorted(found, key=lambda one: (_rank(one.found[0]), one.node.name))

    def _fewer(self, freed: freeing.Freed) -> freeing.Freed:
        """Without those who may stay after all: on another node less may have to go."""
        names = sorted({one.node for one in freed.leaving} - {*self._asked.workload.avoid})
        for unit in sorted(self._known.judged(freed.leaving), key=_rank, reverse=True):
            rest = tuple(one for one in freed.leaving if one not in unit.unit.people)
            without = absence.Absence(self._ask.view, rest)
            for name in names:
                node = self._ask.view.nodes[name]
                refused = nodefit.refusal(without, node, self._asked.workload)
                fit = None if refused else self._asked.answer(without, node)
                if isinstance(fit, answers.Fit):
                    cost = self._known.of(rest)
                    freed = freeing.Freed(name, rest, cost, fit, least=False)
                    break
        return freed

    def _plan(self, freed: freeing.Freed, *, least: bool) -> wanted.Plan:
        without = absence.Absence(self._ask.view, freed.leaving)
        picks = self._asked.picks(without, self._ask.view.nodes[freed.node], freed.fit)
        placement = outcome.Placement(freed.node, picks, "once those in its way are gone")
        leaving = tuple(self._known.judged(freed.leaving))
        return wanted.Plan(leaving, (result.Seat(self._asked.workload, placement),), least)


def _rank(one: law.Judged) -> tuple[int, int, str]:
    return one.rank
