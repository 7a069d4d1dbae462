"""Fair shares: exact weighted max-min down the queue tree. Pure; all in Fractions.

A share is a dominant share: 1 is the whole fleet. At every level the available share is distributed
as water fills basins: first up to the deserved shares (no more than usable), each as full as the
others; then the rest, in proportion to weights, until each has its usable share (weighted max-min;
Ghodsi et al., Dominant Resource Fairness, NSDI 2011).

For a queue with a history, the mean of its current and its average usage beyond the deserved share
replaces the former: a queue that had more than its fair share has less now.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from driver.scheduling.queues import quota, resources
from driver.scheduling.queues import tree as trees

ZERO = Fraction(0)
ONE = Fraction(1)
Shares = Mapping[str, Fraction]
_NO_SHARES: Shares = {}


class Basin(NamedTuple):
    """A basin: above level `start` it fills by `slope` per unit of level, up to `room`."""

    slope: Fraction
    room: Fraction
    start: Fraction = ZERO


def fill_basins(basins: Mapping[str, Basin], amount: Fraction) -> dict[str, Fraction]:
    """Return the fill of each basin for an amount, or all they hold if that is less."""
    level = _fill_level(basins.values(), amount)
    return {name: _basin_fill(basin, level) for name, basin in basins.items()}


def _basin_fill(basin: Basin, level: Fraction | None) -> Fraction:
    if level is None:
        return basin.room
    return min(basin.room, max(ZERO, basin.slope * (level - basin.start)))


def _fill_level(basins: Iterable[Basin], amount: Fraction) -> Fraction | None:
    """Return the level of the fill; None if all basins are full."""
    slopes: dict[Fraction, Fraction] = {}
    for basin in basins:
        if basin.slope > 0 and basin.room > 0:
            end = basin.start + basin.room / basin.slope
            slopes[basin.start] = slopes.get(basin.start, ZERO) + basin.slope
            slopes[end] = slopes.get(end, ZERO) - basin.slope
    level = rate = ZERO
    left = amount
    for edge in sorted(slopes):
        if rate > 0 and rate * (edge - level) >= left:
            return level + left / rate
        left -= rate * (edge - level)
        level, rate = edge, rate + slopes[edge]
    return None


def usable_shares(
    tree: trees.QueueTree, amounts: Mapping[str, resources.Amounts], capacity: resources.Amounts
) -> Shares:
    """Return the share that each queue could use; `amounts` are usage and requests of leaves.

    If a limit is less than that, all that it bounds shrinks in proportion.
    """
    most: dict[str, Fraction] = {}
    needs: dict[str, _Need] = {}
    for name in tree.bottom_up():
        below = [needs[child] for child in tree.children.get(name, ())]
        need = _Need.from_amounts(amounts.get(name, resources.ZERO)).add(below)
        parts = sum((most[child] for child in tree.children.get(name, ())), ZERO)
        whole = parts + amounts.get(name, resources.ZERO).dominant(capacity)
        shrunk = need.allowed_part(quota.effective_limit(tree.accepted[name]))
        needs[name] = need.scale(shrunk)
        most[name] = whole * shrunk
    return most


class _Need(NamedTuple):
    """Amounts that are no whole numbers, by resource and kind (`quota.Bound`)."""

    amounts: Mapping[tuple[str, str], Fraction]

    @classmethod
    def from_amounts(cls, amounts: resources.Amounts) -> "_Need":
        models = {
            ("models", name): Fraction(thousandths) for name, thousandths in amounts.models.items()
        }
        plain = {
            ("gpus", ""): Fraction(amounts.gpus),
            ("memory", ""): Fraction(amounts.memory),
            ("compute", ""): Fraction(amounts.compute),
        }
        devices = {
            ("devices", name): Fraction(thousandths)
            for name, thousandths in amounts.devices.items()
        }
        return cls({**plain, **models, **devices})

    def add(self, others: Iterable["_Need"]) -> "_Need":
        total = dict(self.amounts)
        for other in others:
            for key, amount in other.amounts.items():
                total[key] = total.get(key, ZERO) + amount
        return _Need(total)

    def scale(self, part: Fraction) -> "_Need":
        return (
            self
            if part == 1
            else _Need({key: amount * part for key, amount in self.amounts.items()})
        )

    def allowed_part(self, limit: quota.NamedAmounts) -> Fraction:
        """Return the part of it that a limit allows."""
        part = ONE
        for bound in quota.bounds(limit):
            need = self.amounts.get((bound.field, bound.kind), ZERO)
            if need > bound.limit:
                part = min(part, bound.limit / need)
        return part


def limit_shares(tree: trees.QueueTree, capacity: resources.Amounts) -> Shares:
    """Return the limits as shares, of queues that have one."""
    shares_by_queue = {
        name: quota.fleet_share(quota.effective_limit(queue), capacity)
        for name, queue in tree.accepted.items()
    }
    return {
        name: limit_share
        for name, limit_share in shares_by_queue.items()
        if limit_share is not None
    }


def deserved_shares(tree: trees.QueueTree, capacity: resources.Amounts) -> Shares:
    """Return the deserved amounts as shares."""
    shares_by_queue = {
        name: quota.fleet_share(share, capacity) for name, share in tree.deserved.items()
    }
    return {name: share or ZERO for name, share in shares_by_queue.items()}


def fair_shares(
    tree: trees.QueueTree,
    capacity: resources.Amounts,
    demand: Shares,
    past: Shares = _NO_SHARES,
) -> dict[str, Fraction]:
    """Return the fair share of each queue; `demand` is usage and requests of each leaf.

    `past` is, for queues with history, their average usage beyond the deserved share.
    """
    most = _max_shares(tree, limit_shares(tree, capacity), demand)
    return _distribute(tree, most, deserved_shares(tree, capacity), past)


def fair_shares_of_amounts(
    tree: trees.QueueTree,
    capacity: resources.Amounts,
    amounts: Mapping[str, resources.Amounts],
    past: Shares = _NO_SHARES,
) -> dict[str, Fraction]:
    """Return the fair shares for demand in amounts, with limits as amounts too."""
    most = usable_shares(tree, amounts, capacity)
    return _distribute(tree, most, deserved_shares(tree, capacity), past)


def _max_shares(tree: trees.QueueTree, caps: Shares, demand: Shares) -> dict[str, Fraction]:
    most: dict[str, Fraction] = {}
    for name in tree.bottom_up():
        below = sum((most[child] for child in tree.children.get(name, ())), ZERO)
        own = demand.get(name, ZERO)
        most[name] = min(below + own, caps.get(name, below + own))
    return most


def _distribute(
    tree: trees.QueueTree, most: Shares, floors: Shares, past: Shares
) -> dict[str, Fraction]:
    shares_by_queue: dict[str, Fraction] = {}
    parents: list[str | None] = [None, *tree.top_down()]
    for parent in parents:
        names = tree.children.get(parent, ())
        amount = ONE if parent is None else shares_by_queue[parent]
        shares_by_queue |= _distribute_siblings(tree, names, amount, (most, floors, past))
    return shares_by_queue


def _distribute_siblings(
    tree: trees.QueueTree,
    names: Iterable[str],
    amount: Fraction,
    bounds: tuple[Shares, Shares, Shares],
) -> dict[str, Fraction]:
    """Return the shares of siblings of an available share."""
    most, floors, past = bounds
    deserved_fill = fill_basins(
        {name: Basin(floors[name], min(most[name], floors[name])) for name in names}, amount
    )
    basins: dict[str, Basin] = {}
    for name in names:
        remaining = most[name] - deserved_fill[name]
        weight = Fraction(tree.accepted[name].weight)
        if name in past:
            # Past and current usage count half each: the level rises twice as fast.
            basins[name] = Basin(2 * weight, remaining, past[name] / (2 * weight))
        else:
            basins[name] = Basin(weight, remaining)
    more = fill_basins(basins, amount - sum(deserved_fill.values(), ZERO))
    return {name: deserved_fill[name] + more[name] for name in names}
