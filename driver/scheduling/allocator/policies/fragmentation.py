"""fragmentation: minimize GPU capacity that the usual workloads cannot use.

GPU capacity is unusable where the remainder of a GPU is too small (the gradient of Weng and others,
"Beware of Fragmentation", USENIX ATC 2023), where its node has no CPU left, and where a workload
that others would have served takes a GPU of a model that is needed.
"""

import functools
import math
import operator
from collections import Counter

from driver.scheduling.allocator.policies import base, workload_mix

_MAX_CACHED = 2048
"""Cached capacities: those of the last few hundred decisions."""
_MAX_GPUS = 512
"""Cached states of GPUs: a number for each shape."""
_LEVELS = 100
_STRANDED = 0.5
_SCARCE = 0.5
"""GPU capacity without CPU, or of a scarce model, counts half: a later workload may use it.

Chosen by streams of pods (`benchmarks/placement`): with a higher weight fewer large pods fit.
"""


class Fragmentation:
    """Scores the reduction of unusable GPU capacity, quantised (D6)."""

    name = "fragmentation"

    def __init__(self, mix: workload_mix.WorkloadMix) -> None:
        self._mix = mix
        self._cached_useless = functools.lru_cache(_MAX_CACHED)(UselessCapacity(mix))

    def score(self, candidate: base.Candidate) -> int:
        """Return 50 for no change, more for a reduction."""
        level = math.floor(_LEVELS / (1 + math.exp(self._useless_growth(candidate) / base.FULL)))
        return base.MAX_SCORE * level // _LEVELS

    def explain(self, candidate: base.Candidate) -> str:
        """Return how much GPU capacity becomes unusable, or usable."""
        grown = round(self._useless_growth(candidate))
        if grown <= 0:
            return "no GPU becomes unusable for the workload mix"
        lost = f"{grown / base.FULL:.2f} of a GPU becomes unusable for the workload mix"
        return f"the least waste: {lost}"

    def _useless_growth(self, candidate: base.Candidate) -> float:
        grown = self._useless(candidate.after) - self._useless(candidate.before)
        return grown + self._scarce_usage(candidate) if self._mix.scarce else grown

    def _useless(self, capacity: base.NodeCapacity) -> float:
        return self._cached_useless(
            self._mix.cpu_step(capacity.cpu, capacity.remaining), capacity.gpus
        )

    def _scarce_usage(self, candidate: base.Candidate) -> float:
        """Return thousandths of used GPUs that workloads bound to their model may need."""
        pairs = zip(candidate.before.gpus, candidate.after.gpus, strict=True)
        return _SCARCE * sum(
            self._mix.scarce.get(previous.model.product, 0.0)
            * (previous.remaining - current.remaining)
            for previous, current in pairs
        )


_SERVED = 1 << 32
"""One GPU that a shape fits, in a sum with thousandths of GPUs that it does not fit.

Those may be below 0, of a set of devices that is not allocated after all.
"""
_MASK, _OFFSET = _SERVED - 1, _SERVED >> 1
_UNREACHABLE = 1 << 62
"""More than any node serves: the shape does not fit it at all."""


class UselessCapacity:
    """Idle thousandths that usual shapes cannot use, in the mean; computed by kinds of GPUs."""

    def __init__(self, mix: workload_mix.WorkloadMix) -> None:
        self._mix = mix
        self._weights = tuple(weight for _, weight in mix.shapes)
        self._fits = functools.lru_cache(_MAX_GPUS)(self._compute_fits)
        self._needed = functools.lru_cache(_MAX_GPUS)(self._compute_needed)

    def __call__(self, step: tuple[int, int], gpus: tuple[base.GpuState, ...]) -> float:
        """Return the mean of idle thousandths that usual shapes cannot use; by a step of the CPU.

        The sum is in the order of the shapes: another one would round otherwise.
        """
        counted = [(gpu, number) for gpu, number in Counter(gpus).items() if gpu.remaining]
        idle = sum(gpu.remaining * number for gpu, number in counted)
        position, served = step
        sums = [
            [number * fits for fits in self._fits(gpu)] if number > 1 else self._fits(gpu)
            for gpu, number in counted
        ]
        by_shape = map(sum, zip(*sums, strict=True)) if sums else (0 for _ in self._weights)
        unused = (
            (amount + _OFFSET & _MASK) - _OFFSET if amount >= needed else idle
            for amount, needed in zip(by_shape, self._needed(position), strict=True)
        )
        fragmented: float = sum(map(operator.mul, self._weights, unused))
        return fragmented + _STRANDED * (idle - served)

    def _compute_fits(self, gpu: base.GpuState) -> tuple[int, ...]:
        """Return per shape one GPU served, or else the thousandths that it cannot use."""
        return tuple(
            _SERVED if demand.gpu_count and demand.fits(gpu) else gpu.remaining
            for demand, _ in self._mix.shapes
        )

    def _compute_needed(self, position: int) -> tuple[int, ...]:
        """Return per shape the GPUs that it needs, on a node with a step of the CPU."""
        enough = frozenset(self._mix.cpus[:position])
        return tuple(
            demand.gpu_count * _SERVED - _OFFSET
            if demand.gpu_count and demand.cpu in enough
            else _UNREACHABLE
            for demand, _ in self._mix.shapes
        )
