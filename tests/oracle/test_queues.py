"""Queues at work: the controller's engine and allocator, a clock of their own, seeded draws.

Fifty random trees on 16 GPUs (`forests`). At first one queue has every GPU that it wants; all that
the others want waits. Measured is the average number of GPUs of each leaf over a window, and held
against its exact weighted max-min share (`fair.shares`, which `tests/properties/test_queueing.py`
holds against a reference that tries every case).
"""

import math
from dataclasses import replace

import pytest

from driver.controller.simulation import turns
from tests.oracle import forests

TREES = 50
WARM = forests.LONGEST
WINDOW = 1.5 * forests.HOUR
"""Fifteen mean run times, from when the last of the jobs that ran at first has ended."""
HALF_LIFE = 0.3 * forests.HOUR
BOUND = 2 * forests.LONGEST


def test_without_decay_every_queue_has_its_share_within_a_gpu() -> None:
    worst = 0.0
    for seed in range(TREES):
        forest = forests.draw(seed)
        found = forests.course(forest, seed, WARM, WARM + WINDOW)
        worst = max(worst, *map(abs, found.values()))
    print(f"farthest from an exact share: {worst:.2f} GPUs")
    assert worst <= 1.0


def test_with_decay_the_average_over_five_half_lives_is_the_share_within_a_gpu() -> None:
    worst = 0.0
    for seed in range(TREES):
        forest = forests.draw(seed, HALF_LIFE)
        found = forests.course(forest, seed, 0.0, 5 * HALF_LIFE)
        worst = max(worst, *map(abs, found.values()))
    print(f"farthest from an exact share: {worst:.2f} GPUs")
    assert worst <= 1.0


def longest_as_oldest(seed: int, bound_s: float) -> float:
    """Seconds for which a job was the oldest of its queue.

    Whatever comes later is more important than what came before, so that but for the bound the
    oldest would never have its turn.
    """
    drawn = forests.draw(seed)
    forest = replace(
        drawn, queues=tuple(replace(one, starvation_s=bound_s) for one in drawn.queues)
    )
    assert len(forest.wants) <= forests.GPUS
    at, by = forests.seated(forest)
    crowd = forests.Crowd(forest, seed)

    def then(job: turns.Job, now: float) -> list[turns.Job]:
        return [crowd.one(job.leaf, now, job.priority + 1)]

    until = 6 * forests.HOUR / 4
    fates = turns.Turns(at, by, turns.Manner(then=then)).run(crowd.first(), until)
    return max(
        (until if one.started is None else one.started) - one.oldest_since
        for one in fates
        if one.oldest_since is not None
    )


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_the_oldest_of_its_queue_for_longer_than_the_bound_and_the_longest_run(
    seed: int,
) -> None:
    """Once it waited so long it is first in line, one of each queue, and queues are no more than
    GPUs: it has one of those that are given back while the longest run ends.
    """
    assert longest_as_oldest(seed, BOUND) <= BOUND + forests.LONGEST
    assert longest_as_oldest(seed, math.inf) > BOUND + forests.LONGEST
