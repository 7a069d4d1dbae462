"""Tests of whether a figure fell since the stored run."""

import dataclasses

import pytest

from benchmarks import gate, machine, record

HERE = machine.Machine(2, "a processor", 24, 1.0)


def run(figure: record.Figure, suite: str = "herd", **calibrators: float) -> record.Run:
    return record.Run(suite, "2026-11-22", HERE, calibrators, (figure,))


def fallen(previous: record.Run, now: record.Run, bar: str = "") -> list[float]:
    key = next(iter(now.by_id()))
    falls = gate.falls([previous], [now], {key: bar})
    assert all(fallen_value.id == key for fallen_value in falls)
    return [round(fallen_value.times, 2) for fallen_value in falls]


def rate(ours: float, theirs: float | None = None) -> record.Figure:
    return record.figure("1 GPU", "/s", [ours], None if theirs is None else [theirs])


def wall(ours: float, theirs: float | None = None) -> record.Figure:
    return record.figure("Prepare", "ms", [ours], None if theirs is None else [theirs])


def test_a_ratio_that_falls_by_more_than_one_and_a_half_is_named() -> None:
    assert fallen(run(rate(100, 10)), run(rate(100, 16))) == [1.6]
    assert fallen(run(wall(10, 10)), run(wall(17, 10))) == [1.7]


def test_a_ratio_that_falls_by_less_or_rises_is_fine() -> None:
    assert fallen(run(rate(100, 10)), run(rate(70, 10))) == []
    assert fallen(run(wall(10, 10)), run(wall(1, 10))) == []


def test_a_slower_machine_is_no_fall_where_a_reference_is_slower_with_it() -> None:
    assert fallen(run(rate(100, 10)), run(rate(10, 1))) == []


def test_without_a_reference_the_calibrators_say_how_slow_the_machine_is() -> None:
    assert fallen(run(wall(10), python=10), run(wall(19), python=20)) == []
    assert fallen(run(wall(10), python=10), run(wall(19), python=10)) == [1.9]
    assert fallen(run(rate(100), python=10), run(rate(55), python=20)) == []
    assert fallen(run(rate(100), python=20), run(rate(100), python=10)) == [2.0]


def test_a_reference_counts_as_much_as_the_calibrators_together() -> None:
    calm, slow = {"python": 10.0, "memory": 10.0}, {"python": 20.0, "memory": 20.0}
    previous = run(wall(10, 10), "herd", **calm)
    assert fallen(previous, run(wall(10, 6), "herd", **calm)) == []
    assert fallen(previous, run(wall(16, 10), "herd", **calm)) == [1.6]
    assert fallen(previous, run(wall(20, 11), "herd", **slow)) == []
    assert fallen(previous, run(wall(23, 11), "herd", **slow)) == [1.55]
    assert fallen(run(rate(100, 10), "herd", **calm), run(rate(40, 8), "herd", **slow)) == [1.58]


def test_the_nodes_figures_hang_on_the_disk_and_on_calls_too() -> None:
    slow = {"python": 10.0, "fsync": 8.0, "grpc": 1.0}
    previous = run(wall(10), "node", python=10, fsync=1, grpc=1)
    assert fallen(previous, run(wall(19), "node", **slow)) == []
    powers = dict.fromkeys(slow, 1 / len(slow))
    assert gate.slowdown(previous.calibrators, slow, powers) == pytest.approx(2.0)


def test_a_wait_is_as_long_on_any_machine() -> None:
    calm, slow = {"python": 10.0, "memory": 10.0}, {"python": 20.0, "memory": 20.0}
    wait = record.figure("kubelet's wipe to slices again", "s", [1.0])
    assert fallen(run(wait, "node", **slow), run(wait, "node", **calm)) == []
    longer = record.figure("kubelet's wipe to slices again", "s", [1.6])
    assert fallen(run(wait, "node", **calm), run(longer, "node", **slow)) == [1.6]


def test_figures_in_processor_time_are_compared_in_it() -> None:
    busy = {"python": 60.0, "cpu": 12.0}
    previous, now = run(wall(10), "page", **busy), run(wall(11), "page", python=12, cpu=12)
    assert fallen(previous, now) == []


def test_the_allocators_figures_are_processor_time_but_those_from_end_to_end() -> None:
    end = record.figure("end to end, p99", "ms", [19.0])
    calm, busy = {"python": 10, "cpu": 10}, {"python": 20, "cpu": 10}
    assert fallen(run(wall(10), "allocator", **calm), run(wall(19), "allocator", **busy)) == [1.9]
    previous = record.figure("end to end, p99", "ms", [10.0])
    assert fallen(run(previous, "allocator", **calm), run(end, "allocator", **busy)) == []


def test_a_figure_named_processor_time_is_compared_in_it_in_any_suite() -> None:
    busy, calm = (record.figure("CPU of a Prepare", "ms", [ours]) for ours in (10.0, 11.0))
    previous, now = run(busy, "hold", python=60, cpu=12), run(calm, "hold", python=12, cpu=12)
    assert fallen(previous, now) == []


def test_a_figure_hangs_on_the_memory_by_half() -> None:
    calm, slow = {"python": 10, "memory": 10}, {"python": 10, "memory": 16.9}
    assert fallen(run(wall(10), "herd", **calm), run(wall(19), "herd", **slow)) == []
    assert fallen(run(wall(10), "herd", **calm), run(wall(23), "herd", **slow)) == [1.77]


def test_what_was_measured_around_a_figure_says_more_than_the_ends_of_its_suite() -> None:
    slow = dataclasses.replace(wall(19), calibrators={"memory": 20.0})
    assert fallen(run(wall(10), memory=10), run(slow, memory=10)) == []
    assert fallen(run(slow, memory=10), run(wall(19), memory=10)) == [2.0]


def test_a_calibrator_that_a_run_lacks_leaves_its_power_to_the_others() -> None:
    powers = {"python": 0.5, "memory": 0.5}
    assert gate.slowdown({"python": 10}, {"python": 40, "memory": 9}, powers) == pytest.approx(4)
    assert gate.slowdown({"fsync": 10}, {"fsync": 40}, powers) is None


def test_decisions_hang_on_the_loop_far_more_than_on_memory() -> None:
    calm, slow = {"cpu": 15.4, "memory": 22.3}, {"cpu": 28.0, "memory": 21.6}
    for suite in ("allocator", "page", "queues", "placement", "commands"):
        assert fallen(run(wall(10), suite, **calm), run(wall(18), suite, **slow)) == []
        assert fallen(run(wall(10), suite, **calm), run(wall(28), suite, **slow)) == [1.65]
        slow_memory = {**calm, "memory": 37.7}
        assert fallen(run(wall(10), suite, **calm), run(wall(19), suite, **slow_memory)) == [1.71]


@pytest.mark.parametrize("unit", ["MiB", "%", "h"])
def test_memory_quality_and_simulated_time_are_not_scaled(unit: str) -> None:
    figure, other = (record.figure("x", unit, [ours]) for ours in (100.0, 100.0))
    assert fallen(run(figure, python=1), run(other, python=100)) == []


def test_memory_that_differs_by_less_than_an_arena_is_the_same() -> None:
    little, more, much = (record.figure("RSS growth", "MiB", [ours]) for ours in (0.05, 0.9, 1.2))
    assert fallen(run(little), run(more)) == []
    assert fallen(run(little), run(much)) == [24.0]


def test_memory_is_compared_beside_a_reference_and_not_scaled() -> None:
    previous, now = (record.figure("RSS", "MiB", [100.0], [theirs]) for theirs in (50.0, 30.0))
    assert fallen(run(previous, python=1), run(now, python=100)) == [1.67]


def test_quality_falls_too() -> None:
    full = record.figure("room", "%", [90.0])
    assert fallen(run(full), run(record.figure("room", "%", [45.0]))) == [2.0]


def test_a_count_is_judged_by_its_bar_alone() -> None:
    few, many = (record.Figure("lists", "", ours) for ours in (2, 20))
    assert fallen(run(few), run(many)) == []
    assert fallen(run(few), run(many), "<= 2") == [10.0]


def test_figures_judged_by_their_suite_are_not_judged_again() -> None:
    few, many = (record.Figure("RSS, grown", "MiB", ours, says="flat") for ours in (0.02, 0.9))
    assert fallen(run(few), run(many)) == []


def test_a_figure_or_a_suite_that_is_new_has_nothing_to_fall_from() -> None:
    other = run(record.figure("other", "ms", [1.0]))
    assert fallen(other, run(wall(100))) == []
    assert fallen(run(wall(1), "node"), run(wall(100))) == []


def test_a_fall_is_told_with_both_values() -> None:
    (fallen_value,) = gate.falls([run(rate(100, 10))], [run(rate(50, 10))], {})
    assert fallen_value.text == "herd/1-gpu: 50, was 100: 2.00 x worse"


def test_two_runs_differ_whichever_of_them_is_worse() -> None:
    first, second = [run(rate(100, 10))], [run(rate(100, 16))]
    for runs in ((first, second), (second, first)):
        assert [round(fall.times, 2) for fall in gate.differences(*runs, {})] == [1.6]


def test_a_smaller_difference_is_told_where_it_is_asked_for() -> None:
    first, second = [run(wall(10))], [run(wall(14))]
    assert gate.differences(first, second, {}) == []
    assert [round(fall.times, 2) for fall in gate.differences(first, second, {}, 1.3)] == [1.4]
