"""Streams of MIG instances, and a plain model of GPUs that gives them out by any score.

Instances come at random and stay for a random time, one in the mean. At load 1 they ask as much
memory as there is. One that finds no room goes away.
"""

import functools
import heapq
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeVar

from benchmarks.allocator import fixtures
from driver import names
from driver.resources.dra import slices
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.allocator.policies import base, ranking
from driver.scheduling.snapshot import cluster_state
from tests.support.builders import node_capacities

MACHINE = "hgx-h100"
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
MIXES: Mapping[str, Sequence[float]] = {
    "any": (1, 1, 1, 1, 1, 1),
    "small": (0.6, 0.1, 0.15, 0.1, 0.03, 0.02),
    "large": (0.1, 0.05, 0.2, 0.3, 0.15, 0.2),
}
"""How often each profile is asked."""
LOADS = (0.85, 1.0)
_WARM = 0.1
"""The part of a stream that fills the GPUs and does not count."""


class Arrival(NamedTuple):
    """An instance: of which profile, when it comes and when it goes."""

    profile: str
    comes: float
    goes: float


@functools.cache
def machine() -> base.GpuModel:
    """The kind of GPU, with all its placements, as our plugin publishes it."""
    text = fixtures.filled(fixtures.every_face("controller", MACHINE), 0)
    shown = cluster_state.ClusterState(names.DRIVER)
    for raw in json.loads(text):
        shown.set_slice(raw["metadata"]["name"], slices.parse(raw))
    return pool_layout.get_layout(next(iter(shown.pools.values()))).idle_gpus[0].model


@functools.cache
def model() -> base.GpuModel:
    """The kind of GPU, with those placements that streams ask for."""
    parts = tuple(one for one in machine().placements if one.profile in PROFILES)
    return replace(machine(), placements=parts)


def draw(mix: str, load: float, gpus: int, count: int, seed: int) -> list[Arrival]:
    """A stream, the same for every policy."""
    source = random.Random(seed)  # noqa: S311 - no secret
    of, weights = model(), MIXES[mix]
    sizes = {one.profile: one.mask.bit_count() for one in of.placements}
    mean = sum(w * sizes[p] for p, w in zip(PROFILES, weights, strict=True)) / sum(weights)
    rate = load * gpus * of.all_slices.bit_count() / mean
    now, found = 0.0, []
    for _ in range(count):
        now += source.expovariate(rate)
        profile = source.choices(PROFILES, weights)[0]
        found.append(Arrival(profile, now, now + source.expovariate(1)))
    return found


T = TypeVar("T")


class Fleet(Protocol[T]):
    """Whoever gives out instances; what `take` gave, `leave` takes back."""

    def take(self, profile: str) -> T | None:
        """An instance; None where there is no room."""
        ...

    def leave(self, given: T) -> None:
        """The instance has gone."""
        ...


def accepted(fleet: Fleet[T], stream: Sequence[Arrival]) -> float:
    """How many of a hundred instances found room."""
    here: list[tuple[float, int, T]] = []
    had, first = 0, int(len(stream) * _WARM)
    for at, one in enumerate(stream):
        while here and here[0][0] <= one.comes:
            fleet.leave(heapq.heappop(here)[2])
        given = fleet.take(one.profile)
        if given is not None:
            heapq.heappush(here, (one.goes, at, given))
            had += at >= first
    return 100 * had / (len(stream) - first)


Score = Callable[[int, int], tuple[int, ...]]
"""Of a card's free slices before and after; lower is better."""


def product(judge: ranking.PolicyChain, of: base.GpuModel) -> Score:
    """The score of our policies, each GPU on a node of its own; then a cut GPU before an idle one.

    `of` has all placements that the GPU offers.
    """

    @functools.cache
    def score(before: int, after: int) -> tuple[int, ...]:
        idle = before == of.all_slices
        room = node_capacities.room(
            node_capacities.idle(of) if idle else node_capacities.cut(before, of)
        )
        taken = base.Usage(0, base.MIG, mask=before & ~after)
        scores = judge.scores(node_capacities.candidate(room, taken))
        return (*(-one for one in scores), int(idle))

    return score


class Plain:
    """GPUs as bit masks of free slices; of equal scores the lowest GPU and slice."""

    def __init__(self, gpus: int, score: Score) -> None:
        self._model = model()
        self._free = [self._model.all_slices] * gpus
        self._score = score
        self._known: dict[tuple[str, int], tuple[tuple[int, ...], int] | None] = {}

    def take(self, profile: str) -> tuple[int, int] | None:
        """The GPU's number and the slices."""
        ways = ((self._best(profile, free), number) for number, free in enumerate(self._free))
        found = min(((way[0], number, way[1]) for way, number in ways if way), default=None)
        if found is None:
            return None
        _, number, mask = found
        self._free[number] &= ~mask
        return number, mask

    def _best(self, profile: str, free: int) -> tuple[tuple[int, ...], int] | None:
        """The score and the slices of the best way on a GPU; None: there is no room."""
        if (profile, free) not in self._known:
            masks = (part.mask for part in self._model.placements if part.profile == profile)
            fitting = [mask for mask in masks if mask & free == mask]
            ways = ((self._score(free, free & ~mask), mask) for mask in fitting)
            self._known[profile, free] = min(ways, default=None)
        return self._known[profile, free]

    def leave(self, given: tuple[int, int]) -> None:
        """Its slices are free."""
        number, mask = given
        self._free[number] |= mask


@dataclass(frozen=True)
class Others:
    """Policies from elsewhere."""

    of: base.GpuModel

    def scores(self) -> Mapping[str, Score]:
        """First fit; best fit: the least left; greedy: the fewest placements lost."""
        return {
            "first fit": lambda _before, _after: (),
            "best fit": lambda _before, after: (after.bit_count(),),
            "greedy": lambda before, after: (self._placements(before) - self._placements(after),),
        }

    def _placements(self, free: int) -> int:
        return sum(1 for part in self.of.placements if part.mask & free == part.mask)
