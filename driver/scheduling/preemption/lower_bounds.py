"""What units cost at least, node by node, before any set of them is tried. Pure.

For each device that a request could have some units have to go, whoever else goes. A unit that is
in the way of several devices is counted in parts, so that the cheapest devices together never cost
more than any set of units that frees as many. Where every unit is in the way of devices that are
all wanted, that is what the cheapest set costs.
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
"""What it costs that a unit goes which may not, and what a node costs that cannot do."""
_MAX_SITES = 4096
_MAX_SHAPES = 64


@dataclass(frozen=True, slots=True)
class NodeCosts:
    """Of one node: the units on it in an order that nodes that are alike have in common.

    `parts` says of each unit in how many parts it is counted, `scale` makes them whole numbers.
    `count` are the devices that are wanted; `single` is who is in the way of each device, where
    that is one unit for all of them. `shared`: one device may be had by several.
    """

    count: int
    devices: Sequence[blockers.DeviceBlockers]
    parts: Sequence[int]
    scale: int
    single_blockers: Sequence[int] | None = None
    is_shared: bool = False

    @property
    def free_devices(self) -> int:
        """The devices in whose way nobody is."""
        return sum(not bar.required and not bar.alternatives for bar in self.devices)

    def prices(self, costs: Sequence[int]) -> list[tuple[int, int]]:
        """Of each device what it costs at least, `scale` times, and its place; the cheapest first.

        `costs` are those of the units, NEVER of one that may not go.
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
                    (share[one], at)
                    for at, one in enumerate(self.single_blockers)
                    if share[one] < INFINITE
                ]
            )
        found: list[tuple[int, int]] = []
        for at, bar in enumerate(self.devices):
            price = sum([share[one] for one in bar.required])
            if bar.alternatives:
                price += min([share[one] for one in bar.alternatives])
            if price < INFINITE:
                found.append((price, at))
        found.sort()
        return found


@dataclass(frozen=True, slots=True)
class Site:
    """A node with its units in the order of its ground; None: what they cost is not known."""

    node: nodes.Node
    victims: Sequence[victims.Victim]
    costs: NodeCosts | None


@dataclass(frozen=True, slots=True)
class _NodeVictims:
    """`known` are the sites of the node by shape, as long as it looks like that."""

    indexed: Sequence[victims.Victim]
    device_signature: Hashable | None
    victims: Sequence[victims.Victim]
    signature: Hashable | None
    sites: dict[Hashable, Site]


_Orders = dict[ids.NodeName, _NodeVictims]


def max_free_devices(right: policy.PreemptionPolicy, sites: Iterable[Site]) -> int:
    """How many devices are free at most on some nodes, once all are gone who may go together."""
    free = 0
    worth: dict[victims.VictimKey, tuple[victims.Victim, int]] = {}
    for site in sites:
        if site.costs is not None:
            free += site.costs.free_devices
            for one, parts in zip(site.victims, site.costs.parts, strict=True):
                worth[one.key] = (one, worth.get(one.key, (one, 0))[1] + parts)
    return free + right.max_worth((right.eligibility(one), parts) for one, parts in worth.values())


def victim_cost(one: policy.VictimEligibility) -> int:
    """What it costs that a unit goes, as one number; NEVER of one that may not."""
    if one.ineligible is not None:
        return INFINITE
    return preemption_types.cost_number(*preemption_types.plan_cost([one]))


def cost_floors(right: policy.PreemptionPolicy, there: Sequence[victims.Victim]) -> list[int]:
    """What it costs at least that units go, before the law is asked whether they may."""
    return [
        preemption_types.cost_number(lost, len(one.pods))
        for lost, one in zip(right.loss_floors(there), there, strict=True)
    ]


class NodeCostsCache:
    """Kept from plan to plan, for one view that changes: of nodes that are alike one is looked at.

    `renew` comes before `of`, once for each who asks.
    """

    def __init__(self) -> None:
        self._capacities = node_capacity.NodeCapacityCache()
        self._by_node: _Orders = {}
        self._costs: dict[Hashable, NodeCosts | None] = {}
        self._shape: Hashable = None

    def refresh(self, view: snapshot.Snapshot, asked: step_budget.WorkloadQuery) -> None:
        """Look again at the nodes that changed."""
        if self._capacities.refresh(view) or len(self._costs) > _MAX_SITES:
            self._costs.clear()
            self._by_node.clear()
        apart = node_signature.depends_on_uuids(view, asked.workload.open_claims, asked.requests)
        self._shape = None if apart else workload_signature.device_signature(asked.workload)

    def get(
        self,
        view: snapshot.Snapshot,
        book: victims.VictimIndex,
        asked: step_budget.WorkloadQuery,
        node: nodes.Node,
        meter: step_budget.StepBudget,
    ) -> Site:
        """A node for the one who asks."""
        order = self._node_victims(view, book, node)
        known = order.sites.get(self._shape)
        if known is not None:
            return known
        if self._shape is None or order.device_signature is None or order.signature is None:
            return Site(
                node, order.victims, _compute_ground(view, asked, node, order.victims, meter)
            )
        key = self._shape, order.device_signature, order.signature
        if key not in self._costs:
            self._costs[key] = _compute_ground(view, asked, node, order.victims, meter)
        if len(order.sites) >= _MAX_SHAPES:
            order.sites.clear()
        found = order.sites[self._shape] = Site(node, order.victims, self._costs[key])
        return found

    def _node_victims(
        self, view: snapshot.Snapshot, book: victims.VictimIndex, node: nodes.Node
    ) -> _NodeVictims:
        found, look = book.node_victims(view, node), self._capacities.signature(view, node)
        known = self._by_node.get(node.name)
        if known is None or known.indexed is not found or known.device_signature is not look:
            there, signature = _order_victims(view, node, found)
            known = self._by_node[node.name] = _NodeVictims(found, look, there, signature, {})
        return known


def _order_victims(
    view: snapshot.Snapshot, node: nodes.Node, found: Sequence[victims.Victim]
) -> tuple[Sequence[victims.Victim], Hashable | None]:
    """Units with devices first, by what they have there."""
    reached = {
        (one.pool.driver, one.pool.name): at
        for at, one in enumerate(view.reachable_pools(node.name))
    }
    held = [(_held_devices(one, reached), one) for one in found]
    held.sort(key=lambda one: (not one[0], repr(one[0])))
    there = [one for _, one in held]
    local = all(_frees_claims(one) for one in found)
    return there, tuple(has for has, _ in held) if local else None


def _held_devices(
    unit: victims.Victim, reached: dict[snapshot.PoolKey, int]
) -> tuple[Hashable, ...]:
    """What a unit has of a node's devices."""
    found = [
        (
            reached[result.device.driver, result.device.pool],
            result.device.device,
            one.pod.namespace,
            lease.claim if len(lease.users) > 1 else "",
            tuple(sorted((key, amount.nanos) for key, amount in result.consumed.items())),
        )
        for one in unit.pods
        for lease in one.claims
        for result in lease.results
        if (result.device.driver, result.device.pool) in reached
    ]
    return tuple(sorted(found))


def _frees_claims(unit: victims.Victim) -> bool:
    """Whether its claims are free once it is gone."""
    mine = {one.pod.uid for one in unit.pods}
    return all(lease.users <= mine for one in unit.pods for lease in one.claims)


def _compute_ground(
    view: snapshot.Snapshot,
    asked: step_budget.WorkloadQuery,
    node: nodes.Node,
    there: Sequence[victims.Victim],
    meter: step_budget.StepBudget,
) -> NodeCosts | None:
    parties: list[holders.HolderGroup] = [one.pods for one in there]
    found = blockers.BlockerFinder(view, asked, node, parties, meter).node_blockers()
    if found is None:
        return None
    parts = [
        sum(at in bar.required or at in bar.alternatives for bar in found.devices)
        for at in range(len(there))
    ]
    parts = [max(one, 1) for one in parts]
    single = [min(bar.required, default=-1) for bar in found.devices]
    alone = all(len(bar.required) == 1 and not bar.alternatives for bar in found.devices)
    return NodeCosts(
        found.count,
        found.devices,
        parts,
        math.lcm(*parts),
        single if alone else None,
        found.is_shared,
    )
