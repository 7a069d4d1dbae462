"""Figures of the whole control plane, of rounds of both sides."""

from collections.abc import Sequence

import pytest

from benchmarks.control_plane import rounds

CALM_S = (*[0.03] * 59, 0.05)
"""Pods in succession, the last of which waits longest."""
PAUSE_S = (*[0.03] * 56, *[0.4] * 4)
"""Pods in succession, of which four come while the machine stands still."""


def waits(*bound_s: Sequence[float]) -> dict[str, float]:
    """Return our figures by percentile, in ms, of rounds in which pods waited so long."""
    sides = [rounds.Round(40.0, 10.0, 5.0, list(waited), []) for waited in bound_s]
    request = rounds.Asked(5_000, 400, 1, len(sides), 5.0, 60.0, kwok=False, gate=False)
    figures = rounds.figures(request, sides, sides)
    return {figure.name.rpartition(", ")[2]: figure.ours for figure in figures}


def test_the_99th_percentile_of_pods_is_not_moved_by_one_pause() -> None:
    values = waits((*CALM_S, *PAUSE_S, *CALM_S), CALM_S * 3)
    assert values["p50"] == 30.0
    assert values["p99"] == 50.0


def test_many_pauses_are_the_99th_percentile() -> None:
    assert waits(PAUSE_S * 3, PAUSE_S * 3)["p99"] == 400.0


@pytest.mark.parametrize("slow_round", range(3))
def test_a_round_of_three_that_is_eight_times_slower_makes_each_figure_twice(
    slow_round: int,
) -> None:
    sides = [CALM_S] * 3
    sides[slow_round] = tuple(8 * waited for waited in CALM_S)
    calm, slowed = waits(*[CALM_S] * 3), waits(*sides)
    for percentile in ("p50", "p95"):
        assert slowed[percentile] == pytest.approx(2 * calm[percentile])


@pytest.mark.parametrize("pods", [55, 59])
def test_the_pods_after_the_last_whole_stretch_belong_to_it(pods: int) -> None:
    assert waits(*[[0.4, *[0.03] * (pods - 2), 0.4]] * 5)["p99"] == 400.0


def test_the_tail_of_fewer_than_250_pods_is_their_95th_percentile() -> None:
    values = waits([(number * 77 % 200 + 1) / 1000 for number in range(200)])
    assert "p99" not in values
    assert values["p95"] == 191.2  # the 190th is 190; the slowest of even stretches lie above it


def test_the_95th_percentile_of_pods_is_not_moved_by_one_pause() -> None:
    assert waits((*CALM_S, *PAUSE_S, *CALM_S))["p95"] == 30.0
