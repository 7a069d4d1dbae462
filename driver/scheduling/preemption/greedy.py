"""Greedy lower bound for gang preemption: per node, the victims of the cheapest devices. Pure.

Each member takes some devices of one node; the next one there takes costlier ones. So the cheapest
devices for members of one shape are found one by one. No set of victims costs less than their lower
bound; whether they suffice together is for placement to check.
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
"""Parts of a cost: divisible by 1 to 16."""


@dataclass(frozen=True, slots=True)
class Group:
    """Members of one shape, and the sites that could take one of them."""

    count: int
    sites: Mapping[ids.NodeName, lower_bounds.Site]


@dataclass(slots=True)
class Guess:
    """Victims that may suffice in a domain, and the devices that each node frees.

    With `is_bound` nothing sufficient there costs less than `minimum_cost`; not `is_complete`:
    nothing suffices at all.
    """

    domain: topology.Domain
    is_bound: bool
    is_complete: bool = True
    minimum_cost: int = 0
    chosen: dict[victims.VictimKey, victims.Victim] = field(default_factory=dict)
    devices_by_node: dict[ids.NodeName, int] = field(default_factory=dict)


def find_sites(
    request: preemption_types.PreemptionRequest,
    query: step_budget.WorkloadQuery,
    victim_index: victims.VictimIndex,
    costs_cache: lower_bounds.NodeCostsCache,
    budget: step_budget.StepBudget,
) -> Mapping[ids.NodeName, lower_bounds.Site] | None:
    """Return the nodes that a member could use if it had room; None: not known of all of them."""
    costs_cache.refresh(request.view, query)
    sites: dict[ids.NodeName, lower_bounds.Site] = {}
    for name, node in request.view.nodes.items():
        if name in query.workload.avoided_nodes:
            continue
        refused = filters.rejection(request.view, node, query.workload)
        if refused is None or refused.node_reason in victim_search.EVICTION_CURABLE:
            site = costs_cache.get(request.view, victim_index, query, node, budget)
            if site.costs is None or site.costs.is_shared:
                return None
            sites[name] = site
    return sites


class _Step(NamedTuple):
    """One more member on a node: its minimum cost, and the indexes of its devices."""

    price: int
    node: ids.NodeName
    number: int
    devices: Sequence[int]


class VictimCosts:
    """Costs of victims: first lower bounds, then the policy's for chosen victims."""

    def __init__(self, eviction_policy: policy.PreemptionPolicy, groups: Sequence[Group]) -> None:
        self._policy = eviction_policy
        self._by_node: dict[ids.NodeName, list[int]] = {}
        self._refined: set[victims.VictimKey] = set()
        self.parts = _part_counts(groups)

    def site_costs(self, site: lower_bounds.Site) -> list[int]:
        """Return the costs of a node's victims; for one on several nodes its part on this one."""
        name = site.node.name
        if name not in self._by_node:
            self._by_node[name] = self._compute_costs(site)
        return self._by_node[name]

    def _compute_costs(self, site: lower_bounds.Site) -> list[int]:
        costs = lower_bounds.cost_floors(self._policy, site.victims)
        if not self._refined and not self.parts:
            return costs
        for index, victim in enumerate(site.victims):
            if victim.key in self._refined:
                costs[index] = lower_bounds.victim_cost(self._policy.eligibility(victim))
            whole = self.parts.get(victim.key) if len(victim.pods) > 1 else None
            if (
                whole is not None
                and costs[index] < lower_bounds.INFINITE
                and site.costs is not None
            ):
                costs[index] = costs[index] * site.costs.parts[index] // whole
        return costs

    def refine(self, chosen: Iterable[victims.Victim]) -> bool:
        """Evaluate the policy; return whether that changes any cost."""
        new = {victim.key: victim for victim in chosen if victim.key not in self._refined}
        floors = lower_bounds.cost_floors(self._policy, [*new.values()])
        real = [
            lower_bounds.victim_cost(self._policy.eligibility(victim)) for victim in new.values()
        ]
        self._refined |= {*new}
        if real != floors:
            self._by_node.clear()
        return real != floors


def _part_counts(groups: Sequence[Group]) -> dict[victims.VictimKey, int]:
    """Return the total number of parts of each victim on several nodes."""
    counts: dict[victims.VictimKey, int] = {}
    for site in groups[0].sites.values() if groups else ():
        for victim, parts in zip(
            site.victims, site.costs.parts if site.costs else (), strict=False
        ):
            if len(victim.pods) > 1:
                counts[victim.key] = counts.get(victim.key, 0) + parts
    return counts


def guess_victims(
    domain: topology.Domain,
    groups: Sequence[Group],
    costs: VictimCosts,
    eviction_policy: policy.PreemptionPolicy,
) -> Guess:
    """Return the cheapest victims in a domain."""
    guess = _build_guess(domain, groups, costs, eviction_policy)
    if not costs.refine(guess.chosen.values()):
        return guess
    for group in groups:
        node_victims = (group.sites[name].victims for name in domain.nodes if name in group.sites)
        costs.refine([victim for on_node in node_victims for victim in on_node])
    return _build_guess(domain, groups, costs, eviction_policy)


def _build_guess(
    domain: topology.Domain,
    groups: Sequence[Group],
    costs: VictimCosts,
    eviction_policy: policy.PreemptionPolicy,
) -> Guess:
    guess = Guess(domain, is_bound=True)
    for group in groups:
        guess.is_complete = guess.is_complete and _add_group(guess, group, costs, eviction_policy)
    if len(groups) > 1:
        guess.is_bound = guess.is_bound and is_uniform(groups)
        guess.minimum_cost = _minimum_cost(domain, groups, costs)
    return guess


def is_uniform(groups: Sequence[Group]) -> bool:
    """Return whether all groups request equal devices, though not as many a member."""
    first = groups[0].sites
    return all(
        group.sites.keys() == first.keys()
        and all(_is_same_site(site, first[name]) for name, site in group.sites.items())
        for group in groups[1:]
    )


def _is_same_site(site: lower_bounds.Site, other: lower_bounds.Site) -> bool:
    return (
        site.costs is not None
        and other.costs is not None
        and site.costs.devices == other.costs.devices
    )


def _minimum_cost(domain: topology.Domain, groups: Sequence[Group], costs: VictimCosts) -> int:
    """Return the minimum cost of as many devices as all groups need, wherever they are."""
    prices: list[int] = []
    for name in domain.nodes:
        site = groups[0].sites.get(name)
        if site is not None and site.costs is not None:
            scale = site.costs.scale
            device_prices = site.costs.prices(costs.site_costs(site))
            prices += [price * _COST_PARTS // scale for price, _ in device_prices]
    return -(-sum(heapq.nsmallest(_requested_devices(groups), prices)) // _COST_PARTS)


def is_possible(
    domain: topology.Domain, groups: Sequence[Group], eviction_policy: policy.PreemptionPolicy
) -> bool:
    """Return whether limits leave enough devices for each group by itself; False is certain."""
    return all(
        lower_bounds.max_free_devices(eviction_policy, sites) // count >= group.count
        for group in groups
        if (sites := [group.sites[name] for name in domain.nodes if name in group.sites])
        and (count := min(site.costs.count for site in sites if site.costs))
    )


def _add_group(
    guess: Guess, group: Group, costs: VictimCosts, eviction_policy: policy.PreemptionPolicy
) -> bool:
    """Add a group to the guess; return whether all of it fits."""
    sites = [group.sites[name] for name in guess.domain.nodes if name in group.sites]
    steps = _cheapest_steps(guess, sites, group.count, costs)
    left, total = group.count, 0
    barred: set[ids.NodeName] = set()
    for step in steps:
        if not left:
            break
        if step.node in barred:
            continue
        site = group.sites[step.node]
        blocking = _blocking_victims(site, step.devices, costs)
        if not _is_allowed(guess, blocking, eviction_policy):
            barred.add(step.node)
            guess.is_bound = False
            continue
        left -= 1
        total += step.price
        guess.chosen |= {victim.key: victim for victim in blocking}
        guess.devices_by_node[step.node] = guess.devices_by_node.get(step.node, 0) + len(
            step.devices
        )
    guess.minimum_cost += -(-total // _COST_PARTS)
    return not left


def _is_allowed(
    guess: Guess, added: Sequence[victims.Victim], eviction_policy: policy.PreemptionPolicy
) -> bool:
    """Return whether further victims may be evicted beside those of the guess."""
    new = [victim for victim in added if victim.key not in guess.chosen]
    return not new or eviction_policy.may_add(guess.chosen.values(), new)


def _cheapest_steps(
    guess: Guess, sites: Iterable[lower_bounds.Site], most: int, costs: VictimCosts
) -> Iterator[_Step]:
    """Yield the steps of all nodes, cheapest first: a node is expanded when it may be next."""
    unseen = [(_site_floor(guess, site, costs), site.node.name, site) for site in sites]
    unseen.sort(key=lambda entry: entry[:2], reverse=True)
    steps: list[tuple[_Step, Iterator[_Step]]] = []
    while unseen or steps:
        while unseen and (not steps or unseen[-1][0] <= steps[0][0].price):
            _push_next(steps, _site_steps(guess, unseen.pop()[2], most, costs))
        if steps:
            step, rest = heapq.heappop(steps)
            yield step
            _push_next(steps, rest)


def _push_next(steps: list[tuple[_Step, Iterator[_Step]]], rest: Iterator[_Step]) -> None:
    """Push the next step of a node, if there is one; no two are equal."""
    step = next(rest, None)
    if step is not None:
        heapq.heappush(steps, (step, rest))


def _site_floor(guess: Guess, site: lower_bounds.Site, costs: VictimCosts) -> int:
    """Return the minimum cost of a member on a node."""
    if site.costs is None or guess.chosen or site.costs.free_devices:
        return 0
    return min(costs.site_costs(site), default=0) * _COST_PARTS // max(site.costs.parts, default=1)


def _site_steps(
    guess: Guess, site: lower_bounds.Site, most: int, costs: VictimCosts
) -> Iterator[_Step]:
    """Yield the steps of a node, cheapest first, as of the first step."""
    ground, chosen, taken = (
        site.costs,
        dict(guess.chosen),
        guess.devices_by_node.get(site.node.name, 0),
    )
    if ground is None:
        return
    priced = costs.site_costs(site)
    if chosen:
        priced = [
            0 if victim.key in chosen else cost
            for victim, cost in zip(site.victims, priced, strict=True)
        ]
    prices = ground.prices(priced)[taken:]
    count, part, name = ground.count, _COST_PARTS // ground.scale, site.node.name
    for number in range(min(len(prices) // count, most)):
        step_devices = prices[number * count : (number + 1) * count]
        price = sum([price for price, _ in step_devices])
        # Rounded down if the scale does not divide: it remains a lower bound.
        price = (
            price * part
            if part * ground.scale == _COST_PARTS
            else price * _COST_PARTS // ground.scale
        )
        yield _Step(price, name, number, [device for _, device in step_devices])


def _blocking_victims(
    site: lower_bounds.Site, places: Sequence[int], costs: VictimCosts
) -> list[victims.Victim]:
    """Return the victims that block devices."""
    indexes: set[int] = set()
    priced = costs.site_costs(site)
    for device in places:
        bar = site.costs.devices[device] if site.costs else None
        if bar is not None:
            indexes |= bar.required
        if bar is not None and bar.alternatives:
            indexes.add(min(bar.alternatives, key=lambda index: (priced[index], index)))
    return [site.victims[index] for index in sorted(indexes)]


def may_be_enough(
    groups: Sequence[Group], domains: Sequence[topology.Domain], gone: Collection[victims.VictimKey]
) -> bool:
    """Return whether a domain may have room for each group, or all if uniform; False is certain."""
    joint = len(groups) > 1 and is_uniform(groups)
    return any(
        all(_free_slots(group, domain, gone) >= group.count for group in groups)
        and not (joint and _free_devices(groups, domain, gone) < _requested_devices(groups))
        for domain in domains
    )


def _requested_devices(groups: Sequence[Group]) -> int:
    """Return the number of devices that all groups request together."""
    total = 0
    for group in groups:
        counts = {site.costs.count for site in group.sites.values() if site.costs}
        total += group.count * min(counts, default=0)
    return total


def _free_devices(
    groups: Sequence[Group], domain: topology.Domain, gone: Collection[victims.VictimKey]
) -> int:
    sites = groups[0].sites
    return sum(_site_free_devices(sites[name], gone) for name in domain.nodes if name in sites)


def _free_slots(group: Group, domain: topology.Domain, gone: Collection[victims.VictimKey]) -> int:
    sites = (group.sites[name] for name in domain.nodes if name in group.sites)
    return sum(_site_free_devices(site, gone) // site.costs.count for site in sites if site.costs)


def _site_free_devices(site: lower_bounds.Site, gone: Collection[victims.VictimKey]) -> int:
    """Return the maximum number of devices that a node may free."""
    ground = site.costs
    if ground is None:
        return 0
    remaining = {index for index, victim in enumerate(site.victims) if victim.key not in gone}
    return sum(
        remaining.isdisjoint(bar.required)
        and not (bar.alternatives and bar.alternatives <= remaining)
        for bar in ground.devices
    )
