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

NEVER = 1 << 200
"""What it costs that a unit goes which may not, and what a node costs that cannot do."""
_MOST = 4096
_MOST_SHAPES = 64


@dataclass(frozen=True, slots=True)
class Ground:
    """Of one node: the units on it in an order that nodes that are alike have in common.

    `parts` says of each unit in how many parts it is counted, `scale` makes them whole numbers.
    `count` are the devices that are wanted; `single` is who is in the way of each device, where
    that is one unit for all of them. `shared`: one device may be had by several.
    """

    count: int
    bars: Sequence[blockers.Bar]
    parts: Sequence[int]
    scale: int
    single: Sequence[int] | None = None
    shared: bool = False

    @property
    def free(self) -> int:
        """The devices in whose way nobody is."""
        return sum(not bar.needs and not bar.more for bar in self.bars)

    def prices(self, costs: Sequence[int]) -> list[tuple[int, int]]:
        """Of each device what it costs at least, `scale` times, and its place; the cheapest first.

        `costs` are those of the units, NEVER of one that may not go.
        """
        share = costs
        if self.scale > 1:
            share = [
                NEVER if cost >= NEVER else cost * self.scale // part
                for cost, part in zip(costs, self.parts, strict=True)
            ]
        if self.single is not None:
            return sorted(
                [(share[one], at) for at, one in enumerate(self.single) if share[one] < NEVER]
            )
        found: list[tuple[int, int]] = []
        for at, bar in enumerate(self.bars):
            price = sum([share[one] for one in bar.needs])
            if bar.more:
                price += min([share[one] for one in bar.more])
            if price < NEVER:
                found.append((price, at))
        found.sort()
        return found


@dataclass(frozen=True, slots=True)
class Site:
    """A node with its units in the order of its ground; None: what they cost is not known."""

    node: nodes.Node
    there: Sequence[victims.Unit]
    ground: Ground | None


@dataclass(frozen=True, slots=True)
class _Order:
    """`known` are the sites of the node by shape, as long as it looks like that."""

    found: Sequence[victims.Unit]
    look: Hashable | None
    there: Sequence[victims.Unit]
    signature: Hashable | None
    known: dict[Hashable, Site]


_Orders = dict[ids.NodeName, _Order]


def devices(right: policy.Law, sites: Iterable[Site]) -> int:
    """How many devices are free at most on some nodes, once all are gone who may go together."""
    free = 0
    worth: dict[victims.UnitKey, tuple[victims.Unit, int]] = {}
    for site in sites:
        if site.ground is not None:
            free += site.ground.free
            for one, parts in zip(site.there, site.ground.parts, strict=True):
                worth[one.key] = (one, worth.get(one.key, (one, 0))[1] + parts)
    return free + right.most((right.judged(one), parts) for one, parts in worth.values())


def cost(one: policy.Judged) -> int:
    """What it costs that a unit goes, as one number; NEVER of one that may not."""
    if one.barred is not None:
        return NEVER
    return preemption_types.one_number(*preemption_types.cost_of([one]))


def floors(right: policy.Law, there: Sequence[victims.Unit]) -> list[int]:
    """What it costs at least that units go, before the law is asked whether they may."""
    return [
        preemption_types.one_number(lost, len(one.people))
        for lost, one in zip(right.floors(there), there, strict=True)
    ]


class Grounds:
    """Kept from plan to plan, for one view that changes: of nodes that are alike one is looked at.

    `renew` comes before `of`, once for each who asks.
    """

    def __init__(self) -> None:
        self._rooms = node_capacity.NodeCapacityCache()
        self._orders: _Orders = {}
        self._known: dict[Hashable, Ground | None] = {}
        self._shape: Hashable = None

    def renew(self, view: snapshot.Snapshot, asked: step_budget.Asking) -> None:
        """Look again at the nodes that changed."""
        if self._rooms.refresh(view) or len(self._known) > _MOST:
            self._known.clear()
            self._orders.clear()
        apart = node_signature.depends_on_uuids(view, asked.workload.open_claims, asked.wants)
        self._shape = None if apart else workload_signature.device_signature(asked.workload)

    def of(
        self,
        view: snapshot.Snapshot,
        book: victims.Book,
        asked: step_budget.Asking,
        node: nodes.Node,
        meter: step_budget.Meter,
    ) -> Site:
        """A node for the one who asks."""
        order = self._order(view, book, node)
        known = order.known.get(self._shape)
        if known is not None:
            return known
        if self._shape is None or order.look is None or order.signature is None:
            return Site(node, order.there, _made(view, asked, node, order.there, meter))
        key = self._shape, order.look, order.signature
        if key not in self._known:
            self._known[key] = _made(view, asked, node, order.there, meter)
        if len(order.known) >= _MOST_SHAPES:
            order.known.clear()
        found = order.known[self._shape] = Site(node, order.there, self._known[key])
        return found

    def _order(self, view: snapshot.Snapshot, book: victims.Book, node: nodes.Node) -> _Order:
        found, look = book.on(view, node), self._rooms.signature(view, node)
        known = self._orders.get(node.name)
        if known is None or known.found is not found or known.look is not look:
            there, signature = _ordered(view, node, found)
            known = self._orders[node.name] = _Order(found, look, there, signature, {})
        return known


def _ordered(
    view: snapshot.Snapshot, node: nodes.Node, found: Sequence[victims.Unit]
) -> tuple[Sequence[victims.Unit], Hashable | None]:
    """Units with devices first, by what they have there."""
    reached = {
        (one.pool.driver, one.pool.name): at
        for at, one in enumerate(view.reachable_pools(node.name))
    }
    held = [(_held(one, reached), one) for one in found]
    held.sort(key=lambda one: (not one[0], repr(one[0])))
    there = [one for _, one in held]
    local = all(_stays(one) for one in found)
    return there, tuple(has for has, _ in held) if local else None


def _held(unit: victims.Unit, reached: dict[snapshot.PoolKey, int]) -> tuple[Hashable, ...]:
    """What a unit has of a node's devices."""
    found = [
        (
            reached[result.device.driver, result.device.pool],
            result.device.device,
            one.pod.namespace,
            lease.claim if len(lease.users) > 1 else "",
            tuple(sorted((key, amount.nanos) for key, amount in result.consumed.items())),
        )
        for one in unit.people
        for lease in one.leases
        for result in lease.results
        if (result.device.driver, result.device.pool) in reached
    ]
    return tuple(sorted(found))


def _stays(unit: victims.Unit) -> bool:
    """Whether its claims are free once it is gone."""
    mine = {one.pod.uid for one in unit.people}
    return all(lease.users <= mine for one in unit.people for lease in one.leases)


def _made(
    view: snapshot.Snapshot,
    asked: step_budget.Asking,
    node: nodes.Node,
    there: Sequence[victims.Unit],
    meter: step_budget.Meter,
) -> Ground | None:
    parties: list[holders.Party] = [one.people for one in there]
    found = blockers.Bars(view, asked, node, parties, meter).ground()
    if found is None:
        return None
    parts = [
        sum(at in bar.needs or at in bar.more for bar in found.bars) for at in range(len(there))
    ]
    parts = [max(one, 1) for one in parts]
    single = [min(bar.needs, default=-1) for bar in found.bars]
    alone = all(len(bar.needs) == 1 and not bar.more for bar in found.bars)
    return Ground(
        found.count,
        found.bars,
        parts,
        math.lcm(*parts),
        single if alone else None,
        found.shared,
    )
