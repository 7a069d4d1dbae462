"""What is usually asked of a cluster: the shapes of workloads, each with its weight. Pure."""

import bisect
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from driver.scheduling.allocator.policies import base

UNLIMITED = 1 << 30
"""More thousandths of GPUs than any node has."""
_HALF = base.FULL // 2
_MAX_CACHED = 1 << 14


class WorkloadShape(NamedTuple):
    """A shape: so many cards (`number`), of each so much, and so much CPU in milli.

    `mode` is IDLE for pods that ask no GPU. A share takes `thousandths` of a card, a MIG device
    has at least so much of its memory. With `products` only cards of those will do.
    """

    mode: str
    gpu_count: int = 1
    thousandths: int = base.FULL
    cpu: int = 0
    products: frozenset[str] = frozenset()

    @property
    def gpus(self) -> float:
        """How much GPU it takes."""
        return self.gpu_count * self.thousandths / base.FULL

    def fits(self, card: base.GpuState) -> bool:
        """Whether a card could serve it now."""
        if self.products and card.model.product not in self.products:
            return False
        if self.mode == base.MIG:
            return _has_placement(card.model, card.free_slices, self.thousandths)
        if self.mode == base.WHOLE:
            return card.mode == base.IDLE
        return card.mode in {base.IDLE, self.mode} and card.remaining >= self.thousandths


@functools.lru_cache(maxsize=_MAX_CACHED)
def _has_placement(model: base.GpuModel, free: int, thousandths: int) -> bool:
    """Whether a placement of so much of a card's memory is free."""
    return any(
        part.memory * base.FULL >= thousandths * model.memory and part.mask & free == part.mask
        for part in model.placements
    )


@dataclass(frozen=True, eq=False)
class WorkloadMix:
    """Shapes with weights that add up to 1.

    `cpu_per_gpu` are the milli CPUs that are asked for each GPU, pods without GPUs included; 0
    where that is not known. `scarce` says of products how much of their GPUs is asked by shapes
    that no other will do for, beside what is asked of all GPUs; what is not named: nothing.
    """

    shapes: tuple[tuple[WorkloadShape, float], ...]
    cpu_per_gpu: float = 0.0
    scarce: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """The amounts of CPU at which a node begins to fit more shapes, sorted."""
        return tuple(sorted({demand.cpu for demand, _ in self.shapes}))

    def cpu_step(self, cpu: int, idle: int) -> tuple[int, int]:
        """The same for amounts of CPU between which nothing here tells a difference.

        Of a node with so many thousandths of GPUs idle, at most.
        """
        return bisect.bisect_right(self.cpus, cpu), min(self.servable(cpu), idle)

    def servable(self, cpu: int) -> int:
        """For how many thousandths of GPUs so much CPU does, in halves of a GPU."""
        if not self.cpu_per_gpu:
            return UNLIMITED
        return _HALF * max(int(cpu * base.FULL / (self.cpu_per_gpu * _HALF)), 0)


def build_mix(found: Iterable[tuple[WorkloadShape, float]]) -> WorkloadMix:
    """Of shapes and how often each is asked."""
    shapes = tuple(found)
    total = sum(weight for _, weight in shapes)
    known = tuple((demand, weight / total) for demand, weight in shapes if weight > 0)
    asked = mean_gpus(known)
    cpu = sum(demand.cpu * weight for demand, weight in known)
    return WorkloadMix(known, cpu / asked if asked else 0.0)


def mean_gpus(shapes: Iterable[tuple[WorkloadShape, float]]) -> float:
    """How much GPU shapes ask in the mean."""
    return sum(demand.gpus * weight for demand, weight in shapes)


def product_scarcity(
    shapes: Iterable[tuple[WorkloadShape, float]], supply: Mapping[str, int]
) -> Mapping[str, float]:
    """Of each product that a shape names; `supply` are the GPUs there are of each.

    1: as much of its GPUs is asked by such shapes as is asked of all GPUs in the mean.
    """
    known = tuple(shapes)
    mean = mean_gpus(known) / max(sum(supply.values()), 1)
    found: dict[str, float] = {}
    for demand, weight in known:
        there = sum(supply.get(product, 0) for product in demand.products)
        for product in demand.products if there and mean else ():
            found[product] = found.get(product, 0.0) + demand.gpus * weight / there / mean
    return {product: round(much, 1) for product, much in sorted(found.items())}


EMPTY_MIX = WorkloadMix(())
"""Nothing is known."""
DEFAULT_MIX = build_mix(
    (
        (WorkloadShape(base.WHOLE, 1), 0.35),
        (WorkloadShape(base.WHOLE, 2), 0.1),
        (WorkloadShape(base.WHOLE, 4), 0.1),
        (WorkloadShape(base.WHOLE, 8), 0.15),
        (WorkloadShape(base.MPS, 1, 250), 0.1),
        (WorkloadShape(base.MPS, 1, 500), 0.1),
        (WorkloadShape(base.MIG, 1, 110), 0.05),
        (WorkloadShape(base.MIG, 1, 450), 0.05),
    )
)
"""What is asked where nothing is known: whole GPUs, whole nodes of eight, some halves and less."""
