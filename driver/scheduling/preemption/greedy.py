"""For a gang the units in the way of the devices that cost least, node by node. Pure.

Each member takes so many devices of one node; the next one there takes dearer ones. So the cheapest
places for members of one shape are found one by one. What they cost at least no set of units can
undercut; whether they do together is for seating to say.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from driver import ids
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.explain import step_budget, victim_search
from driver.scheduling.gangs import topology
from driver.scheduling.preemption import lower_bounds, policy, victims
from driver.scheduling.preemption import types as preemption_types

_COST_PARTS = 720_720
"""A cost in parts: 1 to 16 divide it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Members of one shape, and the nodes that could take them, as they are for one of them."""

    count: int
    sites: Mapping[ids.NodeName, lower_bounds.Site]


@dataclass(slots=True)
class Guess:
    """Units whose going may do in a domain, and how many devices each node gives then.

    With `bound` nothing that does there costs less than `least`; not `full`: nothing does at all.
    """

    domain: topology.Domain
    is_bound: bool
    is_complete: bool = True
    minimum_cost: int = 0
    chosen: dict[victims.VictimKey, victims.Victim] = field(default_factory=dict)
    devices_by_node: dict[ids.NodeName, int] = field(default_factory=dict)


def find_sites(
    ask: preemption_types.PreemptionRequest,
    asked: step_budget.WorkloadQuery,
    book: victims.VictimIndex,
    known: lower_bounds.NodeCostsCache,
    meter: step_budget.StepBudget,
) -> Mapping[ids.NodeName, lower_bounds.Site] | None:
    """The nodes that a member could be on if there were room; None: not known of all of them."""
    known.refresh(ask.view, asked)
    found: dict[ids.NodeName, lower_bounds.Site] = {}
    for name, node in ask.view.nodes.items():
        if name in asked.workload.avoided_nodes:
            continue
        refused = filters.rejection(ask.view, node, asked.workload)
        if refused is None or refused.node_reason in victim_search.EVICTION_CURABLE:
            site = known.get(ask.view, book, asked, node, meter)
            if site.costs is None or site.costs.is_shared:
                return None
            found[name] = site
    return found


class _Step(NamedTuple):
    """One more member on a node: what that costs at least; the places of the devices it takes."""

    price: int
    node: ids.NodeName
    number: int
    devices: Sequence[int]


class VictimCosts:
    """What units cost: first in haste, then by the law, for those that were chosen."""

    def __init__(self, right: policy.PreemptionPolicy, groups: Sequence[Group]) -> None:
        self._policy = right
        self._by_node: dict[ids.NodeName, list[int]] = {}
        self._refined: set[victims.VictimKey] = set()
        self.parts = _part_counts(groups)

    def site_costs(self, site: lower_bounds.Site) -> list[int]:
        """Of the units of a node; of one on several nodes its part on this one."""
        name = site.node.name
        if name not in self._by_node:
            self._by_node[name] = self._compute_costs(site)
        return self._by_node[name]

    def _compute_costs(self, site: lower_bounds.Site) -> list[int]:
        found = lower_bounds.cost_floors(self._policy, site.victims)
        if not self._refined and not self.parts:
            return found
        for at, one in enumerate(site.victims):
            if one.key in self._refined:
                found[at] = lower_bounds.victim_cost(self._policy.eligibility(one))
            whole = self.parts.get(one.key) if len(one.pods) > 1 else None
            if whole is not None and found[at] < lower_bounds.INFINITE and site.costs is not None:
                found[at] = found[at] * site.costs.parts[at] // whole
        return found

    def refine(self, found: Iterable[victims.Victim]) -> bool:
        """Ask the law; whether that changes what any costs."""
        new = {one.key: one for one in found if one.key not in self._refined}
        floors = lower_bounds.cost_floors(self._policy, [*new.values()])
        real = [lower_bounds.victim_cost(self._policy.eligibility(one)) for one in new.values()]
        self._refined |= {*new}
        if real != floors:
            self._by_node.clear()
        return real != floors


def _part_counts(groups: Sequence[Group]) -> dict[victims.VictimKey, int]:
    """Of units on several nodes: in how many parts they are counted in all."""
    found: dict[victims.VictimKey, int] = {}
    for site in groups[0].sites.values() if groups else ():
        for unit, parts in zip(site.victims, site.costs.parts if site.costs else (), strict=False):
            if len(unit.pods) > 1:
                found[unit.key] = found.get(unit.key, 0) + parts
    return found


def guess_victims(
    domain: topology.Domain,
    groups: Sequence[Group],
    costs: VictimCosts,
    right: policy.PreemptionPolicy,
) -> Guess:
    """Who would go in a domain."""
    made = _build_guess(domain, groups, costs, right)
    if not costs.refine(made.chosen.values()):
        return made
    for group in groups:
        found = (group.sites[name].victims for name in domain.nodes if name in group.sites)
        costs.refine([unit for there in found for unit in there])
    return _build_guess(domain, groups, costs, right)


def _build_guess(
    domain: topology.Domain,
    groups: Sequence[Group],
    costs: VictimCosts,
    right: policy.PreemptionPolicy,
) -> Guess:
    made = Guess(domain, is_bound=True)
    for group in groups:
        made.is_complete = made.is_complete and _add_group(made, group, costs, right)
    if len(groups) > 1:
        made.is_bound = made.is_bound and is_uniform(groups)
        made.minimum_cost = _minimum_cost(domain, groups, costs)
    return made


def is_uniform(groups: Sequence[Group]) -> bool:
    """Whether all groups ask for the same devices, though not for as many a member."""
    first = groups[0].sites
    return all(
        group.sites.keys() == first.keys()
        and all(_is_same_site(site, first[name]) for name, site in group.sites.items())
        for group in groups[1:]
    )


def _is_same_site(one: lower_bounds.Site, other: lower_bounds.Site) -> bool:
    return (
        one.costs is not None
        and other.costs is not None
        and one.costs.devices == other.costs.devices
    )


def _minimum_cost(domain: topology.Domain, groups: Sequence[Group], costs: VictimCosts) -> int:
    """What as many devices cost at least as all groups want that are alike, wherever they are."""
    found: list[int] = []
    for name in domain.nodes:
        site = groups[0].sites.get(name)
        if site is not None and site.costs is not None:
            scale = site.costs.scale
            prices = site.costs.prices(costs.site_costs(site))
            found += [price * _COST_PARTS // scale for price, _ in prices]
    return -(-sum(heapq.nsmallest(_requested_devices(groups), found)) // _COST_PARTS)


def is_possible(
    domain: topology.Domain, groups: Sequence[Group], right: policy.PreemptionPolicy
) -> bool:
    """Whether limits leave devices enough for each group, taken for itself; False is certain."""
    return all(
        lower_bounds.max_free_devices(right, sites) // count >= group.count
        for group in groups
        if (sites := [group.sites[name] for name in domain.nodes if name in group.sites])
        and (count := min(site.costs.count for site in sites if site.costs))
    )


def _add_group(
    made: Guess, group: Group, costs: VictimCosts, right: policy.PreemptionPolicy
) -> bool:
    """Whether places were found for all of a group."""
    sites = [group.sites[name] for name in made.domain.nodes if name in group.sites]
    steps = _cheapest_steps(made, sites, group.count, costs)
    left, total = group.count, 0
    barred: set[ids.NodeName] = set()
    for step in steps:
        if not left:
            break
        if step.node in barred:
            continue
        site = group.sites[step.node]
        gone = _blocking_victims(site, step.devices, costs)
        if not _is_allowed(made, gone, right):
            barred.add(step.node)
            made.is_bound = False
            continue
        left -= 1
        total += step.price
        made.chosen |= {one.key: one for one in gone}
        made.devices_by_node[step.node] = made.devices_by_node.get(step.node, 0) + len(step.devices)
    made.minimum_cost += -(-total // _COST_PARTS)
    return not left


def _is_allowed(
    made: Guess, gone: Sequence[victims.Victim], right: policy.PreemptionPolicy
) -> bool:
    """Whether those who go for one more may go beside those who go already."""
    new = [one for one in gone if one.key not in made.chosen]
    return not new or right.may_add(made.chosen.values(), new)


def _cheapest_steps(
    made: Guess, sites: Iterable[lower_bounds.Site], most: int, costs: VictimCosts
) -> Iterator[_Step]:
    """Of all nodes the cheapest first: one is looked into when its turn may have come."""
    unseen = [(_site_floor(made, site, costs), site.node.name, site) for site in sites]
    unseen.sort(key=lambda one: one[:2], reverse=True)
    steps: list[tuple[_Step, Iterator[_Step]]] = []
    while unseen or steps:
        while unseen and (not steps or unseen[-1][0] <= steps[0][0].price):
            _push_next(steps, _site_steps(made, unseen.pop()[2], most, costs))
        if steps:
            step, rest = heapq.heappop(steps)
            yield step
            _push_next(steps, rest)


def _push_next(steps: list[tuple[_Step, Iterator[_Step]]], rest: Iterator[_Step]) -> None:
    """The next step of a node, where there is one; no two are equal."""
    step = next(rest, None)
    if step is not None:
        heapq.heappush(steps, (step, rest))


def _site_floor(made: Guess, site: lower_bounds.Site, costs: VictimCosts) -> int:
    """What a member on a node costs at least."""
    if site.costs is None or made.chosen or site.costs.free_devices:
        return 0
    return min(costs.site_costs(site), default=0) * _COST_PARTS // max(site.costs.parts, default=1)


def _site_steps(
    made: Guess, site: lower_bounds.Site, most: int, costs: VictimCosts
) -> Iterator[_Step]:
    """The cheapest first, as things are when the first is asked for."""
    ground, before, given = (
        site.costs,
        dict(made.chosen),
        made.devices_by_node.get(site.node.name, 0),
    )
    if ground is None:
        return
    priced = costs.site_costs(site)
    if before:
        priced = [
            0 if one.key in before else cost for one, cost in zip(site.victims, priced, strict=True)
        ]
    prices = ground.prices(priced)[given:]
    count, part, name = ground.count, _COST_PARTS // ground.scale, site.node.name
    for number in range(min(len(prices) // count, most)):
        mine = prices[number * count : (number + 1) * count]
        price = sum([price for price, _ in mine])
        # Rounded down where the scale does not divide: still nothing costs less.
        price = (
            price * part
            if part * ground.scale == _COST_PARTS
            else price * _COST_PARTS // ground.scale
        )
        yield _Step(price, name, number, [at for _, at in mine])


def _blocking_victims(
    site: lower_bounds.Site, places: Sequence[int], costs: VictimCosts
) -> list[victims.Victim]:
    """The units in the way of devices."""
    found: set[int] = set()
    priced = costs.site_costs(site)
    for place in places:
        bar = site.costs.devices[place] if site.costs else None
        if bar is not None:
            found |= bar.required
        if bar is not None and bar.alternatives:
            found.add(min(bar.alternatives, key=lambda at: (priced[at], at)))
    return [site.victims[at] for at in sorted(found)]


def may_be_enough(
    groups: Sequence[Group], domains: Sequence[topology.Domain], gone: Collection[victims.VictimKey]
) -> bool:
    """Whether a domain may have room for each group, or for all alike; False is certain."""
    joint = len(groups) > 1 and is_uniform(groups)
    return any(
        all(_free_slots(group, domain, gone) >= group.count for group in groups)
        and not (joint and _free_devices(groups, domain, gone) < _requested_devices(groups))
        for domain in domains
    )


def _requested_devices(groups: Sequence[Group]) -> int:
    """The devices that all groups want together."""
    found = 0
    for group in groups:
        counts = {site.costs.count for site in group.sites.values() if site.costs}
        found += group.count * min(counts, default=0)
    return found


def _free_devices(
    groups: Sequence[Group], domain: topology.Domain, gone: Collection[victims.VictimKey]
) -> int:
    sites = groups[0].sites
    return sum(_site_free_devices(sites[name], gone) for name in domain.nodes if name in sites)


def _free_slots(group: Group, domain: topology.Domain, gone: Collection[victims.VictimKey]) -> int:
    sites = (group.sites[name] for name in domain.nodes if name in group.sites)
    return sum(_site_free_devices(site, gone) // site.costs.count for site in sites if site.costs)


def _site_free_devices(site: lower_bounds.Site, gone: Collection[victims.VictimKey]) -> int:
    """The devices that a node may give at most."""
    ground = site.costs
    if ground is None:
        return 0
    left = {at for at, one in enumerate(site.victims) if one.key not in gone}
    return sum(
        left.isdisjoint(bar.required) and not (bar.alternatives and bar.alternatives <= left)
        for bar in ground.devices
    )
