import pytest

from driver.cli.simulation import turns
from driver.resources import queues
from driver.scheduling.queues import engine
from tests.support import snapshots
from tests.support.builders.queues import queue
from tests.support.scenarios import replays
from tests.support.scenarios.replays import a_job


def run(
    sizes: dict[str, int],
    jobs: list[turns.Job],
    *results: queues.Queue,
    until: float = float("inf"),
    **manner: object,
) -> dict[str, turns.JobFate]:
    by = engine.QueueEngine(snapshots.DRIVER)
    for result in results:
        by.set_queue(result.name, result)
    sim = turns.JobScheduler(replays.a_desk(sizes), by, turns.JobRules(**manner))  # type: ignore[arg-type]
    return {fate.job.name: fate for fate in sim.run(jobs, until)}


def started(fates: dict[str, turns.JobFate]) -> dict[str, float | None]:
    return {name: fate.started for name, fate in fates.items()}


def test_without_queues_jobs_go_by_priority_then_by_age() -> None:
    jobs = [
        a_job("runs", lasts=10),
        a_job("old", time_s=1, lasts=10),
        a_job("new", time_s=2, lasts=10),
        a_job("high", time_s=3, lasts=10, priority=1),
    ]
    job_fates = run({"a": 1}, jobs)
    assert started(job_fates) == {"runs": 0, "old": 20, "new": 30, "high": 10}
    assert (job_fates["new"].waited, job_fates["new"].ended) == (28, 40)


def test_queues_have_turns_by_their_weights() -> None:
    jobs = [a_job(f"{leaf}{n}", leaf, lasts=10) for leaf in "ab" for n in range(8)]
    job_fates = run({"a": 4}, jobs, queue("a"), queue("b", weight=3))
    first = sorted(name for name, time_s in started(job_fates).items() if time_s == 0)
    assert first == ["a0", "b0", "b1", "b2"]
    assert {fate.ended for fate in job_fates.values()} == {10, 20, 30, 40}


def test_a_limit_keeps_gpus_idle_that_nobody_else_asks() -> None:
    jobs = [a_job(f"a{n}", "a", lasts=10) for n in range(3)]
    job_fates = run({"a": 4}, jobs, queue("a", limit=2))
    assert started(job_fates) == {"a0": 0, "a1": 0, "a2": 10}


def test_a_gang_starts_as_a_whole() -> None:
    jobs = [a_job("one", gpus=2, lasts=5), a_job("gang", pods=2, gpus=2, time_s=1, lasts=5)]
    job_fates = run({"a": 2, "b": 2}, jobs)
    assert started(job_fates) == {"one": 0, "gang": 5}


def test_a_small_job_overtakes_a_blocked_head_only_without_delaying_it() -> None:
    jobs = [
        a_job("runs", gpus=3, lasts=10),
        a_job("head", gpus=4, time_s=1, lasts=10),
        a_job("long", time_s=2, lasts=99),
        a_job("short", time_s=3, lasts=7),
    ]
    job_fates = run({"a": 4}, jobs)
    assert started(job_fates) == {"runs": 0, "head": 10, "long": 20, "short": 3}


def test_devices_not_reserved_for_the_head_are_usable_by_all() -> None:
    jobs = [
        a_job("runs", gpus=3, lasts=10),
        a_job("beside", gpus=3, lasts=50),
        a_job("head", gpus=4, time_s=1, lasts=10),
        a_job("long", time_s=2, lasts=99),
    ]
    job_fates = run({"a": 4, "b": 4}, jobs)
    assert started(job_fates) == {"runs": 0, "beside": 0, "head": 10, "long": 2}


def test_without_backfill_rules_whatever_fits_goes() -> None:
    jobs = [
        a_job("runs", gpus=3, lasts=10),
        a_job("head", gpus=4, time_s=1, lasts=10),
        a_job("long", time_s=2, lasts=99),
    ]
    job_fates = run({"a": 4}, jobs, backfill=False)
    assert started(job_fates) == {"runs": 0, "head": 101, "long": 2}


def test_every_job_overtakes_an_infeasible_one() -> None:
    jobs = [a_job("huge", gpus=9, lasts=1), a_job("one", time_s=1, lasts=1)]
    job_fates = run({"a": 4}, jobs)
    assert started(job_fates) == {"huge": None, "one": 1}


def test_the_end_of_a_job_starts_the_next() -> None:
    def again(job: turns.Job, now: float) -> list[turns.Job]:
        return [a_job(f"{job.name}x", time_s=now, lasts=10)]

    job_fates = run({"a": 1}, [a_job("j", lasts=10)], until=35, then=again)
    assert started(job_fates) == {"j": 0, "jx": 10, "jxx": 20, "jxxx": 30}


def test_time_is_told_without_a_gap_up_to_the_end() -> None:
    reported: list[tuple[float, float]] = []
    run(
        {"a": 1},
        [a_job("x", lasts=10), a_job("y", time_s=5, lasts=10)],
        until=18,
        told=lambda since, until: reported.append((since, until)),
    )
    assert reported == [(0, 0), (0, 5), (5, 10), (10, 18)]


def test_the_time_of_a_job_as_head_of_its_queue_is_known() -> None:
    jobs = [
        a_job("runs", "a", lasts=10),
        a_job("first", "a", time_s=1, lasts=10),
        a_job("second", "a", time_s=2, lasts=10),
    ]
    job_fates = run({"a": 1}, jobs, queue("a"))
    assert [job_fates[name].oldest_since for name in ("first", "second")] == [1, 10]


def test_a_job_may_run_from_the_beginning() -> None:
    by = engine.QueueEngine(snapshots.DRIVER)
    by.set_queue("a", queue("a"))
    sim = turns.JobScheduler(replays.a_desk({"a": 1}), by)
    assert sim.set_running(a_job("there", "a", lasts=4))
    assert not sim.set_running(a_job("waits", "a", lasts=4))
    job_fates = {fate.job.name: fate for fate in sim.run([])}
    assert started(job_fates) == {"there": 0, "waits": 4}
    assert by.usage("a").gpus == 0


@pytest.mark.parametrize("backfill", [True, False])
def test_all_that_ran_is_given_back(backfill: bool) -> None:  # noqa: FBT001 - a parameter
    simulated_scheduler, by = replays.a_desk({"a": 8, "b": 8}), engine.QueueEngine(snapshots.DRIVER)
    by.set_queue("q", queue("q", limit=12))
    jobs = [
        a_job(f"j{n}", "q" if n % 2 else "", gpus=1 + n % 8, time_s=n / 3, lasts=1 + n % 5)
        for n in range(40)
    ]
    job_fates = turns.JobScheduler(simulated_scheduler, by, turns.JobRules(backfill=backfill)).run(
        jobs
    )
    assert all(fate.ended is not None for fate in job_fates)
    assert by.usage("q").gpus == by.usage("").gpus == 0
    assert not any(
        simulated_scheduler.view.used_devices(pool)
        for pool in simulated_scheduler.view.pools.values()
    )
