"""Gang placement: a gang and a snapshot in, placements or reasons out. Pure (D4, D7).

The finest level is tried first: all in one domain of it, then in one of the next coarser level, up
to the required one. Inside a domain members of one shape are planned together (`packing`), the
shape with the least choice first; if that fails the largest shape first. Equal members are placed
as near each other as possible; for members that differ that is not guaranteed, and if they share
nodes tightly a placement may be missed.
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
    topology_request: topology.Topology,
    allocator_settings: settings.Settings,
    fill_cache: tentative.FillCache | None = None,
) -> gang_types.GangPlacement | gang_types.GangUnschedulable:
    """Place all of a gang near each other, or nothing.

    The snapshot is not modified. The same gang on the same snapshot gets the same placement.
    `fill_cache` saves time and does not change the result.
    """
    return _GangPlacer(
        pods,
        view,
        topology_request,
        tentative.TentativeState(view, pods, allocator_settings, fill_cache),
    ).result()


class _GangPlacer:
    def __init__(
        self,
        gang: Sequence[allocator_types.Workload],
        view: snapshot.Snapshot,
        topology_request: topology.Topology,
        state: tentative.TentativeState,
    ) -> None:
        self._count = len(gang)
        self._topology = topology_request
        self._domains = topology.build_domains(view, topology_request)
        self._state = state
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
                    placed = tuple(
                        placed_member
                        for _, placed_member in sorted(self._state.placements, key=_member_index)
                    )
                    return gang_types.GangPlacement(placed, domain.path)
        domains = self._domains.cluster.domains_at(self._topology.required_depth)
        shortages = [
            self._shortages.get(shortage.path) or self._shortage(shortage) for shortage in domains
        ]
        shortages.sort(key=lambda shortage: (-shortage.fits, shortage.domain))
        return gang_types.GangUnschedulable(
            self._count, None, tuple(shortages), self._domains.unlabelled
        )

    def _rank_groups(self) -> None:
        """Compute the members of each shape per node; the shape with the least choice is first.

        If that fails, the largest shape is.
        """
        cluster = self._domains.cluster
        groups: list[tuple[Sequence[int], _NodeFills]] = [
            (members, self._node_fills(members, cluster))
            for members in self._state.groups(range(self._count))
        ]
        groups.sort(key=lambda group: (_capacity(group[1], cluster) / len(group[0]), group[0][0]))
        self._groups = groups
        self._by_member = {member: group for group in groups for member in group[0]}
        tight = [members for members, _ in groups]
        large = sorted(tight, key=lambda group: self._state.size(group[0]), reverse=True)
        self._orders = [_group_ranks(tight), *([] if tight == large else [_group_ranks(large)])]

    def _node_fills(self, members: Sequence[int], domain: topology.Domain) -> _NodeFills:
        return {name: self._state.node_fill(members, name) for name in domain.nodes}

    def _current_fills(self, members: Sequence[int], domain: topology.Domain) -> _NodeFills:
        """Return current fills: the initial ones for nodes without members.

        They are recomputed for groups that changed, for members with newly allocated claims, and
        once network devices are taken.
        """
        at_first, fills = self._by_member[members[0]]
        if (
            at_first != members
            or self._state.has_changed(members[0])
            or self._state.has_network_devices
        ):
            return self._node_fills(members, domain)
        entered = self._state.occupied_nodes
        return {
            name: self._state.node_fill(members, name) if name in entered else fills[name]
            for name in domain.nodes
        }

    def _candidates(self, depth: int) -> list[topology.Domain]:
        """Return domains that may hold all, the one where the first shape is nearest first."""
        domains = [
            domain
            for domain in self._domains.cluster.domains_at(depth)
            if all(_capacity(fills, domain) >= len(members) for members, fills in self._groups)
        ]
        if len(domains) <= 1 or not self._groups:
            return domains
        members, fills = self._groups[0]
        packer = self._packing(fills, len(members))
        plans = {
            domain.path: plan for domain in domains if (plan := packer.plan(domain)) is not None
        }
        return sorted(
            domains,
            key=lambda domain: (
                plans[domain.path].cost,
                packer.capacity(domain),
                sorted(fills[name].rank_key for name in plans[domain.path].counts),
                domain.path,
            ),
        )

    def _packing(self, fills: _NodeFills, count: int) -> packing.Packing:
        slots = {name: packing.Slots(fill.count, fill.rank_key) for name, fill in fills.items()}
        return packing.Packing(slots, self._state.occupied_nodes, count, self._topology.depth)

    def _place_in(self, domain: topology.Domain, order: Mapping[int, int]) -> bool:
        """Place all members in a domain; return False, with nothing placed, if one does not fit."""
        unplaced = [*range(self._count)]
        while unplaced:
            members = min(self._state.groups(unplaced), key=lambda group: (order[group[0]], group))
            if self._state.is_sequential(members[0]):
                members = members[:1]
            fills = self._current_fills(members, domain)
            plan = self._packing(fills, len(members)).plan(domain)
            placed = self._apply_plan(members, plan, domain) if plan else ()
            if not placed:
                self._shortages[domain.path] = self._missed_shortage(
                    domain, unplaced, members, fills
                )
                self._state.undo_placements(len(self._state.placements))
                return False
            unplaced = [member for member in unplaced if member not in placed]
        return True

    def _apply_plan(
        self, members: Sequence[int], plan: packing.Plan, domain: topology.Domain
    ) -> set[int]:
        """Return the members that a plan found places for.

        Network devices may be gone before a plan is complete: the rest is planned again.
        """
        location = topology.describe(self._topology, domain.path)
        explanation = f"with all {self._count} of its gang in {location}"
        waiting = [*reversed(members)]
        for name in _ordered_nodes(domain):
            for _ in range(plan.counts.get(name, 0)):
                if not self._state.try_place(waiting[-1], name, explanation):
                    break
                waiting.pop()
        return {*members} - {*waiting}

    def _missed_shortage(
        self,
        domain: topology.Domain,
        unplaced: Sequence[int],
        members: Sequence[int],
        fills: _NodeFills,
    ) -> gang_types.DomainShortage:
        """Return the shortage of an attempt: placed members, the failed shape, and others."""
        others = {*unplaced} - {*members}
        fits = self._count - len(unplaced) + min(_capacity(fills, domain), len(members) - 1)
        return gang_types.DomainShortage(
            domain.path, fits + self._upper_bound(domain, others), _rejections(fills)
        )

    def _shortage(self, domain: topology.Domain) -> gang_types.DomainShortage:
        """Return the shortage of a domain that was not tried: a shape alone does not fit."""
        fits = self._upper_bound(domain, {*range(self._count)})
        lacking = (
            fills for members, fills in self._groups if _capacity(fills, domain) < len(members)
        )
        fills = next(lacking, {})
        inside = {name: fills[name] for name in domain.nodes if name in fills}
        return gang_types.DomainShortage(domain.path, fits, _rejections(inside))

    def _upper_bound(self, domain: topology.Domain, members: set[int]) -> int:
        return sum(
            min(_capacity(fills, domain), sum(member in members for member in group))
            for group, fills in self._groups
        )


def _group_ranks(groups: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the rank of each member's group."""
    return {member: rank for rank, members in enumerate(groups) for member in members}


def _member_index(entry: tuple[int, gang_types.MemberPlacement]) -> int:
    return entry[0]


def _capacity(fills: _NodeFills, domain: topology.Domain) -> int:
    return sum(fills[name].count for name in domain.nodes)


def _ordered_nodes(domain: topology.Domain) -> Iterator[ids.NodeName]:
    """Yield nodes, near ones one after the other."""
    if not domain.subdomains:
        yield from domain.nodes
    for subdomain in domain.subdomains:
        yield from _ordered_nodes(subdomain)


def _rejections(
    fills: _NodeFills,
) -> Mapping[allocator_types.NodeRejection, Sequence[ids.NodeName]]:
    grouped: dict[allocator_types.NodeRejection, list[ids.NodeName]] = {}
    for name, fill in sorted(fills.items()):
        if fill.rejection is not None:
            grouped.setdefault(fill.rejection, []).append(name)
    return grouped
