"""What queues name of GPUs: their limits, what they deserve, and as which share it counts. Pure.

What is not named is not bounded. A named amount counts as the part of the fleet that it is; of
several the first that a queue comes to, which is the least part.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from driver.resources import queues
from driver.scheduling.queues import resources

NamedAmounts = queues.Amounts


class Bound(NamedTuple):
    """A bound on one resource: its field under `spec.limit`, the product for GPUs of a model."""

    field: str
    product: str
    limit: int


def bounds(named: NamedAmounts) -> Iterator[Bound]:
    """What is named, one resource after another."""
    for field, most in (
        ("gpus", named.gpus),
        ("memory", named.memory),
        ("compute", named.compute),
    ):
        if most is not None:
            yield Bound(field, "", most)
    for product, most in sorted(named.models.items()):
        yield Bound("models", product, most)


def bounded_amount(found: resources.Amounts, bound: Bound) -> int:
    """As much as there is of what a bound is on."""
    match bound.field:
        case "gpus":
            return found.gpus
        case "memory":
            return found.memory
        case "compute":
            return found.compute
        case _:
            return found.models.get(bound.product, 0)


def effective_limit(queue: queues.Queue) -> NamedAmounts:
    """What it never exceeds: without borrowing no more than it deserves."""
    if queue.borrowing:
        return queue.limit
    return _minimum(queue.limit, queue.deserved)


def _minimum(one: NamedAmounts, other: NamedAmounts) -> NamedAmounts:
    models = dict(one.models)
    for product, most in other.models.items():
        models[product] = min(most, models.get(product, most))
    return NamedAmounts(
        _min_optional(one.gpus, other.gpus),
        _min_optional(one.memory, other.memory),
        _min_optional(one.compute, other.compute),
        models,
    )


def _min_optional(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)


def sum_amounts(found: Iterable[NamedAmounts]) -> NamedAmounts:
    """The sum; what none of them names is not named."""
    gpus = memory = compute = None
    models: dict[str, int] = {}
    for one in found:
        gpus = _add_optional(gpus, one.gpus)
        memory = _add_optional(memory, one.memory)
        compute = _add_optional(compute, one.compute)
        for product, most in one.models.items():
            models[product] = models.get(product, 0) + most
    return NamedAmounts(gpus, memory, compute, models)


def _add_optional(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other


def maximum(own: NamedAmounts, children: NamedAmounts) -> NamedAmounts:
    """The more of each."""
    models = dict(own.models)
    for product, most in children.models.items():
        models[product] = max(most, models.get(product, 0))
    return NamedAmounts(
        _max_optional(own.gpus, children.gpus),
        _max_optional(own.memory, children.memory),
        _max_optional(own.compute, children.compute),
        models,
    )


def _max_optional(one: int | None, other: int | None) -> int | None:
    return max((number for number in (one, other) if number is not None), default=None)


def fleet_share(named: NamedAmounts, capacity: resources.Amounts) -> Fraction | None:
    """As a share of the fleet; None where nothing is named that there is any of.

    GPUs of models stand for GPUs where no GPUs are named.
    """
    gpus = named.gpus
    if gpus is None and named.models:
        gpus = sum(named.models.values())
    beside = (
        (gpus, capacity.gpus),
        (named.memory, capacity.memory),
        (named.compute, capacity.compute),
    )
    parts = (Fraction(most, there) for most, there in beside if most is not None and there)
    return min(parts, default=None)
