"""Workload mix of a cluster: workload shapes, each with its weight. Pure."""

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
    """A shape: a number of GPUs, the thousandths used of each, and milli CPUs.

    `mode` is IDLE for pods without GPUs. A share uses `thousandths` of a GPU, a MIG device has at
    least that part of its memory. With `products` only GPUs of those fit.
    """

    mode: str
    gpu_count: int = 1
    thousandths: int = base.FULL
    cpu: int = 0
    products: frozenset[str] = frozenset()

    @property
    def gpus(self) -> float:
        """Total number of GPUs, as a fraction."""
        return self.gpu_count * self.thousandths / base.FULL

    def fits(self, gpu: base.GpuState) -> bool:
        """Return whether a GPU could serve it now."""
        if self.products and gpu.model.product not in self.products:
            return False
        if self.mode == base.MIG:
            return _has_placement(gpu.model, gpu.free_slices, self.thousandths)
        if self.mode == base.WHOLE:
            return gpu.mode == base.IDLE
        return gpu.mode in {base.IDLE, self.mode} and gpu.remaining >= self.thousandths


@functools.lru_cache(maxsize=_MAX_CACHED)
def _has_placement(model: base.GpuModel, free: int, thousandths: int) -> bool:
    """Return whether a placement of that part of a GPU's memory is free."""
    return any(
        part.memory * base.FULL >= thousandths * model.memory and part.mask & free == part.mask
        for part in model.placements
    )


@dataclass(frozen=True, eq=False)
class WorkloadMix:
    """Shapes with weights that add up to 1.

    `cpu_per_gpu` are the milli CPUs requested per GPU, pods without GPUs included; 0 if unknown.
    `scarce` is, per product, the demand of shapes that are bound to it relative to the demand for
    all GPUs; a missing product has none.
    """

    shapes: tuple[tuple[WorkloadShape, float], ...]
    cpu_per_gpu: float = 0.0
    scarce: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """Amounts of CPU from which a node fits more shapes, sorted."""
        return tuple(sorted({demand.cpu for demand, _ in self.shapes}))

    def cpu_step(self, cpu: int, idle: int) -> tuple[int, int]:
        """Return a value equal for amounts of CPU that make no difference to the mix.

        For a node with at most `idle` thousandths of GPUs idle.
        """
        return bisect.bisect_right(self.cpus, cpu), min(self.servable(cpu), idle)

    def servable(self, cpu: int) -> int:
        """Return the thousandths of GPUs that an amount of CPU supports, in halves of a GPU."""
        cpu_per_half = self._cpu_per_half
        if not cpu_per_half:
            return UNLIMITED
        return _HALF * int(cpu * base.FULL / cpu_per_half) if cpu > 0 else 0

    @cached_property
    def _cpu_per_half(self) -> float:
        """Micro CPUs requested per half of a GPU."""
        return self.cpu_per_gpu * _HALF


def build_mix(weighted: Iterable[tuple[WorkloadShape, float]]) -> WorkloadMix:
    """Return the mix of shapes and their frequencies."""
    shapes = tuple(weighted)
    total = sum(weight for _, weight in shapes)
    normalized = tuple((demand, weight / total) for demand, weight in shapes if weight > 0)
    gpus = mean_gpus(normalized)
    cpu = sum(demand.cpu * weight for demand, weight in normalized)
    return WorkloadMix(normalized, cpu / gpus if gpus else 0.0)


def mean_gpus(shapes: Iterable[tuple[WorkloadShape, float]]) -> float:
    """Return the mean number of GPUs per workload."""
    return sum(demand.gpus * weight for demand, weight in shapes)


def product_scarcity(
    shapes: Iterable[tuple[WorkloadShape, float]], supply: Mapping[str, int]
) -> Mapping[str, float]:
    """Return the scarcity of each product that a shape names; `supply` are GPUs by product.

    1: such shapes request as much of its GPUs as is requested of all GPUs in the mean.
    """
    weighted = tuple(shapes)
    mean = mean_gpus(weighted) / max(sum(supply.values()), 1)
    scarcity: dict[str, float] = {}
    for demand, weight in weighted:
        available = sum(supply.get(product, 0) for product in demand.products)
        for product in demand.products if available and mean else ():
            scarcity[product] = scarcity.get(product, 0.0) + demand.gpus * weight / available / mean
    return {product: round(much, 1) for product, much in sorted(scarcity.items())}


EMPTY_MIX = WorkloadMix(())
"""A mix without shapes."""
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
"""Default mix: whole GPUs, whole nodes of eight, some halves and less."""
