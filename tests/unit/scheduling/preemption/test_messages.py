from driver.scheduling.preemption import messages as preemption_messages
from driver.scheduling.preemption import policy as preemption_policy
from driver.scheduling.preemption import types as preemption_types
from tests.support.builders import gangs
from tests.support.scenarios import occupied_nodes, preemptions


def planned(result: preemption_types.Plan | preemption_types.NoPlan) -> preemption_types.Plan:
    assert isinstance(result, preemption_types.Plan)
    return result


def test_the_preemptor_is_told_the_victims_and_the_lost_work() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.leaves = {"batch": preemption_policy.QueueState("batch", reclaim="Any", surplus=4000)}
    for index, name in enumerate("pq"):
        scene.work(name, "node-a", f"gpu-{index}", ran=2700, labels={"queue": "batch"})
    right = scene.right(0, "vision", is_within_fair_share=True)
    plan = planned(scene.plan(occupied_nodes.gpus(2), right=right))
    assert preemption_messages.preemptor_message(plan, right) == (
        "Evicts 2 pods of queue batch on node-a, 1.5 GPU-hours lost: default/p, default/q"
    )
    assert preemption_messages.victim_message(plan, plan.victims[0], right, "pod default/new") == (
        "Evicted for pod default/new (queue batch has 4 GPUs more than its fair share), which "
        "needs gpu-0 on node-a"
    )


def test_without_queues_the_priority_is_told() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0", ran=36)
    right = scene.right(1000)
    plan = planned(scene.plan(occupied_nodes.gpus(), right=right))
    assert preemption_messages.preemptor_message(plan, right) == (
        "Evicts 1 pod on node-a, 0.0 GPU-hours lost: default/p"
    )
    assert preemption_messages.victim_message(plan, plan.victims[0], right, "pod default/new") == (
        "Evicted for pod default/new (priority 1000 > 0), which needs gpu-0 on node-a"
    )


def test_a_message_names_all_nodes_of_an_evicted_gang_and_its_first_pods() -> None:
    scene = preemptions.of_sizes(a=3, b=3)
    for index in range(6):
        scene.work(f"g-{index}", f"node-{'ab'[index // 3]}", f"gpu-{index % 3}", gang="g")
    right = scene.right(1)
    plan = planned(scene.plan(*gangs.alike(2, 3), right=right))
    assert preemption_messages.preemptor_message(plan, right) == (
        "Evicts 6 pods on node-a, node-b, 6.0 GPU-hours lost: "
        "default/g-0, default/g-1, default/g-2, default/g-3, 2 more"
    )
    assert preemption_messages.victim_message(plan, plan.victims[0], right, "gang default/w") == (
        "Evicted with all of gang default/g (6 pods) for gang default/w (priority 1 > 0), which "
        "needs gpu-0, gpu-1, gpu-2 on node-a; gpu-0, gpu-1, gpu-2 on node-b"
    )


def test_why_nobody_goes() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.work("p", "node-a", "gpu-0", priority=10)
    scene.work("q", "node-a", "gpu-1", owner=None)
    no_plan = preemptions.none(scene.plan(occupied_nodes.gpus()))
    assert preemption_messages.no_plan_message(no_plan) == (
        "Evicting all who may go would not make room for it: of 2 pods and gangs "
        "1 NotMadeAgain, 1 PriorityNotLower"
    )
    never = preemption_types.NoPlan(preemption_types.NoPlanReason.NEVER)
    assert (
        preemption_messages.no_plan_message(never)
        == "Nobody is evicted for it: its preemptionPolicy is Never"
    )
    assert preemption_messages.no_plan_message(
        preemption_types.NoPlan(preemption_types.NoPlanReason.BUDGET_EXCEEDED)
    ).startswith("Whom to evict")
