"""Figures of the whole control plane, of rounds of both sides."""

from benchmarks.control_plane import rounds


def side(pods: int) -> rounds.Round:
    """A round in which each pod was bound a millisecond later than the one ahead of it."""
    return rounds.Round([40.0], 10.0, 5.0, [number / 1000 for number in range(1, pods + 1)], [])


def measured(pods: int) -> dict[str, float]:
    request = rounds.Asked(5_000, 400, 1, 1, 5.0, pods / 5, kwok=False, gate=False)
    figures = rounds.figures(request, [side(pods)], [side(pods)])
    return {figure.name.rpartition(", ")[2]: figure.ours for figure in figures}


def test_the_tail_of_250_pods_is_their_99th_percentile() -> None:
    values = measured(250)
    assert "p95" not in values
    assert 246 <= values["p99"] <= 249


def test_the_tail_of_fewer_pods_is_their_95th_percentile() -> None:
    values = measured(200)
    assert "p99" not in values
    assert 189 <= values["p95"] <= 191
