"""A day of a public trace on nodes that are asked for: what it costs, how long jobs wait.

Jobs, nodes and the clock are simulated (`benchmarks.nodes`); nodes are asked for by the
controller's plan, pods placed by its allocator. They ask parts of GPUs, whole ones, several.
"""

from pathlib import Path

import pytest

from benchmarks.nodes import asking, days, fleet

SLOWEST_MIN = max(node_template.startup_s for node_template in fleet.SHAPES) / 60


@pytest.fixture(scope="module")
def traces() -> Path:
    path = days.folder()
    if path is None:
        pytest.skip("the openb and Gavel traces are not here: name their folder in $RATION_TRACES")
    return path


@pytest.mark.parametrize("day", ["openb 130", "Gavel 83"])
def test_a_day_costs_little_more_than_usage_and_waits_stay_within_node_startup(
    traces: Path, day: str
) -> None:
    trace, number = day.split()
    jobs = {"openb": days.of_openb, "Gavel": days.of_gavel}[trace](traces, int(number)).jobs
    ours, always, apart = asking.ours(jobs), asking.always_on(jobs), asking.apart(jobs)
    print(f"{day}: {ours.cost:.1f} of {always.cost:.1f}, wait {ours.mean_wait:.2f} min")
    assert len(ours.ran) == len(jobs)
    assert ours.cost <= 0.6 * always.cost
    assert ours.cost <= 1.2 * apart.cost
    assert ours.paid_for_used <= 1.3
    assert ours.longest_wait <= SLOWEST_MIN
    assert ours.mean_wait <= 0.8 * apart.mean_wait
    assert max(always.waits) == 0


def test_the_same_day_is_the_same_again(traces: Path) -> None:
    jobs = days.of_openb(traces, 140).jobs[:80]
    first, again = asking.ours(jobs), asking.ours(jobs)
    assert [(live.shape.name, live.asked, live.gone) for live in first.lives] == [
        (live.shape.name, live.asked, live.gone) for live in again.lives
    ]
    assert first.waits == again.waits
