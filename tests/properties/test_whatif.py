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
    workload_query = step_budget.workload_query(view, world.asked, snapshots.DECIDING)
    if workload_query is None:
        return None
    return victim_search.Search(
        view, workload_query, explain_cost.FewestPods(view), step_budget.StepBudget(most)
    )


@settings(max_examples=150)
@given(populated.populated())
def test_the_sets_of_pods_that_would_do_are_those_that_trying_all_finds(
    world: populated.World,
) -> None:
    view = world.view
    previous, mark = drawing.shown(view), view.revision
    for node in view.nodes.values():
        looked = search(world, view)
        assert looked is not None
        device_holders = world.people(view).node_holders(node.name)
        results = [
            (victim_set_.cost, victim_set_.victims)
            for victim_set_ in victim_search.victim_sets(looked, node, device_holders)
        ]
        assert results == populated.every_way(world, node, device_holders)
    assert (drawing.shown(view), view.revision) == (previous, mark)


@settings(max_examples=100)
@given(populated.populated(), st.integers(1, 400))
def test_whenever_the_steps_end_what_is_told_does(world: populated.World, most: int) -> None:
    view = world.view
    for node in view.nodes.values():
        looked = search(world, view, most)
        assert looked is not None
        device_holders = world.people(view).node_holders(node.name)
        every = populated.every_way(world, node, device_holders)
        for index, victim_set_ in enumerate(
            victim_search.victim_sets(looked, node, device_holders)
        ):
            assert populated.fits(world.without(victim_set_.victims), world.asked, node)
            assert (
                not victim_set_.is_optimal
                or (victim_set_.cost, victim_set_.victims) == every[index]
            )


@settings(max_examples=150)
@given(populated.populated(), st.data())
def test_a_view_without_pods_is_the_picture_without_them(
    world: populated.World, data: st.DataObject
) -> None:
    view = world.view
    previous = drawing.shown(view)
    everyone = {
        node_holder.key: node_holder
        for name in view.nodes
        for node_holder in world.people(view).node_holders(name)
    }
    gone = data.draw(st.sets(st.sampled_from([*everyone]))) if everyone else set()
    leaving = [everyone[key] for key in sorted(gone)]
    without = world.without(leaving)
    pods = without_pods.WithoutPods(view, leaving)
    assert drawing.shown(pods) == drawing.shown(without)
    assert all(pods.pods_on(name) == without.pods_on(name) for name in view.nodes)
    assert drawing.shown(view) == previous


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
def test_the_reported_nearest_fit_is_true(world: populated.World, most: int) -> None:
    view = world.view
    answer = dra_allocator.allocate(view, world.asked, snapshots.DECIDING)
    if isinstance(answer, allocator_types.Placement):
        return
    people = world.people(view)
    fit = nearest_fit.find_nearest_fit(
        view, world.asked, answer, people, snapshots.DECIDING, step_budget.StepBudget(most)
    )
    if fit is None:
        return
    bare = drawing.fresh(world.published)
    if fit.can_ever_fit is False:
        assert not any(populated.fits(bare, world.asked, node) for node in bare.nodes.values())
    if fit.leaving:
        leaving = [
            node_holder
            for node_holder in people.node_holders(fit.node)
            if node_holder.key in fit.leaving
        ]
        assert populated.fits(world.without(leaving), world.asked, view.nodes[fit.node])
    if fit.leaving and fit.is_optimal:
        every = [
            cost
            for node in view.nodes.values()
            for cost, _ in populated.every_way(world, node, people.node_holders(node.name))
        ]
        assert explain_cost.FewestPods(view).cost(leaving) == min(every)
