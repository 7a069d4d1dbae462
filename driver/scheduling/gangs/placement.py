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

_NodeFills = Mapping[ids.NodeName, tentative.NodeFill]


def place_gang(
    pods: Sequence[allocator_types.Workload],
    view: snapshot.Snapshot,
    asked: topology.Topology,
    deciding: settings.Settings,
    known: tentative.FillCache | None = None,
) -> gang_types.GangPlacement | gang_types.GangUnschedulable:
    """All or nothing: places for all of a gang, near each other as `asked`.

    The view is read and left as it is. The same gang on the same view gets the same places.
    `known` is what nodes told before: it makes the answer quick and does not change it.
    """
    return _GangPlacer(
        pods, view, asked, tentative.TentativeState(view, pods, deciding, known)
    ).result()


class _GangPlacer:
    def __init__(
        self,
        gang: Sequence[allocator_types.Workload],
        view: snapshot.Snapshot,
        asked: topology.Topology,
        tried: tentative.TentativeState,
    ) -> None:
        self._count = len(gang)
        self._topology = asked
        self._domains = topology.build_domains(view, asked)
        self._state = tried
        self._groups: list[tuple[Sequence[int], _NodeFills]] = []
        self._by_member: dict[int, tuple[Sequence[int], _NodeFills]] = {}
        self._orders: list[dict[int, int]] = []
        self._shortages: dict[topology.Path, gang_types.DomainShortage] = {}

    def result(self) -> gang_types.GangPlacement | gang_types.GangUnschedulable:
        blocker = self._state.blocker()
        if blocker is not None:
            return gang_types.GangUnschedulable(self._count, blocker)
        self._rank_groups()
        for depth in range(self._topology.depth, self._topology.required_depth - 1, -1):
            for domain in self._candidates(depth):
                if any(self._place_in(domain, order) for order in self._orders):
                    seats = tuple(
                        seat for _, seat in sorted(self._state.placements, key=_member_index)
                    )
                    return gang_types.GangPlacement(seats, domain.path)
        domains = self._domains.cluster.domains_at(self._topology.required_depth)
        found = [self._shortages.get(one.path) or self._shortage(one) for one in domains]
        found.sort(key=lambda one: (-one.fits, one.domain))
        return gang_types.GangUnschedulable(
            self._count, None, tuple(found), self._domains.unlabelled
        )

    def _rank_groups(self) -> None:
        """How many of each shape every node takes; the shape with the least choice comes first.

        Where that comes to nothing, the largest shape does.
        """
        whole = self._domains.cluster
        found: list[tuple[Sequence[int], _NodeFills]] = [
            (members, self._node_fills(members, whole))
            for members in self._state.groups(range(self._count))
        ]
        found.sort(key=lambda one: (_capacity(one[1], whole) / len(one[0]), one[0][0]))
        self._groups = found
        self._by_member = {at: one for one in found for at in one[0]}
        tight = [members for members, _ in found]
        large = sorted(tight, key=lambda one: self._state.size(one[0]), reverse=True)
        self._orders = [_group_ranks(tight), *([] if tight == large else [_group_ranks(large)])]

    def _node_fills(self, members: Sequence[int], domain: topology.Domain) -> _NodeFills:
        return {name: self._state.node_fill(members, name) for name in domain.nodes}

    def _current_fills(self, members: Sequence[int], domain: topology.Domain) -> _NodeFills:
        """How many nodes take now: where nobody sits as many as at first.

        That is not so any more of members that do not all wait still, of those that had claims
        settled since, and once devices are taken that several nodes reach.
        """
        at_first, known = self._by_member[members[0]]
        if (
            at_first != members
            or self._state.has_changed(members[0])
            or self._state.has_network_devices
        ):
            return self._node_fills(members, domain)
        entered = self._state.occupied_nodes
        return {
            name: self._state.node_fill(members, name) if name in entered else known[name]
            for name in domain.nodes
        }

    def _candidates(self, depth: int) -> list[topology.Domain]:
        """Domains that may have room for all, the one where the first shape is nearest first."""
        found = [
            domain
            for domain in self._domains.cluster.domains_at(depth)
            if all(_capacity(known, domain) >= len(members) for members, known in self._groups)
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
                pack.capacity(one),
                sorted(known[name].rank_key for name in plans[one.path].counts),
                one.path,
            ),
        )

    def _packing(self, known: _NodeFills, wanted: int) -> packing.Packing:
        slots = {name: packing.Slots(one.count, one.rank_key) for name, one in known.items()}
        return packing.Packing(slots, self._state.occupied_nodes, wanted, self._topology.depth)

    def _place_in(self, domain: topology.Domain, order: Mapping[int, int]) -> bool:
        """Whether all found places in a domain; if not, none has one."""
        left = [*range(self._count)]
        while left:
            members = min(self._state.groups(left), key=lambda one: (order[one[0]], one))
            if self._state.is_sequential(members[0]):
                members = members[:1]
            known = self._current_fills(members, domain)
            plan = self._packing(known, len(members)).plan(domain)
            sat = self._apply_plan(members, plan, domain) if plan else ()
            if not sat:
                self._shortages[domain.path] = self._missed_shortage(domain, left, members, known)
                self._state.undo_placements(len(self._state.placements))
                return False
            left = [at for at in left if at not in sat]
        return True

    def _apply_plan(
        self, members: Sequence[int], plan: packing.Plan, domain: topology.Domain
    ) -> set[int]:
        """The members that a plan found places for.

        Devices that several nodes reach may be gone before a plan is through: what it was to give
        on such a node is planned again.
        """
        where = topology.describe(self._topology, domain.path)
        why = f"with all {self._count} of its gang in {where}"
        waiting = [*reversed(members)]
        for name in _ordered_nodes(domain):
            for _ in range(plan.counts.get(name, 0)):
                if not self._state.try_place(waiting[-1], name, why):
                    break
                waiting.pop()
        return {*members} - {*waiting}

    def _missed_shortage(
        self,
        domain: topology.Domain,
        left: Sequence[int],
        members: Sequence[int],
        known: _NodeFills,
    ) -> gang_types.DomainShortage:
        """What an attempt came to: those that sit, those of the shape it failed at, and others."""
        rest = {*left} - {*members}
        fits = self._count - len(left) + min(_capacity(known, domain), len(members) - 1)
        return gang_types.DomainShortage(
            domain.path, fits + self._upper_bound(domain, rest), _rejections(known)
        )

    def _shortage(self, domain: topology.Domain) -> gang_types.DomainShortage:
        """Of a domain that was not tried, for a shape alone has not room enough in it."""
        fits = self._upper_bound(domain, {*range(self._count)})
        short = (
            known for members, known in self._groups if _capacity(known, domain) < len(members)
        )
        known = next(short, {})
        inside = {name: known[name] for name in domain.nodes if name in known}
        return gang_types.DomainShortage(domain.path, fits, _rejections(inside))

    def _upper_bound(self, domain: topology.Domain, members: set[int]) -> int:
        return sum(
            min(_capacity(known, domain), sum(at in members for at in those))
            for those, known in self._groups
        )


def _group_ranks(groups: Sequence[Sequence[int]]) -> dict[int, int]:
    """Of each member the place of its group."""
    return {at: rank for rank, members in enumerate(groups) for at in members}


def _member_index(one: tuple[int, gang_types.MemberPlacement]) -> int:
    return one[0]


def _capacity(known: _NodeFills, domain: topology.Domain) -> int:
    return sum(known[name].count for name in domain.nodes)


def _ordered_nodes(domain: topology.Domain) -> Iterator[ids.NodeName]:
    """Nodes near each other one after the other."""
    if not domain.subdomains:
        yield from domain.nodes
    for one in domain.subdomains:
        yield from _ordered_nodes(one)


def _rejections(
    known: _NodeFills,
) -> Mapping[allocator_types.NodeRejection, Sequence[ids.NodeName]]:
    found: dict[allocator_types.NodeRejection, list[ids.NodeName]] = {}
    for name, one in sorted(known.items()):
        if one.rejection is not None:
            found.setdefault(one.rejection, []).append(name)
    return found
