"""A plan for a gang: all of it, or nothing. Pure.

First a set without which all find places is found in few steps: all who may go, but who may stay,
the dearest first. Then sets are tried in the order of what they cost, up to that one, until the
steps end. How many members a node takes is counted for each node by itself, as seating counts it:
only sets that leave room enough are tried.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from driver import ids
from driver.controller.allocation.gangs import result, seating, topology, trial
from driver.controller.allocation.whatif import absence, asking, sets
from driver.controller.preempting import law, units, wanted

_SEAT = 5
"""Steps of asking for seats, for each member."""


def plan(
    ask: wanted.Ask, right: law.Law, book: units.Book, meter: asking.Meter
) -> wanted.Plan | wanted.NoPlan:
    """The cheapest one that was found; with no one leaving where the gang fits as it is."""
    seated = seating.place(ask.members, ask.view, ask.near, ask.deciding)
    if isinstance(seated, result.Seated):
        return wanted.Plan((), wanted.in_order(ask, seated))
    if seated.blocker is not None:
        return wanted.NoPlan(wanted.Why.IN_VAIN)
    if not right.preemptor.preempts:
        return wanted.NoPlan(wanted.Why.NEVER)
    return _Search(ask, right, book, meter).answer()


@dataclass(frozen=True, slots=True)
class _Found:
    gone: sets.Members
    seated: result.Seated


class _Search:
    """Units that may go are called by their places, the cheapest first."""

    def __init__(
        self, ask: wanted.Ask, right: law.Law, book: units.Book, meter: asking.Meter
    ) -> None:
        self._ask = ask
        self._right = right
        self._meter = meter
        self._every = [right.judged(one) for one in book.all(ask.view).values()]
        may = [one for one in self._every if one.barred is None and _others(one, ask.uids)]
        self._may = sorted(may, key=lambda one: one.rank)
        self._room = _Room(ask, book, self._may, meter)

    def answer(self) -> wanted.Plan | wanted.NoPlan:
        everyone = frozenset(range(len(self._may)))
        if not self._room.may(everyone):
            return wanted.none(wanted.Why.IN_VAIN, self._every)
        some = self._some()
        best, least = self._cheaper(some)
        if best is None:
            why = wanted.Why.IN_VAIN if least else wanted.Why.SPENT
            return wanted.none(why, self._every)
        leaving = sorted(self._judged(best.gone), key=lambda one: (one.unit.name, one.unit.key))
        return wanted.Plan(tuple(leaving), wanted.in_order(self._ask, best.seated), least)

    def _some(self) -> _Found | None:
        """All who may go together but who may stay, the dearest first."""
        gone: sets.Members = frozenset()
        for at in range(len(self._may)):
            if self._right.allows(self._judged(gone | {at})):
                gone |= {at}
        if not self._room.may(gone):
            return None
        for at in sorted(gone, reverse=True):
            if self._room.may(gone - {at}):
                gone -= {at}
        return self._tried(gone)

    def _cheaper(self, some: _Found | None) -> tuple[_Found | None, bool]:
        """The cheapest, and whether none is cheaper."""
        letters = sets.Letters([frozenset([at]) for at in range(len(self._may))])
        looked_at = sets.Sets(letters, self._rank)
        under = None if some is None else self._rank(some.gone)
        for gone in looked_at:
            if self._meter.spent:
                return some, False
            if under is not None and self._rank(gone) >= under:
                return some, True
            self._meter.count(asking.LOOK)
            if not self._right.allows(self._judged(gone)):
                looked_at.done(gone)
                continue
            found = self._tried(gone) if self._room.may(gone) else None
            if found is not None:
                return found, True
        return some, True

    def _tried(self, gone: sets.Members) -> _Found | None:
        self._meter.count(_SEAT * len(self._ask.members))
        leaving = [one for each in self._judged(gone) for one in each.unit.people]
        without = absence.Absence(self._ask.view, leaving)
        ask = self._ask
        seated = seating.place(ask.members, without, ask.near, ask.deciding)
        return _Found(gone, seated) if isinstance(seated, result.Seated) else None

    def _judged(self, gone: Collection[int]) -> list[law.Judged]:
        return [self._may[at] for at in sorted(gone)]

    def _rank(self, gone: sets.Members) -> sets.Rank:
        found = self._judged(gone)
        return wanted.cost_of(found), tuple(sorted(one.unit.name for one in found))


class _Room:
    """How many members of each shape nodes take once units are gone."""

    def __init__(
        self,
        ask: wanted.Ask,
        book: units.Book,
        may: Sequence[law.Judged],
        meter: asking.Meter,
    ) -> None:
        self._ask = ask
        self._may = may
        self._meter = meter
        places = {one.unit.key: at for at, one in enumerate(may)}
        self._near: dict[ids.NodeName, sets.Members] = {
            name: frozenset(places[one.key] for one in book.on(ask.view, node) if one.key in places)
            for name, node in ask.view.nodes.items()
        }
        self._groups = trial.Trial(ask.view, ask.members, ask.deciding).groups(
            range(len(ask.members))
        )
        chart = topology.chart(ask.view, ask.near)
        self._domains = [*chart.whole.at(ask.near.least)]
        self._known: dict[tuple[ids.NodeName, sets.Members], tuple[int, ...]] = {}

    def may(self, gone: sets.Members) -> bool:
        """Whether a domain has room for all members of each shape, taken for itself."""
        return any(self._may_in(domain, gone) for domain in self._domains)

    def _may_in(self, domain: topology.Domain, gone: sets.Members) -> bool:
        counts = [self._of(name, gone & self._near[name]) for name in domain.nodes]
        found = [sum(of_shape) for of_shape in zip(*counts, strict=True)]
        return bool(found) and all(
            count >= len(members) for count, members in zip(found, self._groups, strict=True)
        )

    def _of(self, name: ids.NodeName, gone: sets.Members) -> tuple[int, ...]:
        key = (name, gone)
        if key not in self._known:
            self._meter.count(asking.ASK)
            leaving = [one for at in gone for one in self._may[at].unit.people]
            without = absence.Absence(self._ask.view, leaving)
            filling = trial.Trial(without, self._ask.members, self._ask.deciding)
            self._known[key] = tuple(filling.filling(one, name).count for one in self._groups)
        return self._known[key]


def _others(one: law.Judged, uids: frozenset[ids.PodUid]) -> bool:
    """Whether a unit is not part of who waits."""
    return all(each.pod.uid not in uids for each in one.unit.people)
