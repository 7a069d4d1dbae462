"""A plan for a gang: all of it, or nothing. Pure.

First those in the way of the cheapest devices are tried (`hasty`): often nothing can cost less.
Where something might, and those who may go are few, sets are tried in the order of what they cost
until the steps end. How many members a node takes is counted for each node by itself, as seating
counts it: only sets that leave room enough are tried.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.allocator import settings
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.allocator.policies import policy_selector
from driver.scheduling.explain import step_budget, subsets, without_pods
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import tentative, topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import greedy, lower_bounds, pod_plan, policy, victims
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.snapshot import overlay as snapshot_overlay
from driver.scheduling.snapshot import snapshot

_SEAT = 20
"""Steps of asking for a seat."""
_FEW = 16
"""Units of which all sets may be tried."""
_MOST_TRIES = 32
"""Seatings to find out who may stay after all."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Units without which all have seats, called by their places. `least`: none cost less."""

    gone: subsets.Members
    seated: gang_types.Seated
    least: bool = False


class Known:
    """What is remembered from plan to plan, of one view that changes."""

    def __init__(self, deciding: settings.Settings) -> None:
        self.grounds = lower_bounds.Grounds()
        self.judges = policy_selector.PolicySelector(deciding.policy_chain)
        self.told = tentative.Known()


class Search:
    """For a gang that fits nowhere as it is. Units that may go stand in the order of their cost."""

    def __init__(
        self,
        ask: preemption_types.Ask,
        right: policy.Law,
        book: victims.Book,
        known: Known,
        meter: step_budget.Meter,
    ) -> None:
        self._ask = ask
        self._right = right
        self._book = book
        self._known = known
        self._meter = meter
        chart = topology.chart(ask.view, ask.near)
        self._domains = [*chart.whole.at(ask.near.least)]
        self._groups = self._grouped()

    def answer(self) -> preemption_types.Plan | preemption_types.NoPlan:
        """The cheapest plan that was found."""
        guesses = self._guesses()
        if guesses and not any(one.full or self._possible(one) for one in guesses):
            return preemption_types.none(preemption_types.Why.IN_VAIN, self._every())
        quick = self._quick(guesses)
        if quick is not None and quick.least:
            return quick
        return self._slow(quick)

    def _every(self) -> list[policy.Judged]:
        return [self._right.judged(one) for one in self._book.all(self._ask.view).values()]

    def _grouped(self) -> Sequence[greedy.Group] | None:
        """Members that ask for the same devices, and where they may be; None: not known."""
        keys = [claim.key for one in self._ask.members for claim in one.open_claims]
        if len({*keys}) < len(keys):
            return None
        found: dict[object, list[int]] = {}
        for at, one in enumerate(self._ask.members):
            if one.open_claims:
                found.setdefault(workload_signature.device_signature(one), []).append(at)
        made: list[greedy.Group] = []
        for members in found.values():
            asked = pod_plan.asked(self._ask, self._ask.members[members[0]], self._known.judges)
            sites = asked and greedy.sites(
                self._ask, asked, self._book, self._known.grounds, self._meter
            )
            if not sites:
                return None
            made.append(greedy.Group(len(members), sites))
        return made or None

    def _guesses(self) -> list[greedy.Guess]:
        """Of each domain, the cheapest first."""
        groups = self._groups or []
        costs = greedy.Costs(self._right, groups)
        found = [
            greedy.guess(domain, groups, costs, self._right) for domain in self._domains if groups
        ]
        return sorted(found, key=lambda one: (one.least, one.domain.path))

    def _possible(self, one: greedy.Guess) -> bool:
        """Whether something may do in a domain though no guess was made; False is certain."""
        if one.bound or self._groups is None:
            return self._groups is None
        return greedy.possible(one.domain, self._groups, self._right)

    def _quick(self, guesses: Sequence[greedy.Guess]) -> preemption_types.Plan | None:
        """A plan of who is in the way of the cheapest devices."""
        full = [one for one in guesses if one.full]
        for one in full:
            leaving = [self._right.judged(each) for each in one.gone.values()]
            if not self._right.allows(leaving):
                continue
            self._meter.count(_SEAT * len(self._ask.members))
            seated = self._seated(leaving, one.nodes)
            if seated is None and not self._alike:
                seated = self._seated(leaving)
            if seated is not None:
                price = preemption_types.one_number(*preemption_types.cost_of(leaving))
                least = all(each.bound for each in guesses) and price <= full[0].least
                return _plan(self._ask, leaving, seated, least=least)
        return None

    @property
    def _alike(self) -> bool:
        """Whether all members ask for the same devices, and for some."""
        groups = self._groups or ()
        return len(groups) == 1 and groups[0].wanted == len(self._ask.members)

    def _slow(
        self, quick: preemption_types.Plan | None
    ) -> preemption_types.Plan | preemption_types.NoPlan:
        every = self._every()
        may = sorted((one for one in every if self._may(one)), key=lambda one: one.rank)
        room = _Room(self._ask, self._book, may, self._meter)
        search = _Sets(self._ask, self._right, room, may, self._known.told)
        some = search.of(quick) if quick else search.some(self._meter)
        if len(may) <= _FEW:
            some, known = search.cheaper(some, self._meter)
        else:
            known = not self._meter.spent and some is None
        if some is None:
            return preemption_types.none(
                preemption_types.Why.IN_VAIN if known else preemption_types.Why.SPENT, every
            )
        leaving = [may[at] for at in sorted(some.gone)]
        if known:
            return _plan(self._ask, leaving, some.seated, least=True)
        return self._fewer(leaving, some.seated)

    def _may(self, one: policy.Judged) -> bool:
        """Whether a unit may go, and is not part of who waits."""
        mine = self._ask.uids
        return one.barred is None and all(each.pod.uid not in mine for each in one.unit.people)

    def _fewer(
        self, leaving: Sequence[policy.Judged], seated: gang_types.Seated
    ) -> preemption_types.Plan:
        """Without those who may stay after all, the dearest first."""
        found, tries = [*leaving], 0
        for one in sorted(leaving, key=lambda one: one.rank, reverse=True):
            rest = [other for other in found if other is not one]
            keys = {other.unit.key for other in rest}
            if self._groups and not greedy.enough(self._groups, self._domains, keys):
                continue
            again = self._seated(rest) if tries < _MOST_TRIES else None
            tries += 1
            if again is not None:
                found, seated = rest, again
        return _plan(self._ask, found, seated, least=False)

    def _seated(
        self, leaving: Sequence[policy.Judged], only: Collection[ids.NodeName] | None = None
    ) -> gang_types.Seated | None:
        return _seated(self._ask, leaving, self._known.told, only)


class _Part(snapshot_overlay.SnapshotOverlay):
    """A view of some of the nodes."""

    def __init__(self, below: snapshot.Snapshot, names: Collection[ids.NodeName]) -> None:
        super().__init__(below)
        self._nodes = {name: node for name, node in below.nodes.items() if name in names}

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Those."""
        return self._nodes


def _seated(
    ask: preemption_types.Ask,
    leaving: Sequence[policy.Judged],
    told: tentative.Known,
    only: Collection[ids.NodeName] | None = None,
) -> gang_types.Seated | None:
    """The seats of all, on some nodes only, once these are gone; None where not all have one."""
    people = [one for each in leaving for one in each.unit.people]
    view: snapshot.Snapshot = without_pods.Absence(ask.view, people)
    view = view if only is None else _Part(view, only)
    found = gang_placement.place(ask.members, view, ask.near, ask.deciding, told)
    return found if isinstance(found, gang_types.Seated) else None


def _plan(
    ask: preemption_types.Ask,
    leaving: Sequence[policy.Judged],
    seated: gang_types.Seated,
    *,
    least: bool,
) -> preemption_types.Plan:
    found = sorted(leaving, key=lambda one: (one.unit.name, one.unit.key))
    return preemption_types.Plan(tuple(found), preemption_types.in_order(ask, seated), least)


class _Sets:
    """Sets of those that may go, who are called by their places."""

    def __init__(
        self,
        ask: preemption_types.Ask,
        right: policy.Law,
        room: "_Room",
        may: Sequence[policy.Judged],
        told: tentative.Known,
    ) -> None:
        self._told = told
        self._ask = ask
        self._right = right
        self._room = room
        self._may = may

    def of(self, plan: preemption_types.Plan) -> _Found | None:
        """The set of a plan."""
        places = {one.unit.key: at for at, one in enumerate(self._may)}
        gone = frozenset(places[one.unit.key] for one in plan.leaving)
        return _Found(gone, gang_types.Seated(plan.seats, ()))

    def some(self, meter: step_budget.Meter) -> _Found | None:
        """All who may go together but who may stay, the dearest first."""
        gone: subsets.Members = frozenset()
        everyone = frozenset(range(len(self._may)))
        if self._right.allows(self._may):
            gone = everyone
        for at in sorted(everyone - gone):
            if self._right.allows(self._judged(gone | {at})):
                gone |= {at}
        if not self._room.may(gone):
            return None
        for at in sorted(gone, reverse=True):
            if meter.spent:
                break
            if self._room.may(gone - {at}):
                gone -= {at}
        return self._tried(gone, meter)

    def cheaper(self, some: _Found | None, meter: step_budget.Meter) -> tuple[_Found | None, bool]:
        """The cheapest, and whether none is cheaper."""
        letters = subsets.Letters([frozenset([at]) for at in range(len(self._may))])
        looked_at = subsets.Sets(letters, self._rank)
        under = None if some is None else self._rank(some.gone)
        for gone in looked_at:
            if meter.spent:
                return some, False
            if under is not None and self._rank(gone) >= under:
                return some, True
            meter.count(step_budget.LOOK)
            if not self._right.allows(self._judged(gone)):
                looked_at.done(gone)
                continue
            found = self._tried(gone, meter) if self._room.may(gone) else None
            if found is not None:
                return found, True
        return some, True

    def _tried(self, gone: subsets.Members, meter: step_budget.Meter) -> _Found | None:
        meter.count(_SEAT * len(self._ask.members))
        seated = _seated(self._ask, self._judged(gone), self._told)
        return None if seated is None else _Found(gone, seated)

    def _judged(self, gone: Collection[int]) -> list[policy.Judged]:
        return [self._may[at] for at in sorted(gone)]

    def _rank(self, gone: subsets.Members) -> subsets.Rank:
        found = self._judged(gone)
        return preemption_types.cost_of(found), tuple(sorted(one.unit.name for one in found))


class _Room:
    """How many members of each shape nodes take once units are gone."""

    def __init__(
        self,
        ask: preemption_types.Ask,
        book: victims.Book,
        may: Sequence[policy.Judged],
        meter: step_budget.Meter,
    ) -> None:
        self._ask = ask
        self._may = may
        self._meter = meter
        places = {one.unit.key: at for at, one in enumerate(may)}
        self._near: dict[ids.NodeName, subsets.Members] = {
            name: frozenset(places[one.key] for one in book.on(ask.view, node) if one.key in places)
            for name, node in ask.view.nodes.items()
        }
        self._groups = tentative.Trial(ask.view, ask.members, ask.deciding).groups(
            range(len(ask.members))
        )
        chart = topology.chart(ask.view, ask.near)
        self._domains = [*chart.whole.at(ask.near.least)]
        self._known: dict[tuple[ids.NodeName, subsets.Members], tuple[int, ...]] = {}

    def may(self, gone: subsets.Members) -> bool:
        """Whether a domain has room for all members of each shape, taken for itself."""
        return any(self._may_in(domain, gone) for domain in self._domains)

    def _may_in(self, domain: topology.Domain, gone: subsets.Members) -> bool:
        counts = [self._of(name, gone & self._near[name]) for name in domain.nodes]
        found = [sum(of_shape) for of_shape in zip(*counts, strict=True)]
        return bool(found) and all(
            count >= len(members) for count, members in zip(found, self._groups, strict=True)
        )

    def _of(self, name: ids.NodeName, gone: subsets.Members) -> tuple[int, ...]:
        key = (name, gone)
        if key not in self._known:
            self._meter.count(step_budget.ASK)
            leaving = [one for at in gone for one in self._may[at].unit.people]
            without = without_pods.Absence(self._ask.view, leaving)
            filling = tentative.Trial(without, self._ask.members, self._ask.deciding)
            self._known[key] = tuple(filling.filling(one, name).count for one in self._groups)
        return self._known[key]
