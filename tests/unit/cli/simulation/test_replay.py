import pytest

from driver.cli.simulation import replay, scheduler
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.queues import gpu_usage
from tests.properties import drawing
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.scenarios.replays import a_desk, a_pod_alone, a_task, node_of, run

NONE_LEAVES = replay.ReplayRule(wait=False, leave=False)


def test_a_pod_that_fits_nowhere_waits_until_one_leaves() -> None:
    fates = run(a_desk({"node-a": 1}), a_task("one", lasts=10.0), a_task("two", time_s=4.0))
    assert (fates["one"].placed, fates["one"].departed, fates["one"].waited) == (0.0, 10.0, 0.0)
    assert (fates["two"].placed, fates["two"].waited, fates["two"].departed) == (10.0, 6.0, None)


def test_pending_pods_are_tried_in_order_of_arrival() -> None:
    tasks = [a_task(name, time_s=index, lasts=10.0) for index, name in enumerate(("a", "c", "b"))]
    for reported in (tasks, tasks[::-1]):
        fates = run(a_desk({"node-a": 1}), *reported)
        assert [fates[name].placed for name in ("a", "c", "b")] == [0.0, 10.0, 20.0]


def test_the_most_important_goes_first_whenever_it_came() -> None:
    fates = run(
        a_desk({"node-a": 1}),
        a_task("first", lasts=10.0),
        a_task("second", time_s=1.0, lasts=10.0),
        a_task("urgent", time_s=2.0, lasts=10.0, priority=5),
    )
    assert (fates["urgent"].placed, fates["second"].placed) == (10.0, 20.0)


def test_a_small_one_goes_past_a_large_one_that_does_not_fit() -> None:
    fates = run(
        a_desk({"node-a": 2}),
        a_task("one", lasts=10.0),
        a_task("two", lasts=20.0),
        a_task("large", 2, time_s=1.0, lasts=5.0),
        a_task("small", time_s=2.0, lasts=3.0),
    )
    assert (fates["small"].placed, fates["large"].placed) == (10.0, 20.0)


def test_an_infeasible_pod_is_reported_with_the_reason() -> None:
    fates = run(a_desk({"node-a": 1}), a_task("huge", 4), a_task("one", lasts=1.0))
    assert isinstance(fates["huge"].answer, allocator_types.Unschedulable)
    assert (fates["huge"].placed, fates["huge"].waited, node_of(fates["one"])) == (
        None,
        None,
        "node-a",
    )


def test_with_no_waiting_what_does_not_fit_at_once_is_never_placed() -> None:
    rule = replay.ReplayRule(wait=False)
    fates = run(
        a_desk({"node-a": 1}), a_task("one", lasts=5.0), a_task("two", time_s=1.0), rule=rule
    )
    assert (fates["one"].departed, fates["two"].placed) == (5.0, None)


def test_with_no_leaving_nothing_ends_however_long_it_lasts() -> None:
    fates = run(
        a_desk({"node-a": 1}),
        a_task("one", lasts=5.0),
        a_task("two", time_s=9.0),
        rule=replay.ReplayRule(wait=True, leave=False),
    )
    assert (fates["one"].departed, fates["two"].placed) == (None, None)


def test_devices_freed_at_a_time_go_to_pending_pods_before_arriving_ones() -> None:
    tasks = a_task("one", lasts=10.0), a_task("waits", time_s=1.0), a_task("comes", time_s=10.0)
    fates = run(a_desk({"node-a": 1}), *tasks)
    assert (fates["waits"].placed, fates["comes"].placed) == (10.0, None)
    alone = run(a_desk({"node-a": 1}), tasks[0], tasks[2])
    assert alone["comes"].placed == 10.0


def test_a_pod_that_lasts_no_time_comes_and_goes() -> None:
    fates = run(a_desk({"node-a": 1}), a_task("one", lasts=0.0), a_task("two", lasts=0.0))
    assert [(fate.placed, fate.departed) for fate in fates.values()] == [(0.0, 0.0), (0.0, 0.0)]


def test_the_course_tells_what_is_in_use_at_each_moment() -> None:
    tasks = a_task("a", 2, lasts=10.0), a_task("b", time_s=5.0, lasts=10.0), a_task("c", time_s=6.0)
    report = replay.Replay(a_desk({"node-a": 2})).run(tasks)
    full = gpu_usage.FULL
    assert report.course == (
        replay.UsageSample(0.0, 2 * full, 1, 0),
        replay.UsageSample(5.0, 2 * full, 1, 1),
        replay.UsageSample(6.0, 2 * full, 1, 2),
        replay.UsageSample(10.0, 2 * full, 2, 0),
        replay.UsageSample(20.0, full, 1, 0),
    )
    assert (report.capacity, report.most, report.used, report.placed) == (
        2 * full,
        2 * full,
        full,
        3,
    )
    assert report.mean == 2 * full


def test_the_mean_is_over_the_time_and_not_over_the_moments() -> None:
    tasks = a_task("a", lasts=1.0), a_task("b", time_s=99.0, lasts=1.0)
    report = replay.Replay(a_desk({"node-a": 1})).run(tasks)
    assert report.mean == pytest.approx(gpu_usage.FULL * 2 / 100)


def test_devices_in_use_at_the_start_count() -> None:
    simulated_scheduler = a_desk({"node-a": 2}, snapshots.holding("old", "node-a", "gpu-0"))
    report = replay.Replay(simulated_scheduler).run([a_task("one")])
    assert (report.before, report.used) == (gpu_usage.FULL, 2 * gpu_usage.FULL)


def test_without_tasks_nothing_happens() -> None:
    report = replay.Replay(a_desk({"node-a": 2})).run([])
    assert (report.fates, report.course, report.used, report.mean, report.most) == ((), (), 0, 0, 0)


def test_a_claim_that_two_tasks_share_is_counted_once_and_free_with_the_last() -> None:
    simulated_scheduler = a_desk({"node-a": 1}, objects.claim("both"))
    tasks = [
        replay.Task(objects.pod("one", "both"), (), 0.0, 10.0),
        replay.Task(objects.pod("two", "both"), (), 1.0, 20.0),
    ]
    report = replay.Replay(simulated_scheduler).run(tasks)
    assert [usage_sample.used for usage_sample in report.course] == [
        gpu_usage.FULL,
        gpu_usage.FULL,
        gpu_usage.FULL,
        0,
    ]


def test_pods_without_devices_are_skipped() -> None:
    fates = run(a_desk({"node-a": 1}), a_pod_alone("one"), a_task("two"))
    assert isinstance(fates["one"].answer, scheduler.Skipped)
    assert (fates["one"].placed, fates["two"].placed) == (None, 0.0)


def test_after_all_have_left_the_picture_is_as_it_was() -> None:
    simulated_scheduler = a_desk({"node-a": 2, "node-b": 1})
    previous = drawing.shown(simulated_scheduler.view)
    run(
        simulated_scheduler,
        *(a_task(f"t-{n}", 1 + n % 2, time_s=n / 2, lasts=3.0) for n in range(12)),
    )
    assert drawing.shown(simulated_scheduler.view) == previous


def test_progress_is_told_of_every_task() -> None:
    reported: list[tuple[int, int]] = []
    simulated_scheduler = a_desk({"node-a": 1})
    replay.Replay(
        simulated_scheduler, NONE_LEAVES, lambda done, total: reported.append((done, total))
    ).run([a_task("one"), a_task("two")])
    assert reported == [(1, 2), (2, 2)]
