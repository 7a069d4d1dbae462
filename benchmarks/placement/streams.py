"""Streams of MIG instances: through our allocator, and on a plain model with other policies.

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
from driver import ids, names
from driver.controller import picture
from driver.controller.allocation import (
    allocate,
    anatomy,
    assemble,
    filters,
    outcome,
    ranking,
    settings,
)
from driver.controller.allocation.policies import base
from driver.resources import claims, classes, nodes, pods, slices

GPUS_A_NODE = 8
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
_STAMP = "2026-01-01T00:00:00Z"


class Arrival(NamedTuple):
    """An instance: of which profile, when it comes and when it goes."""

    profile: str
    comes: float
    goes: float


@functools.cache
def model() -> base.Model:
    """The kind of GPU, with those placements that streams ask for."""
    text = fixtures.filled(fixtures.every_face("controller", MACHINE), 0)
    shown = picture.Picture(names.DRIVER)
    for raw in json.loads(text):
        shown.put_slice(raw["metadata"]["name"], slices.parse(raw))
    found = anatomy.of(next(iter(shown.pools.values()))).idle[0].model
    return replace(found, parts=tuple(one for one in found.parts if one.profile in PROFILES))


def draw(mix: str, load: float, gpus: int, count: int, seed: int) -> list[Arrival]:
    """A stream, the same for every policy."""
    source = random.Random(seed)  # noqa: S311 - no secret
    of, weights = model(), MIXES[mix]
    sizes = {one.profile: one.mask.bit_count() for one in of.parts}
    mean = sum(w * sizes[p] for p, w in zip(PROFILES, weights, strict=True)) / sum(weights)
    rate = load * gpus * of.slices.bit_count() / mean
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


class Ours:
    """Our allocator with real slices and claims, every face of each GPU published."""

    def __init__(self, gpus: int, judge: ranking.Ranking) -> None:
        self._view = picture.Picture(names.DRIVER)
        self._allocator = allocate.Allocator(settings.Settings(judge, filters.Rules(names.DRIVER)))
        self._made = 0
        for raw in fixtures.classes():
            self._view.put_class(raw["metadata"]["name"], classes.parse(raw))
        template = fixtures.every_face("controller", MACHINE)
        for number in range(-(-gpus // GPUS_A_NODE)):
            node = nodes.parse(fixtures.node(number))
            self._view.put_node(node.name, node)
            for raw in json.loads(fixtures.filled(template, number)):
                self._view.put_slice(raw["metadata"]["name"], slices.parse(raw))

    def take(self, profile: str) -> tuple[ids.Key, ids.Key] | None:
        """A claim for a MIG device, and its pod."""
        self._made += 1
        raw = fixtures.claim(f"claim-{self._made}", fixtures.instance(profile))
        pod = pods.parse(fixtures.pod(f"pod-{self._made}", f"claim-{self._made}"))
        workload = outcome.Workload(pod, (claims.parse(raw),))
        answer = self._allocator.decide(self._view, workload)
        if isinstance(answer, outcome.NoFit):
            return None
        (key, made), *_ = assemble.allocations(self._view, workload, answer, _STAMP).items()
        self._view.put_claim(key, replace(workload.open[0], allocation=made))
        self._view.put_pod(pod.key, replace(pod, node=answer.node))
        return key, pod.key

    def leave(self, given: tuple[ids.Key, ids.Key]) -> None:
        """Its claim and its pod are gone."""
        claim, pod = given
        self._view.put_claim(claim, None)
        self._view.put_pod(pod, None)


Score = Callable[[int, int], float]
"""Of a card's free slices before and after; lower is better."""


class Plain:
    """GPUs as bit masks of free slices; of equal scores the lowest GPU and slice."""

    def __init__(self, gpus: int, score: Score) -> None:
        self._model = model()
        self._free = [self._model.slices] * gpus
        self._score = score

    def take(self, profile: str) -> tuple[int, int] | None:
        """The GPU's number and the slices."""
        found = [
            (self._score(free, free & ~part.mask), number, part.mask)
            for number, free in enumerate(self._free)
            for part in self._model.parts
            if part.profile == profile and part.mask & free == part.mask
        ]
        if not found:
            return None
        _, number, mask = min(found)
        self._free[number] &= ~mask
        return number, mask

    def leave(self, given: tuple[int, int]) -> None:
        """Its slices are free."""
        number, mask = given
        self._free[number] |= mask


@dataclass(frozen=True)
class Others:
    """Policies from elsewhere."""

    of: base.Model

    def scores(self) -> Mapping[str, Score]:
        """First fit; best fit: the least left; greedy: the fewest placements lost."""
        return {
            "first fit": lambda _before, _after: 0,
            "best fit": lambda _before, after: after.bit_count(),
            "greedy": lambda before, after: self._placements(before) - self._placements(after),
        }

    def _placements(self, free: int) -> int:
        return sum(1 for part in self.of.parts if part.mask & free == part.mask)
