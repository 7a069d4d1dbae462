"""Streams of MIG instances: what our policies accept beside others, and that it is they who do."""

import statistics

import pytest

from benchmarks.placement import fleet, streams
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import ranking

GPUS, ARRIVALS = 32, 10_000
SEEDS = {"any": range(2), "small": range(8), "large": range(2)}
"""Where all policies are alike within a few tenths of a point, more is drawn."""
TOLERANCE = 0.1
"""Points, of a hundred instances."""
JUDGE = ranking.parse_policies(",".join(policies.DEFAULT))
SCORE = streams.product(JUDGE, streams.machine())


@pytest.mark.parametrize("load", streams.LOADS)
@pytest.mark.parametrize("mix", streams.MIXES)
def test_as_many_workloads_are_placed_as_with_any_simple_policy(mix: str, load: float) -> None:
    scores = {"ours": SCORE, **streams.Others(streams.model()).scores()}
    result: dict[str, list[float]] = {name: [] for name in scores}
    for seed in SEEDS[mix]:
        stream = streams.draw(mix, load, GPUS, ARRIVALS, seed)
        for name, score in scores.items():
            result[name].append(streams.accepted(streams.Plain(GPUS, score), stream))
    means = {name: statistics.fmean(accepted) for name, accepted in result.items()}
    print(mix, load, {name: round(mean, 2) for name, mean in means.items()})
    ours = means.pop("ours")
    assert ours >= max(means.values()) - TOLERANCE


CPU_BLIND = ranking.parse_policies(
    ",".join(name for name in policies.DEFAULT if name != "fragmentation")
)
"""The plain model has no CPUs, and `fragmentation` counts those that pods take."""


class Both:
    """The allocator, and the plain model beside it, that has to give the same."""

    def __init__(self, gpus: int) -> None:
        self.allocator = fleet.Ours(gpus, CPU_BLIND, a_node=1)
        self.plain = streams.Plain(gpus, streams.product(CPU_BLIND, streams.machine()))

    def take(self, profile: str) -> fleet.Given | None:
        take, plain = self.allocator.take(profile), self.plain.take(profile)
        assert plain == (take and (take.gpu, take.mask))
        return take

    def leave(self, values: fleet.Given) -> None:
        self.allocator.leave(values)
        self.plain.leave((values.gpu, values.mask))


@pytest.mark.parametrize("mix", streams.MIXES)
def test_on_nodes_of_one_gpu_the_plain_model_gives_what_the_allocator_gives(mix: str) -> None:
    stream = streams.draw(mix, 1.0, 8, 400, seed=3)
    assert 50 < streams.accepted(Both(8), stream) < 95


class Watched:
    """The allocator on nodes of eight GPUs; what it gives has the best score of `mig-layout`."""

    def __init__(self, gpus: int) -> None:
        self.allocator = fleet.Ours(gpus, JUDGE)
        self.free = [streams.model().all_slices] * gpus

    def take(self, profile: str) -> fleet.Given | None:
        take = self.allocator.take(profile)
        masks = [part.mask for part in streams.model().placements if part.profile == profile]
        best = min(
            (SCORE(free, free & ~m)[0] for free in self.free for m in masks if m & free == m),
            default=None,
        )
        assert (take is None) == (best is None)
        if take is not None:
            previous = self.free[take.gpu]
            assert take.mask in masks
            assert previous & take.mask == take.mask
            self.free[take.gpu] = previous & ~take.mask
            assert SCORE(previous, self.free[take.gpu])[0] == best
        return take

    def leave(self, values: fleet.Given) -> None:
        self.allocator.leave(values)
        self.free[values.gpu] |= values.mask


@pytest.mark.parametrize("mix", streams.MIXES)
def test_on_nodes_of_eight_gpus_the_allocator_gives_what_scores_best(mix: str) -> None:
    stream = streams.draw(mix, 1.5, 16, 300, seed=5)
    assert 50 < streams.accepted(Watched(16), stream) < 95
