"""Lower bounds of victims' costs, node by node, before any set is tried. Pure.

Each device that a request could have requires some victims, whichever others are evicted. A victim
that blocks several devices is counted in parts, so that the cheapest devices together never cost
more than any set of victims that frees as many. If every victim blocks requested devices only, that
is the cost of the cheapest set.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources.core import nodes
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import node_signature, workload_signature
from driver.scheduling.explain import blockers, holders, step_budget
from driver.scheduling.preemption import policy, victims
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.snapshot import snapshot

INFINITE = 1 << 200
"""Cost of an ineligible victim, and of a node that cannot suffice."""
_MAX_SITES = 4096
_MAX_SHAPES = 64


@dataclass(frozen=True, slots=True)
class NodeCosts:
    """Costs on one node: its victims in an order that equivalent nodes share.

    `parts` is, per victim, the number of parts it is counted in, `scale` makes them whole numbers.
    `count` is the number of devices needed; `single_blockers` is the only victim that blocks each
    device, if that holds for all of them. `is_shared`: one device may serve several requests.
    """

    count: int
    devices: Sequence[blockers.DeviceBlockers]
    parts: Sequence[int]
    scale: int
    single_blockers: Sequence[int] | None = None
    is_shared: bool = False

    @property
    def free_devices(self) -> int:
        """Number of devices without blockers."""
        return sum(not bar.required and not bar.alternatives for bar in self.devices)

    def prices(self, costs: Sequence[int]) -> list[tuple[int, int]]:
        """Return each device's minimum cost, times `scale`, and its index; the cheapest first.

        `costs` are those of the victims, INFINITE for ineligible ones.
        """
        share = costs
        if self.scale > 1:
            share = [
                INFINITE if cost >= INFINITE else cost * self.scale // part
                for cost, part in zip(costs, self.parts, strict=True)
            ]
        if self.single_blockers is not None:
            return sorted(
                [
                    (share[index], device)
                    for device, index in enumerate(self.single_blockers)
                    if share[index] < INFINITE
                ]
            )
        prices: list[tuple[int, int]] = []
        for device, bar in enumerate(self.devices):
            price = sum([share[index] for index in bar.required])
            if bar.alternatives:
                price += min([share[index] for index in bar.alternatives])
            if price < INFINITE:
                prices.append((price, device))
        prices.sort()
        return prices


@dataclass(frozen=True, slots=True)
class Site:
    """A node with its victims in the order of its costs; None: the costs are not known."""

    node: nodes.Node
    victims: Sequence[victims.Victim]
    costs: NodeCosts | None


@dataclass(frozen=True, slots=True)
class _NodeVictims:
    """Victims of a node. `sites` are by signature, as long as the node does not change."""

    indexed: Sequence[victims.Victim]
    device_signature: Hashable | None
    victims: Sequence[victims.Victim]
    signature: Hashable | None
    sites: dict[Hashable, Site]


_Orders = dict[ids.NodeName, _NodeVictims]


def max_free_devices(eviction_policy: policy.PreemptionPolicy, sites: Iterable[Site]) -> int:
    """Return the maximum of free devices on some nodes without all eligible victims."""
    free = 0
    worth: dict[victims.VictimKey, tuple[victims.Victim, int]] = {}
    for site in sites:
        if site.costs is not None:
            free += site.costs.free_devices
            for victim, parts in zip(site.victims, site.costs.parts, strict=True):
                worth[victim.key] = (victim, worth.get(victim.key, (victim, 0))[1] + parts)
    return free + eviction_policy.max_worth(
        (eviction_policy.eligibility(victim), parts) for victim, parts in worth.values()
    )


def victim_cost(candidate: policy.VictimEligibility) -> int:
    """Return the cost of a victim as one number; INFINITE if it is ineligible."""
    if candidate.ineligible is not None:
        return INFINITE
    return preemption_types.cost_number(*preemption_types.plan_cost([candidate]))


def cost_floors(
    eviction_policy: policy.PreemptionPolicy, node_victims: Sequence[victims.Victim]
) -> list[int]:
    """Return a lower bound of each victim's cost, before eligibility is evaluated."""
    return [
        preemption_types.cost_number(lost, len(victim.pods))
        for lost, victim in zip(
            eviction_policy.loss_floors(node_victims), node_victims, strict=True
        )
    ]


class NodeCostsCache:
    """Retained from plan to plan, for one changing snapshot: equivalent nodes share an entry.

    `refresh` precedes `get`, once per query.
    """

    def __init__(self) -> None:
        self._capacities = node_capacity.NodeCapacityCache()
        self._by_node: _Orders = {}
        self._costs: dict[Hashable, NodeCosts | None] = {}
        self._shape: Hashable = None

    def refresh(self, view: snapshot.Snapshot, query: step_budget.WorkloadQuery) -> None:
        """Drop the nodes that changed, and select the query's signature."""
        if self._capacities.refresh(view) or len(self._costs) > _MAX_SITES:
            self._costs.clear()
            self._by_node.clear()
        claims = query.workload.unallocated_claims
        apart = node_signature.depends_on_uuids(view, claims, query.requests)
        self._shape = None if apart else workload_signature.device_signature(query.workload)

    def get(
        self,
        view: snapshot.Snapshot,
        victim_index: victims.VictimIndex,
        query: step_budget.WorkloadQuery,
        node: nodes.Node,
        budget: step_budget.StepBudget,
    ) -> Site:
        """Return the site of a node for the query."""
        order = self._node_victims(view, victim_index, node)
        site = order.sites.get(self._shape)
        if site is not None:
            return site
        if self._shape is None or order.device_signature is None or order.signature is None:
            return Site(
                node, order.victims, _compute_ground(view, query, node, order.victims, budget)
            )
        key = self._shape, order.device_signature, order.signature
        if key not in self._costs:
            self._costs[key] = _compute_ground(view, query, node, order.victims, budget)
        if len(order.sites) >= _MAX_SHAPES:
            order.sites.clear()
        new_site = order.sites[self._shape] = Site(node, order.victims, self._costs[key])
        return new_site

    def _node_victims(
        self, view: snapshot.Snapshot, victim_index: victims.VictimIndex, node: nodes.Node
    ) -> _NodeVictims:
        indexed, device_signature = (
            victim_index.node_victims(view, node),
            self._capacities.signature(view, node),
        )
        cached = self._by_node.get(node.name)
        if (
            cached is None
            or cached.indexed is not indexed
            or cached.device_signature is not device_signature
        ):
            ordered, signature = _order_victims(view, node, indexed)
            cached = self._by_node[node.name] = _NodeVictims(
                indexed, device_signature, ordered, signature, {}
            )
        return cached


def _order_victims(
    view: snapshot.Snapshot, node: nodes.Node, indexed: Sequence[victims.Victim]
) -> tuple[Sequence[victims.Victim], Hashable | None]:
    """Return victims with devices first, by their devices, and a signature."""
    reached = {
        (entry.pool.driver, entry.pool.name): index
        for index, entry in enumerate(view.reachable_pools(node.name))
    }
    held = [(_held_devices(entry, reached), entry) for entry in indexed]
    held.sort(key=lambda entry: (not entry[0], repr(entry[0])))
    ordered = [entry for _, entry in held]
    local = all(_frees_claims(entry) for entry in indexed)
    return ordered, tuple(has for has, _ in held) if local else None


def _held_devices(
    victim: victims.Victim, reached: dict[snapshot.PoolKey, int]
) -> tuple[Hashable, ...]:
    """Return a victim's devices of a node."""
    held = [
        (
            reached[result.device.driver, result.device.pool],
            result.device.device,
            holder.pod.namespace,
            held_claim.claim if len(held_claim.users) > 1 else "",
            tuple(sorted((key, amount.nanos) for key, amount in result.consumed.items())),
        )
        for holder in victim.pods
        for held_claim in holder.claims
        for result in held_claim.results
        if (result.device.driver, result.device.pool) in reached
    ]
    return tuple(sorted(held))


def _frees_claims(victim: victims.Victim) -> bool:
    """Return whether its claims are free once it is gone."""
    own_uids = {holder.pod.uid for holder in victim.pods}
    return all(
        held_claim.users <= own_uids for holder in victim.pods for held_claim in holder.claims
    )


def _compute_ground(
    view: snapshot.Snapshot,
    query: step_budget.WorkloadQuery,
    node: nodes.Node,
    node_victims: Sequence[victims.Victim],
    budget: step_budget.StepBudget,
) -> NodeCosts | None:
    groups: list[holders.HolderGroup] = [item.pods for item in node_victims]
    node_blockers = blockers.BlockerFinder(view, query, node, groups, budget).node_blockers()
    if node_blockers is None:
        return None
    parts = [
        sum(index in bar.required or index in bar.alternatives for bar in node_blockers.devices)
        for index in range(len(node_victims))
    ]
    parts = [max(item, 1) for item in parts]
    single = [min(bar.required, default=-1) for bar in node_blockers.devices]
    alone = all(len(bar.required) == 1 and not bar.alternatives for bar in node_blockers.devices)
    return NodeCosts(
        node_blockers.count,
        node_blockers.devices,
        parts,
        math.lcm(*parts),
        single if alone else None,
        node_blockers.is_shared,
    )
