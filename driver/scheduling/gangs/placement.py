"""place: a gang and a view in, a place for each member out, or why there is none. Pure (D4, D7).

The finest level is tried first: all in one domain of it, then in one of the next coarser level, up
to the one that is required. Inside a domain members of one shape are planned together (`packing`),
the shape that has the least to choose from first; if that fails the largest shape first. Alike
members are placed as near each other as can be; of members that differ that is not promised, and
where they share nodes tightly a place may be missed.
"""

from collections.abc import Iterator, Mapping, Sequence

from driver import ids
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import packing, tentative, topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.snapshot import snapshot

_Fillings = Mapping[ids.NodeName, tentative.Filling]


def place(
    pods: Sequence[allocator_types.Workload],
    view: snapshot.Snapshot,
    asked: topology.Topology,
    deciding: settings.Settings,
    known: tentative.Known | None = None,
) -> gang_types.Seated | gang_types.Unseated:
    """All or nothing: places for all of a gang, near each other as `asked`.

    The view is read and left as it is. The same gang on the same view gets the same places.
    `known` is what nodes told before: it makes the answer quick and does not change it.
    """
    return _Seating(pods, view, asked, tentative.Trial(view, pods, deciding, known)).answer()


class _Seating:
    def __init__(
        self,
        gang: Sequence[allocator_types.Workload],
        view: snapshot.Snapshot,
        asked: topology.Topology,
        tried: tentative.Trial,
    ) -> None:
        self._wanted = len(gang)
        self._asked = asked
        self._chart = topology.chart(view, asked)
        self._trial = tried
        self._groups: list[tuple[Sequence[int], _Fillings]] = []
        self._known: dict[int, tuple[Sequence[int], _Fillings]] = {}
        self._orders: list[dict[int, int]] = []
        self._missed: dict[topology.Path, gang_types.Shortage] = {}

    def answer(self) -> gang_types.Seated | gang_types.Unseated:
        blocker = self._trial.blocker()
        if blocker is not None:
            return gang_types.Unseated(self._wanted, blocker)
        self._look()
        for depth in range(self._asked.depth, self._asked.least - 1, -1):
            for domain in self._candidates(depth):
                if any(self._seated(domain, order) for order in self._orders):
                    seats = tuple(seat for _, seat in sorted(self._trial.seats, key=_by_member))
                    return gang_types.Seated(seats, domain.path)
        domains = self._chart.whole.at(self._asked.least)
        found = [self._missed.get(one.path) or self._shortage(one) for one in domains]
        found.sort(key=lambda one: (-one.fits, one.domain))
        return gang_types.Unseated(self._wanted, None, tuple(found), self._chart.unlabelled)

    def _look(self) -> None:
        """How many of each shape every node takes; the shape with the least choice comes first.

        Where that comes to nothing, the largest shape does.
        """
        whole = self._chart.whole
        found: list[tuple[Sequence[int], _Fillings]] = [
            (members, self._fillings(members, whole))
            for members in self._trial.groups(range(self._wanted))
        ]
        found.sort(key=lambda one: (_room(one[1], whole) / len(one[0]), one[0][0]))
        self._groups = found
        self._known = {at: one for one in found for at in one[0]}
        tight = [members for members, _ in found]
        large = sorted(tight, key=lambda one: self._trial.size(one[0]), reverse=True)
        self._orders = [_ranks(tight), *([] if tight == large else [_ranks(large)])]

    def _fillings(self, members: Sequence[int], domain: topology.Domain) -> _Fillings:
        return {name: self._trial.filling(members, name) for name in domain.nodes}

    def _now(self, members: Sequence[int], domain: topology.Domain) -> _Fillings:
        """How many nodes take now: where nobody sits as many as at first.

        That is not so any more of members that do not all wait still, of those that had claims
        settled since, and once devices are taken that several nodes reach.
        """
        at_first, known = self._known[members[0]]
        if at_first != members or self._trial.changed(members[0]) or self._trial.roams:
            return self._fillings(members, domain)
        entered = self._trial.entered
        return {
            name: self._trial.filling(members, name) if name in entered else known[name]
            for name in domain.nodes
        }

    def _candidates(self, depth: int) -> list[topology.Domain]:
        """Domains that may have room for all, the one where the first shape is nearest first."""
        found = [
            domain
            for domain in self._chart.whole.at(depth)
            if all(_room(known, domain) >= len(members) for members, known in self._groups)
        ]
        if len(found) <= 1 or not self._groups:
            return found
        members, known = self._groups[0]
        pack = self._packing(known, len(members))
        plans = {one.path: plan for one in found if (plan := pack.plan(one)) is not None}
        return sorted(
            found,
            key=lambda one: (
                plans[one.path].cost,
                pack.room(one),
                sorted(known[name].standing for name in plans[one.path].counts),
                one.path,
            ),
        )

    def _packing(self, known: _Fillings, wanted: int) -> packing.Packing:
        slots = {name: packing.Slots(one.count, one.standing) for name, one in known.items()}
        return packing.Packing(slots, self._trial.entered, wanted, self._asked.depth)

    def _seated(self, domain: topology.Domain, order: Mapping[int, int]) -> bool:
        """Whether all found places in a domain; if not, none has one."""
        left = [*range(self._wanted)]
        while left:
            members = min(self._trial.groups(left), key=lambda one: (order[one[0]], one))
            if self._trial.one_by_one(members[0]):
                members = members[:1]
            known = self._now(members, domain)
            plan = self._packing(known, len(members)).plan(domain)
            sat = self._sit(members, plan, domain) if plan else ()
            if not sat:
                self._missed[domain.path] = self._miss(domain, left, members, known)
                self._trial.rise(len(self._trial.seats))
                return False
            left = [at for at in left if at not in sat]
        return True

    def _sit(self, members: Sequence[int], plan: packing.Plan, domain: topology.Domain) -> set[int]:
        """The members that a plan found places for.

        Devices that several nodes reach may be gone before a plan is through: what it was to give
        on such a node is planned again.
        """
        where = topology.words(self._asked, domain.path)
        why = f"with all {self._wanted} of its gang in {where}"
        waiting = [*reversed(members)]
        for name in _in_order(domain):
            for _ in range(plan.counts.get(name, 0)):
                if not self._trial.seat(waiting[-1], name, why):
                    break
                waiting.pop()
        return {*members} - {*waiting}

    def _miss(
        self,
        domain: topology.Domain,
        left: Sequence[int],
        members: Sequence[int],
        known: _Fillings,
    ) -> gang_types.Shortage:
        """What an attempt came to: those that sit, those of the shape it failed at, and others."""
        rest = {*left} - {*members}
        fits = self._wanted - len(left) + min(_room(known, domain), len(members) - 1)
        return gang_types.Shortage(
            domain.path, fits + self._at_most(domain, rest), _refusals(known)
        )

    def _shortage(self, domain: topology.Domain) -> gang_types.Shortage:
        """Of a domain that was not tried, for a shape alone has not room enough in it."""
        fits = self._at_most(domain, {*range(self._wanted)})
        short = (known for members, known in self._groups if _room(known, domain) < len(members))
        known = next(short, {})
        inside = {name: known[name] for name in domain.nodes if name in known}
        return gang_types.Shortage(domain.path, fits, _refusals(inside))

    def _at_most(self, domain: topology.Domain, members: set[int]) -> int:
        return sum(
            min(_room(known, domain), sum(at in members for at in those))
            for those, known in self._groups
        )


def _ranks(groups: Sequence[Sequence[int]]) -> dict[int, int]:
    """Of each member the place of its group."""
    return {at: rank for rank, members in enumerate(groups) for at in members}


def _by_member(one: tuple[int, gang_types.Seat]) -> int:
    return one[0]


def _room(known: _Fillings, domain: topology.Domain) -> int:
    return sum(known[name].count for name in domain.nodes)


def _in_order(domain: topology.Domain) -> Iterator[ids.NodeName]:
    """Nodes near each other one after the other."""
    if not domain.inside:
        yield from domain.nodes
    for one in domain.inside:
        yield from _in_order(one)


def _refusals(known: _Fillings) -> Mapping[allocator_types.NodeRejection, Sequence[ids.NodeName]]:
    found: dict[allocator_types.NodeRejection, list[ids.NodeName]] = {}
    for name, one in sorted(known.items()):
        if one.refusal is not None:
            found.setdefault(one.refusal, []).append(name)
    return found
