"""The Alibaba trace `openb` through our allocator, beside FGD on the same draw (seed 42)."""

import functools

import pytest

from benchmarks.placement import beside, openb, ours
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import ranking

SEED = 42
MORE = {"default": 0.2}
"""Percent of the fleet that are to be in use beyond FGD's."""


@functools.cache
def course(name: str) -> beside.Course:
    folder = openb.folder()
    if folder is None:
        pytest.skip("the openb traces are not here: name their folder in $RATION_TRACES")
    trace = openb.load(folder, name)
    arriving = openb.arrivals(trace, SEED)
    judge = ranking.parse_policies(",".join(policies.DEFAULT), ours.usual(trace))
    used = {
        "ours": ours.replay(trace, arriving, judge).used,
        "FGD": beside.fgd(trace, arriving),
    }
    result = beside.Course(trace, arriving, used)
    print(
        name, {name: (round(result.full(name), 2), round(result.asked(name), 2)) for name in used}
    )
    return result


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", openb.TRACES)
def test_an_overloaded_fleet_is_used_no_less_than_with_fgd(
    name: str,
) -> None:
    result = course(name)
    assert result.full("ours") >= result.full("FGD") + MORE.get(name, 0.0)


@pytest.mark.timeout(600)
def test_placement_is_not_worse_than_fgd_when_pods_name_a_model() -> None:
    result = course("gpuspec33")
    assert result.asked("ours") >= result.asked("FGD")
