"""fragmentation: leave as little GPU as possible that what is usually asked cannot use.

A GPU is of no use for what is usually asked where what is left of it is too small (the gradient of
Weng and others, "Beware of Fragmentation", USENIX ATC 2023), where its node has no CPU left for it,
and where it was given to somebody for whom another one would have done, while others need its kind.
"""

import functools
import math
from collections import Counter

from driver.scheduling.allocator.policies import base, workload_mix

_MAX_CACHED = 2048
"""Rooms of which it is remembered what is useless: of the last few hundred decisions."""
_LEVELS = 100
_STRANDED = 0.5
_SCARCE = 0.5
"""A GPU without CPU, or of a kind that others need, counts half: someone may come who can use it.

By streams of pods (`benchmarks/placement`): where it counts more, fewer large pods find room.
"""


class Fragmentation:
    """Scores how much useless GPU a node has less, quantised (D6)."""

    name = "fragmentation"

    def __init__(self, usual: workload_mix.WorkloadMix) -> None:
        self._mix = usual
        self._cached_useless = functools.lru_cache(_MAX_CACHED)(functools.partial(_useless, usual))

    def score(self, candidate: base.Candidate) -> int:
        """50 where it stays, more where it falls."""
        level = math.floor(_LEVELS / (1 + math.exp(self._useless_growth(candidate) / base.FULL)))
        return base.MAX_SCORE * level // _LEVELS

    def explain(self, candidate: base.Candidate) -> str:
        """How much GPU becomes of no use, or of use."""
        grown = round(self._useless_growth(candidate))
        if grown <= 0:
            return "no GPU becomes useless to what is usually asked"
        lost = f"{grown / base.FULL:.2f} of a GPU become useless to what is usually asked"
        return f"the least waste: {lost}"

    def _useless_growth(self, candidate: base.Candidate) -> float:
        grown = self._useless(candidate.after) - self._useless(candidate.before)
        return grown + self._scarce_usage(candidate) if self._mix.scarce else grown

    def _useless(self, room: base.NodeCapacity) -> float:
        return self._cached_useless(self._mix.cpu_step(room.cpu, room.remaining), room.gpus)

    def _scarce_usage(self, candidate: base.Candidate) -> float:
        """Thousandths of GPUs that are taken and may be missed by those who need their kind."""
        found = zip(candidate.before.gpus, candidate.after.gpus, strict=True)
        return _SCARCE * sum(
            self._mix.scarce.get(before.model.product, 0.0) * (before.remaining - after.remaining)
            for before, after in found
        )


def _useless(
    usual: workload_mix.WorkloadMix, step: tuple[int, int], cards: tuple[base.GpuState, ...]
) -> float:
    """Idle thousandths that the usual shapes cannot use, in the mean; by a step of the CPU."""
    there = [(card, number) for card, number in Counter(cards).items() if card.remaining]
    idle = sum(card.remaining * number for card, number in there)
    at, served = step
    enough = frozenset(usual.cpus[:at])
    fragmented = sum(
        weight * (_unused_capacity(demand, there) if demand.cpu in enough else idle)
        for demand, weight in usual.shapes
    )
    return fragmented + _STRANDED * (idle - served)


def _unused_capacity(
    demand: workload_mix.WorkloadShape, cards: list[tuple[base.GpuState, int]]
) -> int:
    """Idle thousandths that a shape cannot use: all of them, where it does not fit at all."""
    served = unused = 0
    for card, number in cards:
        if demand.gpu_count and demand.fits(card):
            served += number
        else:
            unused += card.remaining * number
    enough = demand.gpu_count and served >= demand.gpu_count
    return unused if enough else sum(card.remaining * number for card, number in cards)
