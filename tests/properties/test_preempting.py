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
    previous, mark = drawing.shown(view), view.revision
    plan = planning.make_plan(world.ask, world.right, world.book, step_budget.StepBudget(most))
    assert (drawing.shown(view), view.revision) == (previous, mark)
    best = ruled.least(world)
    if isinstance(plan, preemption_types.NoPlan):
        assert best is None or plan.reason is preemption_types.NoPlanReason.BUDGET_EXCEEDED
        assert most < ENOUGH or best is None
        return "no plan"
    parties = [victim.victim.pods for victim in plan.victims]
    assert ruled.is_legal(world, parties)
    assert ruled.does(world, parties)
    for party in parties:
        assert not ruled.does(world, [other for other in parties if other is not party])
    assert plan.cost == ruled.cost(world, parties)
    assert best is not None
    assert plan.cost == best or not plan.is_optimal
    assert plan.is_optimal or most < ENOUGH
    names = [seat.workload.pod.name for seat in plan.members]
    assert names == [member.pod.name for member in world.members]
    return f"{len(parties)} leave"


@pytest.mark.parametrize("block", range(7))
def test_a_plan_for_a_pod_is_the_cheapest_that_the_law_allows(block: int) -> None:
    checks = Counter(check(ruled.world(block * BLOCK + index)) for index in range(BLOCK))
    assert checks["1 leave"] + checks["2 leave"] >= BLOCK / 5, checks


@pytest.mark.parametrize("block", range(3))
def test_a_plan_for_a_gang_is_the_cheapest_that_the_law_allows(block: int) -> None:
    checks = Counter(check(ruled.world(block * BLOCK + index, gang=True)) for index in range(BLOCK))
    assert checks["1 leave"] + checks["2 leave"] >= BLOCK / 5, checks


@settings(max_examples=50)
@given(ruled.ruled())
def test_the_preemption_invariants_hold_for_any_request(world: ruled.World) -> None:
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
            answer = preemption_types.PreemptionRequest(view, members, snapshots.DECIDING)
            fresh = replace(world, members=members)
            mine = planner.plan(answer, world.right, book, step_budget.StepBudget(ENOUGH))
            anew = replace(answer, view=fresh.view)
            new = planning.make_plan(anew, world.right, fresh.book, step_budget.StepBudget(ENOUGH))
            assert told(mine) == told(new)
        keys = sorted(world.there.known)
        if keys:
            key = keys[number % len(keys)]
            del world.there.known[key]
            view.set_pod(key, None)
            book.set_pod(key, None)


def told(result: preemption_types.Plan | preemption_types.NoPlan) -> object:
    """All of an answer but which objects it is made of."""
    if isinstance(result, preemption_types.NoPlan):
        return result.reason, dict(result.ineligible), result.victim_count
    location = [(member.placement.node, member.placement.assignments) for member in result.members]
    return result.pods, result.cost, result.is_optimal, location


@settings(max_examples=100)
@given(st.integers(0, 1 << 30), st.sampled_from(["pod", "gang"]), st.integers(0, 6))
def test_devices_reserved_for_the_head_of_line_are_free_soonest(
    seed: int, kind: str, odd: int
) -> None:
    """Held against looking at every moment at which a pod ends."""
    world = ruled.world(seed, gang=kind == "gang")
    for index, (key, pod) in enumerate(sorted(world.there.known.items())):
        most = None if index == odd else 600.0 * (1 + (seed >> index) % 13)
        world.there.known[key] = replace(pod, max_runtime_s=most)
    units = world.book.all_victims(world.view).values()
    people = [pod for unit in units for pod in unit.pods]
    planned_start = earliest_start.find_earliest_start(
        world.ask, people, ruled.NOW, step_budget.StepBudget(ENOUGH)
    )
    mine = [person for person in people if not ruled.stays(person.pod)]
    ends = {
        device_holder.key: earliest_start.latest_end(device_holder.pod, ruled.NOW)
        for device_holder in mine
    }
    moments = sorted({ruled.NOW, *(end for end in ends.values() if end is not None)})
    first = next(
        (moment for moment in moments if ruled.does(world, gone_by(mine, ends, moment))), None
    )
    if first is None:
        assert planned_start is None or planned_start.start is None
        assert (planned_start is not None) == ruled.does(world, [mine])
        return
    assert planned_start is not None
    assert planned_start.start == first
    assert not planned_start.waits_for


def gone_by(
    people: list[holders.DeviceHolder],
    ends: dict[ids.Key, dt.datetime | None],
    moment: dt.datetime,
) -> list[list[holders.DeviceHolder]]:
    """Return who has ended then."""
    return [
        [person for person in people if (end := ends[person.key]) is not None and end <= moment]
    ]
