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

NONE = Fraction(0)
ALL = Fraction(1)
Shares = Mapping[str, Fraction]
_NO_SHARES: Shares = {}


class Basin(NamedTuple):
    """What is filled: above level `start`, `slope` for each unit the level rises, up to `room`."""

    slope: Fraction
    room: Fraction
    start: Fraction = NONE


def fill(basins: Mapping[str, Basin], amount: Fraction) -> dict[str, Fraction]:
    """What each has when `amount` is given out, or all that they take where that is less."""
    level = _level(basins.values(), amount)
    return {name: _taken(one, level) for name, one in basins.items()}


def _taken(one: Basin, level: Fraction | None) -> Fraction:
    if level is None:
        return one.room
    return min(one.room, max(NONE, one.slope * (level - one.start)))


def _level(basins: Iterable[Basin], amount: Fraction) -> Fraction | None:
    """How high the level rises; None: to where all are full."""
    slopes: dict[Fraction, Fraction] = {}
    for one in basins:
        if one.slope > 0 and one.room > 0:
            end = one.start + one.room / one.slope
            slopes[one.start] = slopes.get(one.start, NONE) + one.slope
            slopes[end] = slopes.get(end, NONE) - one.slope
    at = rate = NONE
    left = amount
    for edge in sorted(slopes):
        if rate > 0 and rate * (edge - at) >= left:
            return at + left / rate
        left -= rate * (edge - at)
        at, rate = edge, rate + slopes[edge]
    return None


def reach(
    tree: trees.Tree, asked: Mapping[str, resources.Amounts], capacity: resources.Amounts
) -> Shares:
    """The share that each queue could use, `asked` being what leaves use and wait for.

    Where a limit is less than that, all that it bounds shrinks in proportion.
    """
    most: dict[str, Fraction] = {}
    needs: dict[str, _Need] = {}
    for name in tree.upwards():
        below = [needs[child] for child in tree.children.get(name, ())]
        need = _Need.of(asked.get(name, resources.NOTHING)).plus(below)
        parts = sum((most[child] for child in tree.children.get(name, ())), NONE)
        whole = parts + asked.get(name, resources.NOTHING).dominant(capacity)
        shrunk = need.within(quota.limit(tree.accepted[name]))
        needs[name] = need.times(shrunk)
        most[name] = whole * shrunk
    return most


class _Need(NamedTuple):
    """Amounts that are no whole numbers, by resource and product."""

    of_each: Mapping[tuple[str, str], Fraction]

    @classmethod
    def of(cls, found: resources.Amounts) -> "_Need":
        models = {("models", name): Fraction(of) for name, of in found.models.items()}
        plain = {
            ("gpus", ""): Fraction(found.gpus),
            ("memory", ""): Fraction(found.memory),
            ("compute", ""): Fraction(found.compute),
        }
        return cls({**plain, **models})

    def plus(self, others: Iterable["_Need"]) -> "_Need":
        found = dict(self.of_each)
        for other in others:
            for key, of in other.of_each.items():
                found[key] = found.get(key, NONE) + of
        return _Need(found)

    def times(self, part: Fraction) -> "_Need":
        return self if part == 1 else _Need({key: of * part for key, of in self.of_each.items()})

    def within(self, limit: quota.Named) -> Fraction:
        """The part of it that a limit allows."""
        found = ALL
        for bound in quota.bounds(limit):
            need = self.of_each.get((bound.field, bound.product), NONE)
            if need > bound.most:
                found = min(found, bound.most / need)
        return found


def limits(tree: trees.Tree, capacity: resources.Amounts) -> Shares:
    """The limits as shares, of queues that have one."""
    found = {name: quota.share(quota.limit(q), capacity) for name, q in tree.accepted.items()}
    return {name: one for name, one in found.items() if one is not None}


def deserved(tree: trees.Tree, capacity: resources.Amounts) -> Shares:
    """What queues deserve, as shares."""
    found = {name: quota.share(one, capacity) for name, one in tree.deserved.items()}
    return {name: one or NONE for name, one in found.items()}


def shares(
    tree: trees.Tree,
    capacity: resources.Amounts,
    demand: Shares,
    past: Shares = _NO_SHARES,
) -> dict[str, Fraction]:
    """The fair share of each queue, `demand` being the share that each leaf uses and waits for.

    `past` is, of queues that remember, their average use beyond what they deserve.
    """
    most = _most(tree, limits(tree, capacity), demand)
    return _down(tree, most, deserved(tree, capacity), past)


def of_amounts(
    tree: trees.Tree,
    capacity: resources.Amounts,
    asked: Mapping[str, resources.Amounts],
    past: Shares = _NO_SHARES,
) -> dict[str, Fraction]:
    """As `shares`, of what leaves use and wait for in amounts, limits taken as amounts too."""
    most = reach(tree, asked, capacity)
    return _down(tree, most, deserved(tree, capacity), past)


def _most(tree: trees.Tree, caps: Shares, demand: Shares) -> dict[str, Fraction]:
    most: dict[str, Fraction] = {}
    for name in tree.upwards():
        below = sum((most[child] for child in tree.children.get(name, ())), NONE)
        own = demand.get(name, NONE)
        most[name] = min(below + own, caps.get(name, below + own))
    return most


def _down(tree: trees.Tree, most: Shares, floors: Shares, past: Shares) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    parents: list[str | None] = [None, *tree.downwards()]
    for parent in parents:
        names = tree.children.get(parent, ())
        amount = ALL if parent is None else found[parent]
        found |= _among(tree, names, amount, (most, floors, past))
    return found


def _among(
    tree: trees.Tree,
    names: Iterable[str],
    amount: Fraction,
    of: tuple[Shares, Shares, Shares],
) -> dict[str, Fraction]:
    """What siblings have of what there is for them."""
    most, floors, past = of
    first = fill(
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
    more = fill(rest, amount - sum(first.values(), NONE))
    return {name: first[name] + more[name] for name in names}
