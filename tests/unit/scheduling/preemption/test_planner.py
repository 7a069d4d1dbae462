from dataclasses import replace

from driver import ids
from driver.reasons import Reason
from driver.resources import disruption_budgets
from driver.resources.core import node_selectors
from driver.scheduling.gangs import topology
from driver.scheduling.preemption import planner as planning
from driver.scheduling.preemption import types as preemption_types
from tests.support import snapshots
from tests.support.builders import gangs, objects
from tests.support.scenarios import occupied_nodes, preemptions


def test_a_fitting_workload_needs_no_victim() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.work("p", "node-a", "gpu-0")
    plan = scene.plan(occupied_nodes.gpus())
    assert preemptions.leaving(plan) == []
    assert preemptions.where(plan) == ["node-a"]


def test_the_victim_with_the_least_run_time_is_chosen() -> None:
    scene = preemptions.of_sizes(a=1, b=1, c=1)
    for name, ran in (("a", 300), ("b", 100), ("c", 200)):
        scene.work(name, f"node-{name}", "gpu-0", ran=ran)
    plan = scene.plan(occupied_nodes.gpus())
    assert preemptions.leaving(plan) == ["b"]
    assert preemptions.where(plan) == ["node-b"]
    assert isinstance(plan, preemption_types.Plan)
    assert (plan.lost_s, plan.is_optimal) == (100.0, True)


def test_two_that_lose_less_go_rather_than_one() -> None:
    scene = preemptions.of_sizes(a=2, b=2)
    scene.work("wide", "node-a", "gpu-0", "gpu-1", ran=100)
    scene.work("p", "node-b", "gpu-0", ran=50)
    scene.work("q", "node-b", "gpu-1", ran=60)
    assert preemptions.leaving(scene.plan(occupied_nodes.gpus(2))) == ["p", "q"]


def test_equal_losses_prefer_fewer_victims_then_the_first_by_name() -> None:
    scene = preemptions.of_sizes(a=2, b=2)
    scene.work("p", "node-a", "gpu-0", ran=50)
    scene.work("q", "node-a", "gpu-1", ran=50)
    scene.work("wide", "node-b", "gpu-0", "gpu-1", ran=50)
    assert preemptions.leaving(scene.plan(occupied_nodes.gpus(2))) == ["wide"]
    assert preemptions.leaving(scene.plan(occupied_nodes.gpus(1))) == ["p"]


def test_a_gang_goes_as_a_whole_and_costs_all_of_itself() -> None:
    scene = preemptions.of_sizes(a=1, b=1, c=1)
    scene.work("g-0", "node-a", "gpu-0", ran=60, gang="g")
    scene.work("g-1", "node-b", "gpu-0", ran=60, gang="g")
    scene.work("p", "node-c", "gpu-0", ran=100)
    assert preemptions.leaving(scene.plan(occupied_nodes.gpus())) == ["p"]
    scene.work("p", "node-c", "gpu-0", ran=200)
    assert preemptions.leaving(scene.plan(occupied_nodes.gpus())) == ["g-0", "g-1"]


def test_a_gang_gets_all_nodes_of_an_evicted_gang() -> None:
    scene = preemptions.of_sizes(a=1, b=1, c=1)
    scene.work("g-0", "node-a", "gpu-0", ran=60, gang="g")
    scene.work("g-1", "node-b", "gpu-0", ran=60, gang="g")
    scene.work("p", "node-c", "gpu-0", ran=100)
    plan = scene.plan(*gangs.alike(2))
    assert preemptions.leaving(plan) == ["g-0", "g-1"]
    assert sorted(preemptions.where(plan)) == ["node-a", "node-b"]


def test_a_waiting_gang_gets_all_or_nobody_goes() -> None:
    scene = preemptions.of_sizes(a=2, b=1)
    scene.work("p", "node-a", "gpu-0", ran=10)
    scene.work("q", "node-a", "gpu-1", ran=20)
    scene.work("r", "node-b", "gpu-0", ran=30)
    assert preemptions.leaving(scene.plan(*gangs.alike(2))) == ["p", "q"]
    assert preemptions.leaving(scene.plan(*gangs.alike(3))) == ["p", "q", "r"]
    assert (
        preemptions.none(scene.plan(*gangs.alike(4))).reason
        is preemption_types.NoPlanReason.NOT_HELPFUL
    )


def test_a_gang_is_made_room_for_where_it_has_to_be() -> None:
    scene = preemptions.Scene()
    sizes = {"node-0": "r0", "node-1": "r0", "node-2": "r1", "node-3": "r1"}
    for name, rack in sizes.items():
        scene.node(name, objects.a_slice(name, 1))
        node = gangs.node(name, "b", rack)
        scene.view.set_node(node.name, node)
    for index, ran in enumerate((10, 90, 40, 50)):
        scene.work(f"p-{index}", f"node-{index}", "gpu-0", ran=ran)
    near = topology.Topology(gangs.LEVELS, required=gangs.RACK)
    answer = preemption_types.PreemptionRequest(
        scene.view, gangs.alike(2), snapshots.DECIDING, near
    )
    plan = planning.make_plan(answer, scene.right(), scene.book)
    assert preemptions.leaving(plan) == ["p-2", "p-3"]


def test_no_more_than_a_disruption_budget_allows_go() -> None:
    scene = preemptions.of_sizes(a=2, b=2)
    for name, ran in (("p", 10), ("q", 20)):
        scene.work(name, "node-a", f"gpu-{'pq'.index(name)}", ran=ran, labels={"app": "a"})
    for name, ran in (("r", 100), ("s", 200)):
        scene.work(name, "node-b", f"gpu-{'rs'.index(name)}", ran=ran)
    app = (node_selectors.Expression("app", "In", ("a",)),)
    scene.disruptions = [disruption_budgets.Budget("default", "web", app, 1)]
    assert preemptions.leaving(scene.plan(occupied_nodes.gpus(2))) == ["r", "s"]
    assert preemptions.leaving(scene.plan(*gangs.alike(2))) == ["p", "r"]
    assert preemptions.leaving(scene.plan(*gangs.alike(3))) == ["p", "r", "s"]
    assert (
        preemptions.none(scene.plan(*gangs.alike(4))).reason
        is preemption_types.NoPlanReason.NOT_HELPFUL
    )


def test_why_there_is_none_is_told_in_counts() -> None:
    scene = preemptions.of_sizes(a=3)
    scene.work("p", "node-a", "gpu-0", priority=10)
    scene.work("q", "node-a", "gpu-1", owner=None)
    scene.work("r", "node-a", "gpu-2", owner=None)
    no_plan = preemptions.none(scene.plan(occupied_nodes.gpus()))
    assert (no_plan.reason, no_plan.victim_count) == (preemption_types.NoPlanReason.NOT_HELPFUL, 3)
    assert no_plan.ineligible == {Reason.NOT_MADE_AGAIN: 2, Reason.PRIORITY_NOT_LOWER: 1}


def test_a_non_preempting_pod_has_no_victims() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0")
    right = scene.right(preempts=False)
    assert (
        preemptions.none(scene.plan(occupied_nodes.gpus(), right=right)).reason
        is preemption_types.NoPlanReason.NEVER
    )
    assert (
        preemptions.none(scene.plan(*gangs.alike(1), right=right)).reason
        is preemption_types.NoPlanReason.NEVER
    )


def test_a_share_goes_for_a_whole_gpu_with_all_that_are_on_it() -> None:
    scene = preemptions.Scene()
    face = objects.drawing("gpu-0", "gpu-0", slots="4")
    share = objects.a_share_device("gpu-0-mps", "mps")
    share["consumesCounters"] = face["consumesCounters"]
    published = objects.counting({"gpu-0": {"slots": "4"}}, [face, share])
    scene.node("node-a", *published)
    scene.work("p", "node-a", objects.a_share("gpu-0-mps", 1, memory="20Gi"), ran=100)
    scene.work("q", "node-a", objects.a_share("gpu-0-mps", 2, memory="40Gi"), ran=100)
    plan = scene.plan(occupied_nodes.gpus())
    assert preemptions.leaving(plan) == ["p", "q"]
    assert isinstance(plan, preemption_types.Plan)
    assert plan.lost_s == 75.0


def test_a_node_that_is_to_be_avoided_is() -> None:
    scene = preemptions.of_sizes(a=1, b=1)
    scene.work("p", "node-a", "gpu-0", ran=10)
    scene.work("q", "node-b", "gpu-0", ran=20)
    node = scene.view.nodes[ids.NodeName("node-a")].name
    workload = replace(occupied_nodes.gpus(), avoided_nodes={node: "refused there"})
    assert preemptions.leaving(scene.plan(workload)) == ["q"]


def test_when_the_steps_end_that_is_told() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0")
    assert (
        preemptions.none(scene.plan(occupied_nodes.gpus(), most=0)).reason
        is preemption_types.NoPlanReason.BUDGET_EXCEEDED
    )


def test_a_view_is_left_as_it_is() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.work("p", "node-a", "gpu-0")
    scene.work("q", "node-a", "gpu-1")
    mark, used = scene.view.revision, dict(scene.view.usage)
    for members in ([occupied_nodes.gpus()], gangs.alike(2)):
        assert preemptions.leaving(scene.plan(*members))
    assert (scene.view.revision, dict(scene.view.usage)) == (mark, used)
