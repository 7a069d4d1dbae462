"""What queues name of GPUs: their limits, what they deserve, and as which share it counts. Pure.

What is not named is not bounded. A named amount counts as the part of the fleet that it is; of
several the first that a queue comes to, which is the least part.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from driver.resources import queues
from driver.scheduling.queues import resources

Named = queues.Amounts


class Bound(NamedTuple):
    """A bound on one resource: its field under `spec.limit`, the product for GPUs of a model."""

    field: str
    product: str
    most: int


def bounds(named: Named) -> Iterator[Bound]:
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


def of(found: resources.Amounts, bound: Bound) -> int:
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


def limit(queue: queues.Queue) -> Named:
    """What it never exceeds: without borrowing no more than it deserves."""
    if queue.borrowing:
        return queue.limit
    return _least(queue.limit, queue.deserved)


def _least(one: Named, other: Named) -> Named:
    models = dict(one.models)
    for product, most in other.models.items():
        models[product] = min(most, models.get(product, most))
    return Named(
        _lesser(one.gpus, other.gpus),
        _lesser(one.memory, other.memory),
        _lesser(one.compute, other.compute),
        models,
    )


def _lesser(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)


def together(found: Iterable[Named]) -> Named:
    """The sum; what none of them names is not named."""
    gpus = memory = compute = None
    models: dict[str, int] = {}
    for one in found:
        gpus = _sum(gpus, one.gpus)
        memory = _sum(memory, one.memory)
        compute = _sum(compute, one.compute)
        for product, most in one.models.items():
            models[product] = models.get(product, 0) + most
    return Named(gpus, memory, compute, models)


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other


def at_least(own: Named, children: Named) -> Named:
    """The more of each."""
    models = dict(own.models)
    for product, most in children.models.items():
        models[product] = max(most, models.get(product, 0))
    return Named(
        _greater(own.gpus, children.gpus),
        _greater(own.memory, children.memory),
        _greater(own.compute, children.compute),
        models,
    )


def _greater(one: int | None, other: int | None) -> int | None:
    return max((number for number in (one, other) if number is not None), default=None)


def share(named: Named, capacity: resources.Amounts) -> Fraction | None:
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
