"""Tests of which pods would have to go: held against trying every set of pods on small clusters."""

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import settings as deciding
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import cost as explain_cost
from driver.scheduling.explain import nearest_fit, step_budget, victim_search, without_pods
from driver.scheduling.snapshot import cluster_state
from tests.properties import drawing, populated
from tests.support import snapshots

ENOUGH = 1_000_000
NO_RULES = deciding.NoRules()


def search(
    world: populated.World, view: cluster_state.ClusterState, most: int = ENOUGH
) -> victim_search.Search | None:
    asked = step_budget.workload_query(view, world.asked, snapshots.DECIDING)
    if asked is None:
        return None
    return victim_search.Search(
        view, asked, explain_cost.FewestPods(view), step_budget.StepBudget(most)
    )


@settings(max_examples=150)
@given(populated.populated())
def test_the_sets_of_pods_that_would_do_are_those_that_trying_all_finds(
    world: populated.World,
) -> None:
    view = world.view
    before, mark = drawing.shown(view), view.revision
    for node in view.nodes.values():
        looked = search(world, view)
        assert looked is not None
        there = world.people(view).node_holders(node.name)
        found = [(one.cost, one.victims) for one in victim_search.victim_sets(looked, node, there)]
        assert found == populated.every_way(world, node, there)
    assert (drawing.shown(view), view.revision) == (before, mark)


@settings(max_examples=100)
@given(populated.populated(), st.integers(1, 400))
def test_whenever_the_steps_end_what_is_told_does(world: populated.World, most: int) -> None:
    view = world.view
    for node in view.nodes.values():
        looked = search(world, view, most)
        assert looked is not None
        there = world.people(view).node_holders(node.name)
        every = populated.every_way(world, node, there)
        for at, one in enumerate(victim_search.victim_sets(looked, node, there)):
            assert populated.fits(world.without(one.victims), world.asked, node)
            assert not one.is_optimal or (one.cost, one.victims) == every[at]


@settings(max_examples=150)
@given(populated.populated(), st.data())
def test_a_view_without_pods_is_the_picture_without_them(
    world: populated.World, data: st.DataObject
) -> None:
    view = world.view
    before = drawing.shown(view)
    everyone = {
        one.key: one for name in view.nodes for one in world.people(view).node_holders(name)
    }
    gone = data.draw(st.sets(st.sampled_from([*everyone]))) if everyone else set()
    leaving = [everyone[key] for key in sorted(gone)]
    without = world.without(leaving)
    found = without_pods.WithoutPods(view, leaving)
    assert drawing.shown(found) == drawing.shown(without)
    assert all(found.pods_on(name) == without.pods_on(name) for name in view.nodes)
    assert drawing.shown(view) == before


@settings(max_examples=50)
@given(populated.populated())
def test_a_bare_view_is_the_picture_of_a_cluster_in_which_nothing_runs(
    world: populated.World,
) -> None:
    assert drawing.shown(without_pods.EmptyClusterView(world.view)) == drawing.shown(
        drawing.fresh(world.published)
    )


@settings(max_examples=75)
@given(populated.populated(), st.sampled_from([60, 1000, 100_000]))
def test_what_is_told_of_the_nearest_fit_is_true(world: populated.World, most: int) -> None:
    view = world.view
    answer = dra_allocator.allocate(view, world.asked, snapshots.DECIDING)
    if isinstance(answer, allocator_types.Placement):
        return
    people = world.people(view)
    found = nearest_fit.find_nearest_fit(
        view, world.asked, answer, people, snapshots.DECIDING, step_budget.StepBudget(most)
    )
    if found is None:
        return
    bare = drawing.fresh(world.published)
    if found.can_ever_fit is False:
        assert not any(populated.fits(bare, world.asked, node) for node in bare.nodes.values())
    if found.leaving:
        leaving = [one for one in people.node_holders(found.node) if one.key in found.leaving]
        assert populated.fits(world.without(leaving), world.asked, view.nodes[found.node])
    if found.leaving and found.is_optimal:
        every = [
            cost
            for node in view.nodes.values()
            for cost, _ in populated.every_way(world, node, people.node_holders(node.name))
        ]
        assert explain_cost.FewestPods(view).cost(leaving) == min(every)
