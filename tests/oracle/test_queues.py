"""Queues at work: the controller's engine and allocator, a clock of their own, seeded draws.

Fifty random trees on 16 GPUs (`forests`). At first one queue has every GPU that it wants; all that
the others want waits. Measured is the average number of GPUs of each leaf over a window, and held
against its exact weighted max-min share (`fair.shares`, which `tests/properties/test_queueing.py`
holds against a reference that tries every case).
"""

import math
from dataclasses import replace

import pytest

from benchmarks.queues import fairness
from driver.cli.simulation import turns
from tests.oracle import forests

TREES, SOME = 50, 10
WARM = forests.LONGEST
WINDOW = forests.HOUR
"""Ten mean run times, from when the last of the jobs that ran at first has ended."""
HALF_LIFE = 24 * forests.MINUTE
"""Four mean run times."""
BOUND = 2 * forests.LONGEST


@pytest.mark.parametrize("first", range(0, TREES, SOME))
def test_without_decay_every_queue_has_its_share_within_a_gpu(first: int) -> None:
    worst = 0.0
    for seed in range(first, first + SOME):
        forest = forests.draw(seed)
        course = forests.course(forest, seed, WARM, WARM + WINDOW)
        worst = max(worst, *map(abs, course.values()))
    print(f"farthest from an exact share: {worst:.2f} GPUs")
    assert worst <= 1.0


@pytest.mark.parametrize("first", range(0, TREES, SOME))
def test_with_decay_the_average_over_five_half_lives_is_the_share_within_a_gpu(first: int) -> None:
    worst = 0.0
    for seed in range(first, first + SOME):
        forest = forests.draw(seed, HALF_LIFE)
        course = forests.course(forest, seed, 0.0, 5 * HALF_LIFE)
        worst = max(worst, *map(abs, course.values()))
    print(f"farthest from an exact share: {worst:.2f} GPUs")
    assert worst <= 1.0


def longest_as_oldest(seed: int, bound_s: float) -> float:
    """Seconds for which a job was the oldest of its queue.

    Whatever comes later is more important than what came before, so that but for the bound the
    oldest would never have its turn.
    """
    drawn = forests.draw(seed)
    bounded = tuple(replace(queue, starvation_s=bound_s) for queue in drawn.queues)
    forest = replace(drawn, queues=bounded, wants=dict.fromkeys(drawn.wants, forests.GPUS))
    assert len(forest.wants) <= forests.GPUS
    simulated_scheduler, by = forests.seated(forest)
    crowd = forests.Crowd(forest, seed)

    def then(job: turns.Job, now: float) -> list[turns.Job]:
        return [crowd.one(job.leaf, now, job.priority + 1)]

    until = 1.5 * forests.HOUR
    fates = turns.JobScheduler(simulated_scheduler, by, turns.JobRules(then=then)).run(
        crowd.first(), until
    )
    return max(
        (until if fate.started is None else fate.started) - fate.oldest_since
        for fate in fates
        if fate.oldest_since is not None
    )


@pytest.mark.parametrize("seed", range(4))
def test_no_workload_heads_its_queue_longer_than_the_bound_plus_the_longest_run(
    seed: int,
) -> None:
    """Once it waited so long it is first in line, one of each queue, and queues are no more than
    GPUs: it has one of those that are given back while the longest run ends.
    """
    assert longest_as_oldest(seed, BOUND) <= BOUND + forests.LONGEST
    assert longest_as_oldest(seed, math.inf) > BOUND + forests.LONGEST


def test_on_a_trace_no_team_is_better_off_alone_unlike_with_other_orders() -> None:
    path = fairness.folder()
    if path is None:
        pytest.skip("the Gavel trace is not here: name its folder in $RATION_TRACES")
    rows = fairness.load(path)[fairness.BUSY]
    outcomes = {order: fairness.play(rows, order) for order in fairness.ORDERS}
    for order, outcome in outcomes.items():
        print(
            order, {team: round(value, 2) for team, value in outcome.delays.items()}, outcome.jain
        )
    ours = outcomes.pop(fairness.OURS)
    assert max(ours.delays.values()) <= 1.0
    assert ours.jain >= 0.95
    for other in outcomes.values():
        assert max(other.delays.values()) > 1.5
        assert other.jain < ours.jain - 0.1
