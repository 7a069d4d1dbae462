"""The exact optimum of giving out MIG instances one after another: a Markov decision process.

Instances of a mix come at random (Poisson) and stay for a random time (exponential, 1 in the mean);
one that finds no room goes away. A state of a GPU is the set of placements in use. By relative
value iteration (Puterman, "Markov Decision Processes", 8.5.4) with bounds on both sides: no draw.
What is counted is the memory that is accepted, in slices.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.placement import streams
from driver.scheduling.allocator.policies import base

Layout = frozenset[int]
"""The slices of each instance on a GPU, as bit masks."""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Choice = Callable[[str, Floats], Floats]
"""Of who comes and of what each state is worth: what it is worth, by state, when he has come."""
Mix = Mapping[str, float]
"""The part of each profile among those who come."""
_CLOSE = 1e-4
NONE = 1 << 30
"""The rank of a state without room."""


class Bounds(NamedTuple):
    """A value lies between these."""

    least: float
    most: float


class Move(NamedTuple):
    """The product's choice on a GPU: its standing (lower is better), and what the GPU then is."""

    standing: tuple[int, ...]
    then: Layout


@dataclass(frozen=True, eq=False)
class Gpu:
    """States of one GPU, those that nothing tells apart as one. State 0 is the empty one.

    By profile: `ways` are all states that may follow an instance's coming, a row for each way; in
    `ours` the product's choice and in `ranks` how it stands among those of other states. `size` is
    no state, where there is no room. In `ends` are the states that follow an instance's end, as
    many for each state as instances fit a GPU: itself where it has fewer.
    """

    layouts: int
    size: int
    ways: Mapping[str, Ints]
    ours: Mapping[str, Ints]
    ranks: Mapping[str, Ints]
    ends: Ints


def layouts(model: base.GpuModel) -> list[Layout]:
    """All that a GPU may be, the empty one first."""
    masks = sorted({part.mask for part in model.placements})
    result: dict[Layout, None] = {frozenset(): None}
    queue = [*result]
    for layout in queue:
        fresh = [layout | {mask} for mask in masks if not mask & _used(layout)]
        queue += [numbers for numbers in fresh if numbers not in result]
        result.update(dict.fromkeys(fresh))
    return [*result]


def _used(layout: Layout) -> int:
    return sum(layout)


def after(model: base.GpuModel, layout: Layout, profile: str) -> list[Layout]:
    """All that a GPU may be once it has an instance more."""
    masks = [part.mask for part in model.placements if part.profile == profile]
    return [layout | {mask} for mask in sorted(masks) if not mask & _used(layout)]


def ours(model: base.GpuModel, score: streams.Score, layout: Layout, profile: str) -> Move | None:
    """The product's choice; of equal placements the lowest, as its search meets it first.

    None: there is no room.
    """
    free = model.all_slices & ~_used(layout)
    results = []
    for then in after(model, layout, profile):
        left = model.all_slices & ~_used(then)
        results.append((score(free, left), free - left, then))
    if not results:
        return None
    standing, _, then = min(results, key=lambda values: values[:2])
    return Move(standing, then)


def alike(model: base.GpuModel, score: streams.Score | None = None) -> dict[Layout, int]:
    """Return a number by state, the same for equivalent states.

    The same may come of both, at the same rates; with a score, the same is chosen in both and
    stands alike. Parts are split until that is so.
    """
    numbers = layouts(model)
    profiles = [*dict.fromkeys(part.profile for part in model.placements)]
    ways = {number: [after(model, number, profile) for profile in profiles] for number in numbers}
    moves = {
        number: [ours(model, score, number, p) if score else None for p in profiles]
        for number in numbers
    }
    part = dict.fromkeys(numbers, 0)

    def look(numbers: Layout) -> Hashable:
        chosen = ((move.standing, part[move.then]) if move else None for move in moves[numbers])
        may = (frozenset(part[then] for then in numbers) for numbers in ways[numbers])
        gone = Counter(part[numbers - {mask}] for mask in numbers)
        return part[numbers], (*chosen,), (*may,), frozenset(gone.items())

    return _split(numbers, look, part)


def _split(
    counts: Sequence[Layout], look: Callable[[Layout], Hashable], part: dict[Layout, int]
) -> dict[Layout, int]:
    """Split until all of a part look alike."""
    while True:
        numbers: dict[Hashable, int] = {}
        fresh = {count: numbers.setdefault(look(count), len(numbers)) for count in counts}
        if len(numbers) == len({*part.values()}):
            return part
        part.update(fresh)


def gpu(model: base.GpuModel, score: streams.Score, part: Mapping[Layout, int]) -> Gpu:
    """All states of a kind of GPU, whose placements are those that are asked; `part` by `alike`."""
    size = max(part.values()) + 1
    first = {number: numbers for numbers, number in reversed([*part.items()])}
    order = [first[number] for number in range(size)]
    ways, chosen, ranks = {}, {}, {}
    for profile in dict.fromkeys(placement.profile for placement in model.placements):
        ways[profile] = _rows(
            [{part[t] for t in after(model, numbers, profile)} for numbers in order]
        )
        moves = [ours(model, score, numbers, profile) for numbers in order]
        standings = sorted({move.standing for move in moves if move})
        chosen[profile] = np.array([part[move.then] if move else 0 for move in moves])
        ranks[profile] = np.array(
            [standings.index(move.standing) if move else NONE for move in moves]
        )
    most = max(map(len, part))
    ends = [
        [part[numbers - {mask}] for mask in sorted(numbers)] + [number] * (most - len(numbers))
        for number, numbers in enumerate(order)
    ]
    return Gpu(len(part), size, ways, chosen, ranks, np.array(ends).T)


def _rows(numbers: Sequence[set[int]]) -> Ints:
    most = max(len(number) for number in numbers)
    none = len(numbers)
    return np.array([sorted(number) + [none] * (most - len(number)) for number in numbers]).T


@dataclass(frozen=True)
class Process:
    """Arrivals on that many GPUs, each alone on its node; `load` 1 asks all memory."""

    of: Gpu
    sizes: Mapping[str, int]
    mix: Mix
    load: float
    gpus: int

    @property
    def mean(self) -> float:
        """Slices that one who comes asks."""
        return sum(self.mix[profile] * size for profile, size in self.sizes.items())

    @property
    def rate(self) -> float:
        """Return how many come in the time that one stays."""
        return self.load * self.gpus * max(self.sizes.values()) / self.mean

    def solve(self, then: Choice) -> Bounds:
        """The part of the memory asked that is accepted.

        What comes next is an arrival, or on each GPU one of so many ends, some of nothing.
        """
        values = np.zeros((self.of.size,) * self.gpus)
        total = self.rate + len(self.of.ends) * self.gpus
        while True:
            fresh = np.zeros_like(values)
            for axis, row in itertools.product(range(self.gpus), self.of.ends):
                fresh += np.take(values, row, axis=axis)
            for profile, part in self.mix.items():
                fresh += self.rate * part * then(profile, values)
            fresh /= total
            change = fresh - values
            least, most = float(change.min()), float(change.max())
            values = fresh - fresh.flat[0]
            if most - least < _CLOSE * most:
                scale = total / self.rate / self.mean
                return Bounds(least * scale, most * scale)

    def _accepted(self, profile: str, values: Floats) -> Floats:
        """Return the best state after taking one in, with its slices; less than all for none.

        Of equal GPUs: what holds for the first holds for each.
        """
        nowhere = np.full((1, *values.shape[1:]), -np.inf)
        padded = np.concatenate([values, nowhere])
        first = np.maximum.reduce([padded[row] for row in self.of.ways[profile]])
        by_gpu = [np.swapaxes(first, 0, axis) for axis in range(self.gpus)]
        best: Floats = np.maximum.reduce(by_gpu) + self.sizes[profile]
        return best

    def best(self, profile: str, values: Floats) -> Floats:
        """Whoever has room is taken in, where that is best for what comes."""
        accepted = self._accepted(profile, values)
        return np.where(accepted > -np.inf, accepted, values)

    def choosy(self, profile: str, values: Floats) -> Floats:
        """The same, but nobody is taken in to the damage of what comes."""
        return np.maximum(self._accepted(profile, values), values)

    def ours(self, profile: str, values: Floats) -> Floats:
        """The product's: on the GPU where its choice stands best; of equal ones the first."""
        ranks, row = self.of.ranks[profile], self.of.ours[profile]
        matrix, best = values, np.full(values.shape, NONE)
        for axis in range(self.gpus):
            here = np.expand_dims(
                ranks, tuple(index for index in range(self.gpus) if index != axis)
            )
            taken = np.take(values, row, axis=axis) + self.sizes[profile]
            matrix = np.where(here < best, taken, matrix)
            best = np.minimum(best, here)
        return matrix
