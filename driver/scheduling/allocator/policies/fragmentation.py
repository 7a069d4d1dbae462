"""fragmentation: minimize GPU capacity that the usual workloads cannot use.

GPU capacity is unusable where the remainder of a GPU is too small (the gradient of Weng and others,
"Beware of Fragmentation", USENIX ATC 2023), where its node has no CPU left, and where a workload
that others would have served takes a GPU of a model that is needed.
"""

import functools
import math
from collections import Counter

from driver.scheduling.allocator.policies import base, workload_mix

_MAX_CACHED = 2048
"""Cached capacities: those of the last few hundred decisions."""
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
        self._cached_useless = functools.lru_cache(_MAX_CACHED)(functools.partial(_useless, mix))

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


def _useless(
    mix: workload_mix.WorkloadMix, step: tuple[int, int], gpus: tuple[base.GpuState, ...]
) -> float:
    """Return the mean of idle thousandths that usual shapes cannot use; by a step of the CPU."""
    counted = [(gpu, number) for gpu, number in Counter(gpus).items() if gpu.remaining]
    idle = sum(gpu.remaining * number for gpu, number in counted)
    position, served = step
    enough = frozenset(mix.cpus[:position])
    fragmented = sum(
        weight * (_unused_capacity(demand, counted) if demand.cpu in enough else idle)
        for demand, weight in mix.shapes
    )
    return fragmented + _STRANDED * (idle - served)


def _unused_capacity(
    demand: workload_mix.WorkloadShape, gpus: list[tuple[base.GpuState, int]]
) -> int:
    """Return idle thousandths that a shape cannot use: all of them if it does not fit at all."""
    served = unused = 0
    for gpu, number in gpus:
        if demand.gpu_count and demand.fits(gpu):
            served += number
        else:
            unused += gpu.remaining * number
    enough = demand.gpu_count and served >= demand.gpu_count
    return unused if enough else sum(gpu.remaining * number for gpu, number in gpus)
