"""Who goes for whom: held against trying every set of pods on small clusters."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.controller.allocation.whatif import asking
from driver.controller.preempting import plan as planning
from driver.controller.preempting import wanted
from tests.properties import drawing, ruled

ENOUGH = 10_000_000
BLOCK = 50


def check(world: ruled.World, most: int = ENOUGH) -> str:
    """What came of it."""
    view = world.view
    before, mark = drawing.shown(view), view.mark
    found = planning.plan(world.ask, world.right, world.book, asking.Meter(most))
    assert (drawing.shown(view), view.mark) == (before, mark)
    best = ruled.least(world)
    if isinstance(found, wanted.NoPlan):
        assert best is None or found.why is wanted.Why.SPENT
        assert most < ENOUGH or best is None
        return "no plan"
    parties = [one.unit.people for one in found.leaving]
    assert ruled.is_legal(world, parties)
    assert ruled.does(world, parties)
    for one in parties:
        assert not ruled.does(world, [other for other in parties if other is not one])
    assert found.cost == ruled.cost(world, parties)
    assert best is not None
    assert found.cost == best or not found.least
    assert found.least or most < ENOUGH
    names = [seat.workload.pod.name for seat in found.seats]
    assert names == [one.pod.name for one in world.members]
    return f"{len(parties)} leave"


@pytest.mark.parametrize("block", range(7))
def test_a_plan_for_a_pod_is_the_cheapest_that_the_law_allows(block: int) -> None:
    found = Counter(check(ruled.world(block * BLOCK + at)) for at in range(BLOCK))
    assert found["1 leave"] + found["2 leave"] >= BLOCK / 5, found


@pytest.mark.parametrize("block", range(3))
def test_a_plan_for_a_gang_is_the_cheapest_that_the_law_allows(block: int) -> None:
    found = Counter(check(ruled.world(block * BLOCK + at, gang=True)) for at in range(BLOCK))
    assert found["1 leave"] + found["2 leave"] >= BLOCK / 5, found


@settings(max_examples=50, deadline=None)
@given(ruled.ruled())
def test_so_it_is_with_whatever_can_be_asked(world: ruled.World) -> None:
    check(world)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from(["pod", "gang"]), st.integers(1, 2000))
def test_whenever_the_steps_end_a_plan_is_lawful_and_does(
    seed: int,
    kind: str,
    most: int,
) -> None:
    check(ruled.world(seed, gang=kind == "gang"), most)
