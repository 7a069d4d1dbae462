"""Tests of which nodes are asked for."""

import dataclasses

from driver import ids
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import planner
from driver.scheduling.queues import resources as queue_resources
from tests.support import snapshots
from tests.support.builders import gangs, objects, shapes


def flying(*results: tuple[str, object]) -> dict:  # type: ignore[type-arg]
    return {ids.NodeName(name): entry for name, entry in results}


def test_a_pod_that_finds_no_gpu_brings_one_node() -> None:
    assert shapes.asked(shapes.plan(shapes.alone())) == ["h100-8"]


def test_nothing_that_waits_brings_nothing() -> None:
    assert shapes.plan() == planner.Plan()


def test_workloads_that_share_a_node_request_one() -> None:
    plan = shapes.plan(*(shapes.alone(f"train-{index}") for index in range(8)))
    assert shapes.asked(plan) == ["h100-8"]
    assert len(plan.requests[0].pods) == 8


def test_a_gang_of_sixteen_gpus_brings_exactly_two_nodes_of_eight() -> None:
    plan = shapes.plan(shapes.alike("llm", 2))
    assert shapes.asked(plan) == ["h100-8", "h100-8"]
    assert {request.demand for request in plan.requests} == {"gang/default/llm"}
    assert len({request.name for request in plan.requests}) == 2


def test_in_flight_nodes_are_not_requested_again() -> None:
    wish = shapes.alike("llm", 2)
    first = shapes.plan(wish)
    present = flying(*((request.name, request.template) for request in first.requests))
    assert shapes.plan(wish, in_flight=present).requests == ()


def test_only_the_missing_nodes_are_requested() -> None:
    wish = shapes.alike("llm", 3)
    present = flying((shapes.plan(wish).requests[0].name, shapes.EIGHT))
    plan = shapes.plan(wish, in_flight=present)
    assert len(plan.requests) == 2
    assert not {request.name for request in plan.requests} & {*present}


def test_a_node_without_workloads_is_not_needed() -> None:
    present = flying(("a", shapes.EIGHT), ("b", shapes.EIGHT))
    assert len(shapes.plan(shapes.alone(), in_flight=present).unneeded) == 1


def test_part_of_a_gang_goes_where_there_is_room() -> None:
    view = snapshots.view(objects.a_slice("node-a", 8))
    plan = shapes.plan(shapes.alike("llm", 2), on=view)
    assert shapes.asked(plan) == ["h100-8"]


def test_many_small_pods_bring_the_node_that_costs_least_for_each_gpu() -> None:
    pods = [shapes.alone(f"train-{index}") for index in range(8)]
    assert shapes.asked(shapes.plan(*pods, shapes=(shapes.EIGHT, shapes.ONE))) == ["h100-8"]


def test_a_small_pod_requests_a_small_node() -> None:
    plan = shapes.plan(shapes.alone(), shapes=(shapes.EIGHT, shapes.ONE))
    assert shapes.asked(plan) == ["h100-1"]


def test_the_last_node_is_no_larger_than_it_has_to_be() -> None:
    plan = shapes.plan(shapes.alike("llm", 3, 4), shapes=(shapes.EIGHT, shapes.FOUR, shapes.ONE))
    assert shapes.asked(plan) == ["h100-4", "h100-8"]


def test_members_that_differ_bring_a_node_for_each_kind() -> None:
    other = shapes.a_shape("cpu-rich", 1, product="NVIDIA L4", cost=1)
    on_l4 = gangs.member("head", 1, nodeSelector={shapes.INSTANCE: "cpu-rich"})
    on_h100 = gangs.member("worker", 8, nodeSelector={shapes.INSTANCE: "h100-8"})
    plan = shapes.plan(shapes.gang("mixed", on_l4, on_h100), shapes=(shapes.EIGHT, other))
    assert shapes.asked(plan) == ["cpu-rich", "h100-8"]


def test_an_infeasible_workload_requests_nothing_and_names_each_shape() -> None:
    plan = shapes.plan(shapes.alone(gpus=16), shapes=(shapes.EIGHT, shapes.ONE))
    assert plan.requests == ()
    message = plan.impossible["pod/default/train"]
    assert "h100-8: 8 of 16 devices fit" in message
    assert "h100-1: 1 of 16 devices fit" in message


def test_a_missing_shape_label_is_named() -> None:
    plan = shapes.plan(shapes.alone(nodeSelector={"example.com/disk": "nvme"}))
    assert "nodeSelector example.com/disk=nvme" in plan.impossible["pod/default/train"]


def test_a_taint_of_a_shape_keeps_out_who_does_not_tolerate_it() -> None:
    tainted = shapes.a_shape(taints=[{"key": "gpu", "effect": "NoSchedule"}])
    plan = shapes.plan(shapes.alone(), shapes=(tainted,))
    assert "taint gpu=" in plan.impossible["pod/default/train"]


def test_no_more_nodes_are_on_their_way_than_may_be() -> None:
    plan = shapes.plan(*(shapes.alone(f"train-{index}", 8) for index in range(5)), most=3)
    assert len(plan.requests) == 3
    assert "as many nodes as may be" in plan.deferred["pod/default/train-4"]


def test_a_gang_for_which_there_is_not_room_now_waits_whole() -> None:
    plan = shapes.plan(shapes.alike("llm", 4), in_flight=flying(("a", shapes.ONE)), most=4)
    assert plan.requests == ()
    assert "h100-8" in plan.deferred["gang/default/llm"]


def test_a_shape_that_rests_is_not_asked_and_another_is() -> None:
    resting = {"h100-1": "none of it came"}
    kinds = (shapes.ONE, shapes.EIGHT)
    assert shapes.asked(shapes.plan(shapes.alone(), shapes=kinds, paused=resting)) == ["h100-8"]


def test_shapes_in_backoff_report_the_reason() -> None:
    plan = shapes.plan(shapes.alone(), paused={"h100-8": "none of it came"})
    assert plan.deferred == {"pod/default/train": "h100-8: none of it came"}


def test_a_reservation_is_asked_for_as_late_as_its_nodes_take_to_come() -> None:
    wish = dataclasses.replace(shapes.alone(), lead_s=3600.0)
    assert shapes.plan(wish).requests == ()
    assert len(shapes.plan(dataclasses.replace(wish, lead_s=600.0)).requests) == 1


class Two:
    """A queue that may have two GPUs."""

    def __init__(self) -> None:
        self.has = 0

    def reset(self) -> None:
        self.has = 0

    def reserve(self, leaf: str, taken: queue_resources.Amounts) -> str:
        if leaf == "small" and self.has + taken.gpus > 2000:
            return "queue small is at its limit"
        self.has += taken.gpus if leaf == "small" else 0
        return ""


def limited(*node_demands: provisioning_demand.NodeDemand) -> planner.Plan:
    supply = planner.Supply((shapes.ONE,))
    return planner.make_plan(shapes.empty(), supply, node_demands, snapshots.DECIDING, Two())


def test_a_queue_at_its_limit_brings_no_node() -> None:
    plan = limited(*(shapes.alone(f"train-{index}", leaf="small") for index in range(4)))
    assert len(plan.requests) == 2
    assert plan.limited == dict.fromkeys(
        ("pod/default/train-2", "pod/default/train-3"), "queue small is at its limit"
    )


def test_a_queue_at_its_limit_holds_nobody_else_up() -> None:
    pods = [shapes.alone(f"train-{index}", leaf="small") for index in range(3)]
    assert len(limited(*pods, shapes.alone("other", leaf="large")).requests) == 3


def test_a_later_workload_takes_no_node_that_an_earlier_gang_needs() -> None:
    values = (
        shapes.alone("first", 2),
        shapes.gang(
            "second", *(gangs.member(f"m{index}", gpus) for index, gpus in enumerate((1, 4, 4)))
        ),
        shapes.gang("third", gangs.member("t0", 1), gangs.member("t1", 1)),
    )
    kinds = (shapes.EIGHT, shapes.FOUR, shapes.ONE)
    plan = shapes.plan(*values, shapes=kinds, most=2)
    assert {"pod/default/first", "gang/default/second"} <= set(plan.placements)


def test_a_deferred_pod_has_another_turn_once_cheaper_nodes_leave_room_for_it() -> None:
    pods = [shapes.alone(f"train-{index}", gpus) for index, gpus in enumerate((3, 3, 3, 1))]
    plan = shapes.plan(*pods, shapes=(shapes.EIGHT, shapes.FOUR, shapes.ONE), most=2)
    assert sorted(request.template.name for request in plan.requests) == ["h100-4", "h100-8"]
    assert plan.placements.keys() == {pod.key for pod in pods}
    assert not plan.deferred


def test_a_node_for_a_deferred_pod_takes_the_place_of_no_other_node() -> None:
    pods = [shapes.alone(f"train-{index}", gpus) for index, gpus in enumerate((2, 8, 3, 8))]
    plan = shapes.plan(*pods, shapes=(shapes.EIGHT, shapes.FOUR, shapes.ONE), most=3)
    assert [request.template.name for request in plan.requests] == ["h100-8"] * 3
    assert plan.placements.keys() == {pod.key for pod in pods}
