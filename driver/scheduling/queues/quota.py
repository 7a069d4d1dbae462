"""Quotas of queues: limits, deserved amounts, and their shares of the fleet. Pure.

Unnamed resources are not bounded. A named amount counts as its part of the fleet; of several the
smallest part, which a queue reaches first.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from driver.resources import queues
from driver.scheduling.queues import resources

NamedAmounts = queues.Amounts


class Bound(NamedTuple):
    """A bound on one resource: its field under `spec.limit`.

    `kind` is the product for GPUs of a model, and the driver for other devices.
    """

    field: str
    kind: str
    limit: int


def bounds(named: NamedAmounts) -> Iterator[Bound]:
    """Yield the named amounts as bounds."""
    for field, most in (
        ("gpus", named.gpus),
        ("memory", named.memory),
        ("compute", named.compute),
    ):
        if most is not None:
            yield Bound(field, "", most)
    for product, most in sorted(named.models.items()):
        yield Bound("models", product, most)
    for driver, most in sorted(named.devices.items()):
        yield Bound("devices", driver, most)


def bounded_amount(amounts: resources.Amounts, bound: Bound) -> int:
    """Return the amount of the resource that a bound is on."""
    match bound.field:
        case "gpus":
            return amounts.gpus
        case "memory":
            return amounts.memory
        case "compute":
            return amounts.compute
        case "devices":
            return amounts.devices.get(bound.kind, 0)
        case _:
            return amounts.models.get(bound.kind, 0)


def effective_limit(queue: queues.Queue) -> NamedAmounts:
    """Return the limit: without borrowing no more than the deserved amounts."""
    if queue.borrowing:
        return queue.limit
    return _minimum(queue.limit, queue.deserved)


def _minimum(amounts: NamedAmounts, other: NamedAmounts) -> NamedAmounts:
    return NamedAmounts(
        _min_optional(amounts.gpus, other.gpus),
        _min_optional(amounts.memory, other.memory),
        _min_optional(amounts.compute, other.compute),
        _merge(amounts.models, other.models, min),
        _merge(amounts.devices, other.devices, min),
    )


def _merge(
    mapping: Mapping[str, int], other: Mapping[str, int], choose: Callable[[int, int], int]
) -> Mapping[str, int]:
    merged = dict(mapping)
    for kind, most in other.items():
        merged[kind] = choose(most, merged[kind]) if kind in merged else most
    return merged


def _min_optional(first: int | None, second: int | None) -> int | None:
    return min((number for number in (first, second) if number is not None), default=None)


def sum_amounts(amounts: Iterable[NamedAmounts]) -> NamedAmounts:
    """Return the sum; what none of them names is not named."""
    gpus = memory = compute = None
    models: Mapping[str, int] = {}
    devices: Mapping[str, int] = {}
    for named in amounts:
        gpus = _add_optional(gpus, named.gpus)
        memory = _add_optional(memory, named.memory)
        compute = _add_optional(compute, named.compute)
        models = _merge(models, named.models, operator.add)
        devices = _merge(devices, named.devices, operator.add)
    return NamedAmounts(gpus, memory, compute, models, devices)


def _add_optional(first: int | None, second: int | None) -> int | None:
    return first if second is None else (first or 0) + second


def maximum(own: NamedAmounts, children: NamedAmounts) -> NamedAmounts:
    """Return the maximum of each resource."""
    return NamedAmounts(
        _max_optional(own.gpus, children.gpus),
        _max_optional(own.memory, children.memory),
        _max_optional(own.compute, children.compute),
        _merge(own.models, children.models, max),
        _merge(own.devices, children.devices, max),
    )


def _max_optional(first: int | None, second: int | None) -> int | None:
    return max((number for number in (first, second) if number is not None), default=None)


def fleet_share(named: NamedAmounts, capacity: resources.Amounts) -> Fraction | None:
    """Return the share of the fleet; None if nothing is named that the fleet has.

    GPUs of models stand for GPUs if no GPUs are named.
    """
    gpus = named.gpus
    if gpus is None and named.models:
        gpus = sum(named.models.values())
    pairs = (
        (gpus, capacity.gpus),
        (named.memory, capacity.memory),
        (named.compute, capacity.compute),
    )
    parts = (
        Fraction(most, available) for most, available in pairs if most is not None and available
    )
    return min(parts, default=None)
