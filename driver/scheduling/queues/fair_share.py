"""Fair shares: exact weighted max-min down the tree of queues. Pure; all in Fractions.

A share is a dominant share: 1 is the whole fleet. At every level what there is for the queues is
given out as water fills basins: first to what they deserve (no more than they can use), each as
full of it as the others; then to what is beyond, in proportion to their weights, until each has
what it can use (weighted max-min; Ghodsi et al., Dominant Resource Fairness, NSDI 2011).

Where a queue remembers its past, the mean of its use beyond what it deserves and of its average use
beyond that takes the place of the first: who had more than is fair has less now.
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
    """What is filled: above level `start`, `slope` for each unit the level rises, up to `room`."""

    slope: Fraction
    room: Fraction
    start: Fraction = ZERO


def fill_basins(basins: Mapping[str, Basin], amount: Fraction) -> dict[str, Fraction]:
    """What each has when `amount` is given out, or all that they take where that is less."""
    level = _fill_level(basins.values(), amount)
    return {name: _basin_fill(one, level) for name, one in basins.items()}


def _basin_fill(one: Basin, level: Fraction | None) -> Fraction:
    if level is None:
        return one.room
    return min(one.room, max(ZERO, one.slope * (level - one.start)))


def _fill_level(basins: Iterable[Basin], amount: Fraction) -> Fraction | None:
    """How high the level rises; None: to where all are full."""
    slopes: dict[Fraction, Fraction] = {}
    for one in basins:
        if one.slope > 0 and one.room > 0:
            end = one.start + one.room / one.slope
            slopes[one.start] = slopes.get(one.start, ZERO) + one.slope
            slopes[end] = slopes.get(end, ZERO) - one.slope
    at = rate = ZERO
    left = amount
    for edge in sorted(slopes):
        if rate > 0 and rate * (edge - at) >= left:
            return at + left / rate
        left -= rate * (edge - at)
        at, rate = edge, rate + slopes[edge]
    return None


def usable_shares(
    tree: trees.QueueTree, asked: Mapping[str, resources.Amounts], capacity: resources.Amounts
) -> Shares:
    """The share that each queue could use, `asked` being what leaves use and wait for.

    Where a limit is less than that, all that it bounds shrinks in proportion.
    """
    most: dict[str, Fraction] = {}
    needs: dict[str, _Need] = {}
    for name in tree.bottom_up():
        below = [needs[child] for child in tree.children.get(name, ())]
        need = _Need.from_amounts(asked.get(name, resources.ZERO)).add(below)
        parts = sum((most[child] for child in tree.children.get(name, ())), ZERO)
        whole = parts + asked.get(name, resources.ZERO).dominant(capacity)
        shrunk = need.allowed_part(quota.effective_limit(tree.accepted[name]))
        needs[name] = need.scale(shrunk)
        most[name] = whole * shrunk
    return most


class _Need(NamedTuple):
    """Amounts that are no whole numbers, by resource and product."""

    amounts: Mapping[tuple[str, str], Fraction]

    @classmethod
    def from_amounts(cls, found: resources.Amounts) -> "_Need":
        models = {("models", name): Fraction(of) for name, of in found.models.items()}
        plain = {
            ("gpus", ""): Fraction(found.gpus),
            ("memory", ""): Fraction(found.memory),
            ("compute", ""): Fraction(found.compute),
        }
        return cls({**plain, **models})

    def add(self, others: Iterable["_Need"]) -> "_Need":
        found = dict(self.amounts)
        for other in others:
            for key, of in other.amounts.items():
                found[key] = found.get(key, ZERO) + of
        return _Need(found)

    def scale(self, part: Fraction) -> "_Need":
        return self if part == 1 else _Need({key: of * part for key, of in self.amounts.items()})

    def allowed_part(self, limit: quota.NamedAmounts) -> Fraction:
        """The part of it that a limit allows."""
        found = ONE
        for bound in quota.bounds(limit):
            need = self.amounts.get((bound.field, bound.product), ZERO)
            if need > bound.limit:
                found = min(found, bound.limit / need)
        return found


def limit_shares(tree: trees.QueueTree, capacity: resources.Amounts) -> Shares:
    """The limits as shares, of queues that have one."""
    found = {
        name: quota.fleet_share(quota.effective_limit(q), capacity)
        for name, q in tree.accepted.items()
    }
    return {name: one for name, one in found.items() if one is not None}


def deserved_shares(tree: trees.QueueTree, capacity: resources.Amounts) -> Shares:
    """What queues deserve, as shares."""
    found = {name: quota.fleet_share(one, capacity) for name, one in tree.deserved.items()}
    return {name: one or ZERO for name, one in found.items()}


def fair_shares(
    tree: trees.QueueTree,
    capacity: resources.Amounts,
    demand: Shares,
    past: Shares = _NO_SHARES,
) -> dict[str, Fraction]:
    """The fair share of each queue, `demand` being the share that each leaf uses and waits for.

    `past` is, of queues that remember, their average use beyond what they deserve.
    """
    most = _max_shares(tree, limit_shares(tree, capacity), demand)
    return _distribute(tree, most, deserved_shares(tree, capacity), past)


def fair_shares_of_amounts(
    tree: trees.QueueTree,
    capacity: resources.Amounts,
    asked: Mapping[str, resources.Amounts],
    past: Shares = _NO_SHARES,
) -> dict[str, Fraction]:
    """As `shares`, of what leaves use and wait for in amounts, limits taken as amounts too."""
    most = usable_shares(tree, asked, capacity)
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
    found: dict[str, Fraction] = {}
    parents: list[str | None] = [None, *tree.top_down()]
    for parent in parents:
        names = tree.children.get(parent, ())
        amount = ONE if parent is None else found[parent]
        found |= _distribute_siblings(tree, names, amount, (most, floors, past))
    return found


def _distribute_siblings(
    tree: trees.QueueTree,
    names: Iterable[str],
    amount: Fraction,
    of: tuple[Shares, Shares, Shares],
) -> dict[str, Fraction]:
    """What siblings have of what there is for them."""
    most, floors, past = of
    first = fill_basins(
        {name: Basin(floors[name], min(most[name], floors[name])) for name in names}, amount
    )
    rest: dict[str, Basin] = {}
    for name in names:
        room = most[name] - first[name]
        weight = Fraction(tree.accepted[name].weight)
        if name in past:
            # Half of what counts is past, half is now: the level rises twice as fast.
            rest[name] = Basin(2 * weight, room, past[name] / (2 * weight))
        else:
            rest[name] = Basin(weight, room)
    more = fill_basins(rest, amount - sum(first.values(), ZERO))
    return {name: first[name] + more[name] for name in names}
