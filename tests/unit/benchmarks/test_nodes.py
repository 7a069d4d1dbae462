"""A simulated day: what its nodes cost, how long its jobs wait."""

from collections.abc import Callable, Iterable

import pytest

from benchmarks.nodes import asking, days, fleet, lives
from driver.cli.simulation import openb

Play = Callable[[Iterable[days.Job]], lives.Outcome]
MINUTE = 60.0
LATE = 23.5 * lives.HOUR


def job(
    name: str, gpus: int = 1, *, pods: int = 1, time_s: float = 0.0, lasts: float = 3600.0
) -> days.Job:
    pod = openb.Pod(1000 * gpus, 1024 * gpus, gpus, openb.FULL, ())
    return days.Job(name, pod, pods, time_s, lasts)


def shapes(outcome: lives.Outcome) -> list[str]:
    return [live.shape.name for live in outcome.lives]


def test_a_job_waits_for_its_node_which_is_removed_after_five_empty_minutes() -> None:
    outcome = asking.ours([job("a", time_s=60.0)])
    (life,) = outcome.lives
    assert life.shape.name == "gpu-1"
    assert outcome.waits == [4.0]
    assert life.gone is not None
    assert life.gone - life.asked == 4 * MINUTE + 3600.0 + 5 * MINUTE


def test_a_job_that_arrives_while_a_node_is_empty_starts_at_once() -> None:
    outcome = asking.ours([job("a"), job("b", time_s=4 * MINUTE + 3600.0 + 2 * MINUTE)])
    assert shapes(outcome) == ["gpu-1"]
    assert outcome.waits == [4.0, 0.0]


@pytest.mark.parametrize("play", [asking.ours, asking.first_fit])
def test_jobs_that_come_at_once_share_a_node(play: Play) -> None:
    outcome = play([job(f"job-{n}") for n in range(8)])
    assert shapes(outcome) == ["gpu-8"]
    assert outcome.paid_for_used == pytest.approx((60 + 6 + 5) / 60)


def test_a_gang_requests_every_node_it_needs_and_starts_on_all() -> None:
    outcome = asking.ours([job("gang", 8, pods=2), job("small", time_s=MINUTE, lasts=60.0)])
    assert sorted(shapes(outcome)) == ["gpu-1", "gpu-8", "gpu-8"]
    assert outcome.waits == [4.0, 6.0]


def test_always_on_nodes_are_paid_all_day_at_peak_and_no_job_waits() -> None:
    outcome = asking.always_on(
        [job("a", 8), job("b", 8, time_s=600.0), job("c", 8, time_s=2 * lives.HOUR)]
    )
    assert shapes(outcome) == ["gpu-8", "gpu-8"]
    assert outcome.waits == [0.0, 0.0, 0.0]
    assert outcome.node_hours == 48.0
    assert outcome.cost == 48.0 * 8


def test_apart_each_pod_has_the_cheapest_node_with_room_until_it_ends() -> None:
    outcome = asking.apart([job("a", 3), job("gang", 8, pods=2)])
    assert shapes(outcome) == ["gpu-4", "gpu-8", "gpu-8"]
    assert outcome.waits == [5.0, 6.0]
    assert outcome.node_hours == pytest.approx(65 / 60 + 2 * 66 / 60)


def test_hours_after_the_day_are_nobodys() -> None:
    outcome = asking.ours([job("a", time_s=LATE, lasts=10 * lives.HOUR)])
    assert outcome.node_hours == 0.5
    assert outcome.used == pytest.approx(26 / 60)
    assert outcome.cost == pytest.approx(0.5 * fleet.SHAPES[-1].cost)


def test_without_gangs_a_pod_has_its_place_while_its_job_waits_for_the_rest() -> None:
    ended = job("ended", 8, lasts=600.0)
    gang = job("gang", 8, pods=2, time_s=17 * MINUTE)
    after = job("after", 8, time_s=18 * MINUTE)
    assert asking.first_fit([ended, gang, after]).waits == [6.0, 6.0, 6.0]
    assert asking.ours([ended, gang, after]).waits == [6.0, 0.0, 7.0]
