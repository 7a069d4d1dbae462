"""Batches of MIG instances that come one by one and stay: the most that could have room, exactly.

By dynamic programming over what a GPU can hold at once and how many of each profile there are.
"""

import functools
import random  # noqa: TID251 - a drawing that anyone can repeat
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.placement import streams
from driver.scheduling.allocator.policies import base
from tests.oracle import layouts

Counts = tuple[int, ...]
"""How many of each profile."""


def draw(
    mix: layouts.Mix, sizes: Mapping[str, int], slices: int, source: random.Random
) -> list[str]:
    """Profiles, until the next one would ask more memory than so many slices."""
    names: list[str] = []
    requested = 0
    while True:
        (profile,) = source.choices([*mix], [*mix.values()])
        requested += sizes[profile]
        if requested > slices:
            return names
        names.append(profile)


def accepted(fleet: streams.Plain, batch: Sequence[str], sizes: Mapping[str, int]) -> int:
    """The slices of those that find room."""
    return sum(sizes[profile] for profile in batch if fleet.take(profile) is not None)


def expected(process: layouts.Process, then: layouts.Choice, slices: int) -> float:
    """The slices that are given out in the mean of all batches."""
    worth: dict[int, layouts.Floats] = {}
    for index in range(slices, -1, -1):
        worth[index] = np.zeros((process.of.size,) * process.gpus)
        for profile, part in process.mix.items():
            if index + process.sizes[profile] <= slices:
                worth[index] += part * then(profile, worth[index + process.sizes[profile]])
    return float(worth[0].flat[0])


class Packing:
    """Capacity of GPUs of a kind."""

    def __init__(self, model: base.GpuModel) -> None:
        self._sizes = {part.profile: part.mask.bit_count() for part in model.placements}
        self._full = _full(model, (*self._sizes,))
        self._most = functools.cache(self._of)

    def most(self, batch: Sequence[str], gpus: int) -> int:
        """The most slices that could be given out."""
        return self._most(tuple(batch.count(profile) for profile in self._sizes), gpus)

    def expected(self, mix: layouts.Mix, slices: int, gpus: int) -> float:
        """The most in the mean of all batches."""
        total = 0.0
        here = {(0,) * len(self._sizes): 1.0}
        while here:
            ahead: dict[Counts, float] = {}
            for counts, more, requested, chance in self._next(here, mix):
                if requested > slices:
                    total += chance * self._most(counts, gpus)
                else:
                    ahead[more] = ahead.get(more, 0.0) + chance
            here = ahead
        return total

    def _next(
        self, here: Mapping[Counts, float], mix: layouts.Mix
    ) -> Iterator[tuple[Counts, Counts, int, float]]:
        """Yield the next arrivals: the state before and after, the slices asked, the chance."""
        for counts, chance in here.items():
            requested = sum(n * size for n, size in zip(counts, self._sizes.values(), strict=True))
            for index, (profile, size) in enumerate(self._sizes.items()):
                more = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                yield counts, more, requested + size, chance * mix[profile]

    def _of(self, counts: Counts, gpus: int) -> int:
        if not gpus or not any(counts):
            return 0
        best = 0
        for held in self._full:
            taken = tuple(map(min, counts, held))
            value = sum(n * size for n, size in zip(taken, self._sizes.values(), strict=True))
            rest = tuple(n - gone for n, gone in zip(counts, taken, strict=True))
            best = max(best, value and value + self._most(rest, gpus - 1))
        return best


def _full(model: base.GpuModel, profiles: tuple[str, ...]) -> list[Counts]:
    """Return what a GPU can hold to which nothing can be added."""
    results = {frozenset[tuple[str, int]]()}
    queue = [*results]
    for held in queue:
        used = sum(mask for _, mask in held)
        for part in model.placements:
            fresh = held | {(part.profile, part.mask)}
            if not part.mask & used and fresh not in results:
                results.add(fresh)
                queue.append(fresh)
    counts = {
        tuple(sum(1 for p, _ in held if p == profile) for profile in profiles) for held in results
    }
    return [
        count
        for count in counts
        if not any(count != other and all(map(int.__le__, count, other)) for other in counts)
    ]
