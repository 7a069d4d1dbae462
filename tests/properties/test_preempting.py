"""Tests of who goes for whom: held against trying every set of pods on small clusters."""

import datetime as dt
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids
from driver.scheduling.explain import holders, step_budget
from driver.scheduling.preemption import earliest_start
from driver.scheduling.preemption import planner as planning
from driver.scheduling.preemption import types as preemption_types
from tests.properties import drawing, ruled
from tests.support import snapshots

ENOUGH = 10_000_000
BLOCK = 50


def check(world: ruled.World, most: int = ENOUGH) -> str:
    """Return what came of it."""
    view = world.view
    before, mark = drawing.shown(view), view.revision
    found = planning.make_plan(world.ask, world.right, world.book, step_budget.StepBudget(most))
    assert (drawing.shown(view), view.revision) == (before, mark)
    best = ruled.least(world)
    if isinstance(found, preemption_types.NoPlan):
        assert best is None or found.reason is preemption_types.NoPlanReason.BUDGET_EXCEEDED
        assert most < ENOUGH or best is None
        return "no plan"
    parties = [one.victim.pods for one in found.victims]
    assert ruled.is_legal(world, parties)
    assert ruled.does(world, parties)
    for one in parties:
        assert not ruled.does(world, [other for other in parties if other is not one])
    assert found.cost == ruled.cost(world, parties)
    assert best is not None
    assert found.cost == best or not found.is_optimal
    assert found.is_optimal or most < ENOUGH
    names = [seat.workload.pod.name for seat in found.members]
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


@settings(max_examples=50)
@given(ruled.ruled())
def test_so_it_is_with_whatever_can_be_asked(world: ruled.World) -> None:
    check(world)


@settings(max_examples=50)
@given(st.integers(0, 1 << 30), st.sampled_from(["pod", "gang"]), st.integers(1, 2000))
def test_whenever_the_steps_end_a_plan_is_lawful_and_does(
    seed: int,
    kind: str,
    most: int,
) -> None:
    check(ruled.world(seed, gang=kind == "gang"), most)


@settings(max_examples=40)
@given(st.integers(0, 1 << 30), st.lists(st.integers(0, 12), min_size=1, max_size=3))
def test_a_planner_that_remembers_plans_as_a_new_one(seed: int, ended: list[int]) -> None:
    """Pods end, one by one, and between them it is asked for a pod and for a gang."""
    world = ruled.world(seed, gang=True)
    view, book = world.view, world.book
    planner = planning.Planner(snapshots.DECIDING)
    for number in [*ended, 0]:
        for members in ([world.there.asked], world.members):
            ask = preemption_types.PreemptionRequest(view, members, snapshots.DECIDING)
            fresh = replace(world, members=members)
            mine = planner.plan(ask, world.right, book, step_budget.StepBudget(ENOUGH))
            anew = replace(ask, view=fresh.view)
            new = planning.make_plan(anew, world.right, fresh.book, step_budget.StepBudget(ENOUGH))
            assert told(mine) == told(new)
        keys = sorted(world.there.known)
        if keys:
            key = keys[number % len(keys)]
            del world.there.known[key]
            view.set_pod(key, None)
            book.set_pod(key, None)


def told(found: preemption_types.Plan | preemption_types.NoPlan) -> object:
    """All of an answer but which objects it is made of."""
    if isinstance(found, preemption_types.NoPlan):
        return found.reason, dict(found.ineligible), found.victim_count
    where = [(one.placement.node, one.placement.assignments) for one in found.members]
    return found.pods, found.cost, found.is_optimal, where


@settings(max_examples=100)
@given(st.integers(0, 1 << 30), st.sampled_from(["pod", "gang"]), st.integers(0, 6))
def test_what_is_kept_for_who_waits_is_free_soonest(seed: int, kind: str, odd: int) -> None:
    """Held against looking at every moment at which a pod ends."""
    world = ruled.world(seed, gang=kind == "gang")
    for at, (key, pod) in enumerate(sorted(world.there.known.items())):
        most = None if at == odd else 600.0 * (1 + (seed >> at) % 13)
        world.there.known[key] = replace(pod, max_runtime_s=most)
    units = world.book.all_victims(world.view).values()
    people = [one for unit in units for one in unit.pods]
    found = earliest_start.find_earliest_start(
        world.ask, people, ruled.NOW, step_budget.StepBudget(ENOUGH)
    )
    mine = [one for one in people if not ruled.stays(one.pod)]
    ends = {one.key: earliest_start.latest_end(one.pod, ruled.NOW) for one in mine}
    moments = sorted({ruled.NOW, *(one for one in ends.values() if one is not None)})
    first = next((one for one in moments if ruled.does(world, gone_by(mine, ends, one))), None)
    if first is None:
        assert found is None or found.start is None
        assert (found is not None) == ruled.does(world, [mine])
        return
    assert found is not None
    assert found.start == first
    assert not found.waits_for


def gone_by(
    people: list[holders.DeviceHolder],
    ends: dict[ids.Key, dt.datetime | None],
    moment: dt.datetime,
) -> list[list[holders.DeviceHolder]]:
    """Return who has ended then."""
    return [[one for one in people if (end := ends[one.key]) is not None and end <= moment]]
