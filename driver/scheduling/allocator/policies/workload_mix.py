"""What is usually asked of a cluster: the shapes of workloads, each with its weight. Pure."""

import bisect
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from driver.scheduling.allocator.policies import base

ENOUGH = 1 << 30
"""More thousandths of GPUs than any node has."""
_HALF = base.FULL // 2
_MOST = 1 << 14


class Demand(NamedTuple):
    """A shape: so many cards (`number`), of each so much, and so much CPU in milli.

    `mode` is IDLE for pods that ask no GPU. A share takes `thousandths` of a card, a MIG device
    has at least so much of its memory. With `products` only cards of those will do.
    """

    mode: str
    number: int = 1
    thousandths: int = base.FULL
    cpu: int = 0
    products: frozenset[str] = frozenset()

    @property
    def gpus(self) -> float:
        """How much GPU it takes."""
        return self.number * self.thousandths / base.FULL

    def fits(self, card: base.Card) -> bool:
        """Whether a card could serve it now."""
        if self.products and card.model.product not in self.products:
            return False
        if self.mode == base.PARTS:
            return _has_part(card.model, card.free, self.thousandths)
        if self.mode == base.WHOLE:
            return card.mode == base.IDLE
        return card.mode in {base.IDLE, self.mode} and card.left >= self.thousandths


@functools.lru_cache(maxsize=_MOST)
def _has_part(model: base.Model, free: int, thousandths: int) -> bool:
    """Whether a placement of so much of a card's memory is free."""
    return any(
        part.memory * base.FULL >= thousandths * model.memory and part.mask & free == part.mask
        for part in model.parts
    )


@dataclass(frozen=True, eq=False)
class Mix:
    """Shapes with weights that add up to 1.

    `cpu_per_gpu` are the milli CPUs that are asked for each GPU, pods without GPUs included; 0
    where that is not known. `scarce` says of products how much of their GPUs is asked by shapes
    that no other will do for, beside what is asked of all GPUs; what is not named: nothing.
    """

    shapes: tuple[tuple[Demand, float], ...]
    cpu_per_gpu: float = 0.0
    scarce: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """The amounts of CPU at which a node begins to fit more shapes, sorted."""
        return tuple(sorted({demand.cpu for demand, _ in self.shapes}))

    def step(self, cpu: int, idle: int) -> tuple[int, int]:
        """The same for amounts of CPU between which nothing here tells a difference.

        Of a node with so many thousandths of GPUs idle, at most.
        """
        return bisect.bisect_right(self.cpus, cpu), min(self.served(cpu), idle)

    def served(self, cpu: int) -> int:
        """For how many thousandths of GPUs so much CPU does, in halves of a GPU."""
        if not self.cpu_per_gpu:
            return ENOUGH
        return _HALF * max(int(cpu * base.FULL / (self.cpu_per_gpu * _HALF)), 0)


def of(found: Iterable[tuple[Demand, float]]) -> Mix:
    """Of shapes and how often each is asked."""
    shapes = tuple(found)
    total = sum(weight for _, weight in shapes)
    known = tuple((demand, weight / total) for demand, weight in shapes if weight > 0)
    asked = gpus(known)
    cpu = sum(demand.cpu * weight for demand, weight in known)
    return Mix(known, cpu / asked if asked else 0.0)


def gpus(shapes: Iterable[tuple[Demand, float]]) -> float:
    """How much GPU shapes ask in the mean."""
    return sum(demand.gpus * weight for demand, weight in shapes)


def scarce(
    shapes: Iterable[tuple[Demand, float]], supply: Mapping[str, int]
) -> Mapping[str, float]:
    """Of each product that a shape names; `supply` are the GPUs there are of each.

    1: as much of its GPUs is asked by such shapes as is asked of all GPUs in the mean.
    """
    known = tuple(shapes)
    mean = gpus(known) / max(sum(supply.values()), 1)
    found: dict[str, float] = {}
    for demand, weight in known:
        there = sum(supply.get(product, 0) for product in demand.products)
        for product in demand.products if there and mean else ():
            found[product] = found.get(product, 0.0) + demand.gpus * weight / there / mean
    return {product: round(much, 1) for product, much in sorted(found.items())}


NOTHING = Mix(())
"""Nothing is known."""
PRIOR = of(
    (
        (Demand(base.WHOLE, 1), 0.35),
        (Demand(base.WHOLE, 2), 0.1),
        (Demand(base.WHOLE, 4), 0.1),
        (Demand(base.WHOLE, 8), 0.15),
        (Demand(base.MPS, 1, 250), 0.1),
        (Demand(base.MPS, 1, 500), 0.1),
        (Demand(base.PARTS, 1, 110), 0.05),
        (Demand(base.PARTS, 1, 450), 0.05),
    )
)
"""What is asked where nothing is known: whole GPUs, whole nodes of eight, some halves and less."""
