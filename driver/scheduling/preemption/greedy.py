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

_WHOLE = 720_720
"""A cost in parts: 1 to 16 divide it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Members of one shape, and the nodes that could take them, as they are for one of them."""

    wanted: int
    sites: Mapping[ids.NodeName, lower_bounds.Site]


@dataclass(slots=True)
class Guess:
    """Units whose going may do in a domain, and how many devices each node gives then.

    With `bound` nothing that does there costs less than `least`; not `full`: nothing does at all.
    """

    domain: topology.Domain
    bound: bool
    full: bool = True
    least: int = 0
    gone: dict[victims.UnitKey, victims.Unit] = field(default_factory=dict)
    nodes: dict[ids.NodeName, int] = field(default_factory=dict)


def sites(
    ask: preemption_types.Ask,
    asked: step_budget.Asking,
    book: victims.Book,
    known: lower_bounds.Grounds,
    meter: step_budget.Meter,
) -> Mapping[ids.NodeName, lower_bounds.Site] | None:
    """The nodes that a member could be on if there were room; None: not known of all of them."""
    known.renew(ask.view, asked)
    found: dict[ids.NodeName, lower_bounds.Site] = {}
    for name, node in ask.view.nodes.items():
        if name in asked.workload.avoided_nodes:
            continue
        refused = filters.rejection(ask.view, node, asked.workload)
        if refused is None or refused.node_reason in victim_search.ROOM:
            site = known.of(ask.view, book, asked, node, meter)
            if site.ground is None or site.ground.shared:
                return None
            found[name] = site
    return found


class _Step(NamedTuple):
    """One more member on a node: what that costs at least; the places of the devices it takes."""

    price: int
    node: ids.NodeName
    number: int
    places: Sequence[int]


class Costs:
    """What units cost: first in haste, then by the law, for those that were chosen."""

    def __init__(self, right: policy.Law, groups: Sequence[Group]) -> None:
        self._right = right
        self._on: dict[ids.NodeName, list[int]] = {}
        self._judged: set[victims.UnitKey] = set()
        self.parts = _spread(groups)

    def on(self, site: lower_bounds.Site) -> list[int]:
        """Of the units of a node; of one on several nodes its part on this one."""
        name = site.node.name
        if name not in self._on:
            self._on[name] = self._found(site)
        return self._on[name]

    def _found(self, site: lower_bounds.Site) -> list[int]:
        found = lower_bounds.floors(self._right, site.there)
        if not self._judged and not self.parts:
            return found
        for at, one in enumerate(site.there):
            if one.key in self._judged:
                found[at] = lower_bounds.cost(self._right.judged(one))
            whole = self.parts.get(one.key) if len(one.people) > 1 else None
            if whole is not None and found[at] < lower_bounds.NEVER and site.ground is not None:
                found[at] = found[at] * site.ground.parts[at] // whole
        return found

    def judge(self, found: Iterable[victims.Unit]) -> bool:
        """Ask the law; whether that changes what any costs."""
        new = {one.key: one for one in found if one.key not in self._judged}
        floors = lower_bounds.floors(self._right, [*new.values()])
        real = [lower_bounds.cost(self._right.judged(one)) for one in new.values()]
        self._judged |= {*new}
        if real != floors:
            self._on.clear()
        return real != floors


def _spread(groups: Sequence[Group]) -> dict[victims.UnitKey, int]:
    """Of units on several nodes: in how many parts they are counted in all."""
    found: dict[victims.UnitKey, int] = {}
    for site in groups[0].sites.values() if groups else ():
        for unit, parts in zip(site.there, site.ground.parts if site.ground else (), strict=False):
            if len(unit.people) > 1:
                found[unit.key] = found.get(unit.key, 0) + parts
    return found


def guess(
    domain: topology.Domain, groups: Sequence[Group], costs: Costs, right: policy.Law
) -> Guess:
    """Who would go in a domain."""
    made = _guess(domain, groups, costs, right)
    if not costs.judge(made.gone.values()):
        return made
    for group in groups:
        found = (group.sites[name].there for name in domain.nodes if name in group.sites)
        costs.judge([unit for there in found for unit in there])
    return _guess(domain, groups, costs, right)


def _guess(
    domain: topology.Domain, groups: Sequence[Group], costs: Costs, right: policy.Law
) -> Guess:
    made = Guess(domain, bound=True)
    for group in groups:
        made.full = made.full and _add(made, group, costs, right)
    if len(groups) > 1:
        made.bound = made.bound and alike(groups)
        made.least = _least(domain, groups, costs)
    return made


def alike(groups: Sequence[Group]) -> bool:
    """Whether all groups ask for the same devices, though not for as many a member."""
    first = groups[0].sites
    return all(
        group.sites.keys() == first.keys()
        and all(_same(site, first[name]) for name, site in group.sites.items())
        for group in groups[1:]
    )


def _same(one: lower_bounds.Site, other: lower_bounds.Site) -> bool:
    return (
        one.ground is not None and other.ground is not None and one.ground.bars == other.ground.bars
    )


def _least(domain: topology.Domain, groups: Sequence[Group], costs: Costs) -> int:
    """What as many devices cost at least as all groups want that are alike, wherever they are."""
    found: list[int] = []
    for name in domain.nodes:
        site = groups[0].sites.get(name)
        if site is not None and site.ground is not None:
            scale = site.ground.scale
            prices = site.ground.prices(costs.on(site))
            found += [price * _WHOLE // scale for price, _ in prices]
    return -(-sum(heapq.nsmallest(_wanted(groups), found)) // _WHOLE)


def possible(domain: topology.Domain, groups: Sequence[Group], right: policy.Law) -> bool:
    """Whether limits leave devices enough for each group, taken for itself; False is certain."""
    return all(
        lower_bounds.devices(right, sites) // count >= group.wanted
        for group in groups
        if (sites := [group.sites[name] for name in domain.nodes if name in group.sites])
        and (count := min(site.ground.count for site in sites if site.ground))
    )


def _add(made: Guess, group: Group, costs: Costs, right: policy.Law) -> bool:
    """Whether places were found for all of a group."""
    sites = [group.sites[name] for name in made.domain.nodes if name in group.sites]
    steps = _all_steps(made, sites, group.wanted, costs)
    left, total = group.wanted, 0
    barred: set[ids.NodeName] = set()
    for step in steps:
        if not left:
            break
        if step.node in barred:
            continue
        site = group.sites[step.node]
        gone = _who(site, step.places, costs)
        if not _lawful(made, gone, right):
            barred.add(step.node)
            made.bound = False
            continue
        left -= 1
        total += step.price
        made.gone |= {one.key: one for one in gone}
        made.nodes[step.node] = made.nodes.get(step.node, 0) + len(step.places)
    made.least += -(-total // _WHOLE)
    return not left


def _lawful(made: Guess, gone: Sequence[victims.Unit], right: policy.Law) -> bool:
    """Whether those who go for one more may go beside those who go already."""
    new = [one for one in gone if one.key not in made.gone]
    return not new or right.adds(made.gone.values(), new)


def _all_steps(
    made: Guess, sites: Iterable[lower_bounds.Site], most: int, costs: Costs
) -> Iterator[_Step]:
    """Of all nodes the cheapest first: one is looked into when its turn may have come."""
    unseen = [(_floor(made, site, costs), site.node.name, site) for site in sites]
    unseen.sort(key=lambda one: one[:2], reverse=True)
    steps: list[tuple[_Step, Iterator[_Step]]] = []
    while unseen or steps:
        while unseen and (not steps or unseen[-1][0] <= steps[0][0].price):
            _push(steps, _steps(made, unseen.pop()[2], most, costs))
        if steps:
            step, rest = heapq.heappop(steps)
            yield step
            _push(steps, rest)


def _push(steps: list[tuple[_Step, Iterator[_Step]]], rest: Iterator[_Step]) -> None:
    """The next step of a node, where there is one; no two are equal."""
    step = next(rest, None)
    if step is not None:
        heapq.heappush(steps, (step, rest))


def _floor(made: Guess, site: lower_bounds.Site, costs: Costs) -> int:
    """What a member on a node costs at least."""
    if site.ground is None or made.gone or site.ground.free:
        return 0
    return min(costs.on(site), default=0) * _WHOLE // max(site.ground.parts, default=1)


def _steps(made: Guess, site: lower_bounds.Site, most: int, costs: Costs) -> Iterator[_Step]:
    """The cheapest first, as things are when the first is asked for."""
    ground, before, given = site.ground, dict(made.gone), made.nodes.get(site.node.name, 0)
    if ground is None:
        return
    priced = costs.on(site)
    if before:
        priced = [
            0 if one.key in before else cost for one, cost in zip(site.there, priced, strict=True)
        ]
    prices = ground.prices(priced)[given:]
    count, part, name = ground.count, _WHOLE // ground.scale, site.node.name
    for number in range(min(len(prices) // count, most)):
        mine = prices[number * count : (number + 1) * count]
        price = sum([price for price, _ in mine])
        # Rounded down where the scale does not divide: still nothing costs less.
        price = price * part if part * ground.scale == _WHOLE else price * _WHOLE // ground.scale
        yield _Step(price, name, number, [at for _, at in mine])


def _who(site: lower_bounds.Site, places: Sequence[int], costs: Costs) -> list[victims.Unit]:
    """The units in the way of devices."""
    found: set[int] = set()
    priced = costs.on(site)
    for place in places:
        bar = site.ground.bars[place] if site.ground else None
        if bar is not None:
            found |= bar.needs
        if bar is not None and bar.more:
            found.add(min(bar.more, key=lambda at: (priced[at], at)))
    return [site.there[at] for at in sorted(found)]


def enough(
    groups: Sequence[Group], domains: Sequence[topology.Domain], gone: Collection[victims.UnitKey]
) -> bool:
    """Whether a domain may have room for each group, or for all alike; False is certain."""
    joint = len(groups) > 1 and alike(groups)
    return any(
        all(_slots(group, domain, gone) >= group.wanted for group in groups)
        and not (joint and _devices(groups, domain, gone) < _wanted(groups))
        for domain in domains
    )


def _wanted(groups: Sequence[Group]) -> int:
    """The devices that all groups want together."""
    found = 0
    for group in groups:
        counts = {site.ground.count for site in group.sites.values() if site.ground}
        found += group.wanted * min(counts, default=0)
    return found


def _devices(
    groups: Sequence[Group], domain: topology.Domain, gone: Collection[victims.UnitKey]
) -> int:
    sites = groups[0].sites
    return sum(_free(sites[name], gone) for name in domain.nodes if name in sites)


def _slots(group: Group, domain: topology.Domain, gone: Collection[victims.UnitKey]) -> int:
    sites = (group.sites[name] for name in domain.nodes if name in group.sites)
    return sum(_free(site, gone) // site.ground.count for site in sites if site.ground)


def _free(site: lower_bounds.Site, gone: Collection[victims.UnitKey]) -> int:
    """The devices that a node may give at most."""
    ground = site.ground
    if ground is None:
        return 0
    left = {at for at, one in enumerate(site.there) if one.key not in gone}
    return sum(
        left.isdisjoint(bar.needs) and not (bar.more and bar.more <= left) for bar in ground.bars
    )
