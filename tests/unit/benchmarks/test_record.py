"""Tests of what a suite stores of two samples."""

import hashlib
import json
from pathlib import Path

import pytest

from benchmarks import calibrators, machine, record

_CALLS = sorted(map(float, range(4000)), key=lambda ms: hashlib.sha256(b"%d" % ms).digest())
"""Every duration below 4,000 once, in no order."""


def test_a_figure_is_the_median_with_its_ratio_and_spread() -> None:
    figure = record.figure("pods bound", "pods/s", [30.0, 36.0, 41.0], [40.0, 40.0])
    assert (figure.ours, figure.reference, figure.ratio) == (36.0, 40.0, 0.9)
    assert figure.spread == "30-41, n=3; reference 40-40, n=2"


def test_small_and_large_figures_keep_their_digits() -> None:
    assert record.figure("", "s", [0.0001234567]).ours == 0.0001235
    assert record.figure("", "/s", [123456.7]).ours == 123457.0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("1 GPU, 1,000 nodes: p99 of a decision", "1-gpu-1-000-nodes-p99-of-a-decision"),
        ("MIG any, load 0.85", "mig-any-load-0.85"),
        ("Jain's index", "jain-s-index"),
    ],
)
def test_a_name_makes_a_key(name: str, key: str) -> None:
    assert record.Figure(name, "", 0).key == key


def test_a_run_knows_its_figures_by_suite_and_key() -> None:
    figure = record.figure("plugin RSS, idle", "MiB", [70.0])
    run = record.Run("node", "2026-11-22", machine.Machine(2, "", 24, None), {}, (figure,))
    assert run.by_id() == {"node/plugin-rss-idle": figure}


def test_stored_figures_have_unique_ids() -> None:
    for run in record.load():
        assert len(run.by_id()) == len(run.figures), run.suite


def test_a_p99_is_the_median_of_the_rounds() -> None:
    calm, disturbed = [1.0] * 99, [1.0] * 98 + [50.0]
    figure = record.p99("Prepare, p99", "ms", [calm, disturbed, calm], [calm])
    assert (figure.ours, figure.reference, figure.ratio) == (1.0, 1.0, 1.0)
    assert figure.spread == "1-50, n=3; reference 1-1, n=1"


@pytest.mark.parametrize(
    ("stretch", "quantile", "value"), [(5, 0.99, 3960.0), (60, 0.99, 3960.0), (5, 0.95, 3800.0)]
)
def test_a_tail_is_the_quantile_of_all_calls(stretch: int, quantile: float, value: float) -> None:
    assert record.tails([_CALLS], stretch, quantile) == pytest.approx([value], rel=0.01)


def test_a_tail_is_not_moved_by_pauses_of_the_machine() -> None:
    paused = [9000.0] * 20 + _CALLS[20:3000] + [9000.0] * 20 + _CALLS[3020:]
    figure = record.tail("decision, p99", "ms", [paused], [_CALLS], stretch=20)
    assert figure.ratio == pytest.approx(1.0, abs=0.01)
    assert record.p99("decision, p99", "ms", [paused], [_CALLS]).ratio == pytest.approx(2.27, 0.01)


def test_a_tail_of_few_calls_is_not_moved_by_two_of_them() -> None:
    calm = [27.0] * 19 + [30.0]
    slowed = [251.0, *calm[1:]]
    rounds = [slowed + 6 * calm, 3 * calm + slowed + 3 * calm]
    assert record.tail("bound, p99", "ms", rounds, stretch=5).ours == 30.0


def test_a_part_s_figures_keep_how_slow_the_machine_was_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = [{"cpu": 20.0, "memory": 10.0}, {"cpu": 30.0, "memory": 14.0}]
    monkeypatch.setattr(calibrators, "measure_briefly", lambda: taken.pop(0))
    (figure,) = record.parts(lambda: [record.figure("Prepare", "ms", [1.0])])
    assert (figure.ours, figure.calibrators) == (1.0, {"cpu": 25.0, "memory": 12.0})


def test_calibrations_within_a_part_count_and_not_those_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = [{"memory": ms} for ms in (50.0, 10.0, 11.0, 15.0, 50.0)]
    monkeypatch.setattr(calibrators, "measure_briefly", lambda: taken.pop(0))

    def measure() -> list[record.Figure]:
        calibrations = record.Calibrations()
        rounds = [float(number) for number in calibrations.between(range(2))]
        return [calibrations.add_to(record.figure("Prepare", "ms", rounds))]

    (figure,) = record.parts(measure)
    assert (figure.ours, figure.calibrators) == (0.5, {"memory": 12.0})


def test_a_sample_of_two_paces_is_its_mean_beside_that_of_its_calibrators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = [{"python": ms} for ms in (16.0, 24.0)]
    monkeypatch.setattr(calibrators, "measure_briefly", lambda: taken.pop(0))
    calibrations = record.Calibrations()
    calibrations.take()
    figure = calibrations.figure("version", "ms", [40.0, 40.0, 90.0, 90.0])
    assert (figure.ours, figure.calibrators) == (60.0, {"python": 20.0})


@pytest.mark.parametrize(
    ("speeds", "counted"),
    [([15.0], [0]), ([25.0, 15.0, 20.0], [1, 2]), ([25.0, 15.0, 24.0, 16.0], [1, 3])],
)
def test_half_of_the_rounds_count_where_the_machine_was_fastest(
    speeds: list[float], counted: list[int]
) -> None:
    taken = [{"python": ms} for ms in speeds]
    rounds = [(record.Calibrations([ms, ms]), number) for number, ms in enumerate(taken)]
    around, numbers = record.quieter_half(rounds)
    assert numbers == counted
    assert around.mean("python") == pytest.approx(
        sum(speeds[number] for number in counted) / len(counted)
    )


def test_runs_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "page.json").write_text((record.RESULTS / "page.json").read_text())
    assert [run.suite for run in record.runs(str(tmp_path))] == ["page"]


def test_a_run_of_old_has_no_duration() -> None:
    raw = json.loads((record.RESULTS / "soak.json").read_text())
    assert raw.get("took_s") is None
    assert next(run for run in record.load() if run.suite == "soak").took_s is None
