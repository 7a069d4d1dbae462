"""Tests of which nodes are asked for."""

import dataclasses

from driver import ids
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import planner
from driver.scheduling.queues import resources as queue_resources
from tests.support import snapshots
from tests.support.builders import gangs, objects, shapes


def flying(*found: tuple[str, object]) -> dict:  # type: ignore[type-arg]
    return {ids.NodeName(name): one for name, one in found}


def test_a_pod_that_finds_no_gpu_brings_one_node() -> None:
    assert shapes.asked(shapes.plan(shapes.alone())) == ["h100-8"]


def test_nothing_that_waits_brings_nothing() -> None:
    assert shapes.plan() == planner.Plan()


def test_what_fits_on_one_node_together_brings_one() -> None:
    found = shapes.plan(*(shapes.alone(f"train-{at}") for at in range(8)))
    assert shapes.asked(found) == ["h100-8"]
    assert len(found.requests[0].pods) == 8


def test_a_gang_of_sixteen_gpus_brings_exactly_two_nodes_of_eight() -> None:
    found = shapes.plan(shapes.alike("llm", 2))
    assert shapes.asked(found) == ["h100-8", "h100-8"]
    assert {one.demand for one in found.requests} == {"gang/default/llm"}
    assert len({one.name for one in found.requests}) == 2


def test_what_is_on_its_way_is_not_asked_again() -> None:
    wish = shapes.alike("llm", 2)
    first = shapes.plan(wish)
    there = flying(*((one.name, one.template) for one in first.requests))
    assert shapes.plan(wish, in_flight=there).requests == ()


def test_of_what_is_on_its_way_only_the_rest_is_asked() -> None:
    wish = shapes.alike("llm", 3)
    there = flying((shapes.plan(wish).requests[0].name, shapes.EIGHT))
    found = shapes.plan(wish, in_flight=there)
    assert len(found.requests) == 2
    assert not {one.name for one in found.requests} & {*there}


def test_what_nobody_goes_on_is_not_needed() -> None:
    there = flying(("a", shapes.EIGHT), ("b", shapes.EIGHT))
    assert len(shapes.plan(shapes.alone(), in_flight=there).unneeded) == 1


def test_part_of_a_gang_goes_where_there_is_room() -> None:
    view = snapshots.view(objects.a_slice("node-a", 8))
    found = shapes.plan(shapes.alike("llm", 2), on=view)
    assert shapes.asked(found) == ["h100-8"]


def test_many_small_pods_bring_the_node_that_costs_least_for_each_gpu() -> None:
    pods = [shapes.alone(f"train-{at}") for at in range(8)]
    assert shapes.asked(shapes.plan(*pods, shapes=(shapes.EIGHT, shapes.ONE))) == ["h100-8"]


def test_one_small_pod_brings_a_small_node() -> None:
    found = shapes.plan(shapes.alone(), shapes=(shapes.EIGHT, shapes.ONE))
    assert shapes.asked(found) == ["h100-1"]


def test_the_last_node_is_no_larger_than_it_has_to_be() -> None:
    found = shapes.plan(shapes.alike("llm", 3, 4), shapes=(shapes.EIGHT, shapes.FOUR, shapes.ONE))
    assert shapes.asked(found) == ["h100-4", "h100-8"]


def test_members_that_differ_bring_a_node_for_each_kind() -> None:
    other = shapes.a_shape("cpu-rich", 1, product="NVIDIA L4", cost=1)
    on_l4 = gangs.member("head", 1, nodeSelector={shapes.INSTANCE: "cpu-rich"})
    on_h100 = gangs.member("worker", 8, nodeSelector={shapes.INSTANCE: "h100-8"})
    found = shapes.plan(shapes.gang("mixed", on_l4, on_h100), shapes=(shapes.EIGHT, other))
    assert shapes.asked(found) == ["cpu-rich", "h100-8"]


def test_what_could_never_fit_brings_nothing_and_says_so_of_each_shape() -> None:
    found = shapes.plan(shapes.alone(gpus=16), shapes=(shapes.EIGHT, shapes.ONE))
    assert found.requests == ()
    told = found.impossible["pod/default/train"]
    assert "h100-8: 8 of 16 devices fit" in told
    assert "h100-1: 1 of 16 devices fit" in told


def test_what_no_shape_is_labelled_for_says_which_label() -> None:
    found = shapes.plan(shapes.alone(nodeSelector={"example.com/disk": "nvme"}))
    assert "nodeSelector example.com/disk=nvme" in found.impossible["pod/default/train"]


def test_a_taint_of_a_shape_keeps_out_who_does_not_tolerate_it() -> None:
    tainted = shapes.a_shape(taints=[{"key": "gpu", "effect": "NoSchedule"}])
    found = shapes.plan(shapes.alone(), shapes=(tainted,))
    assert "taint gpu=" in found.impossible["pod/default/train"]


def test_no_more_nodes_are_on_their_way_than_may_be() -> None:
    found = shapes.plan(*(shapes.alone(f"train-{at}", 8) for at in range(5)), most=3)
    assert len(found.requests) == 3
    assert "as many nodes as may be" in found.deferred["pod/default/train-4"]


def test_a_gang_for_which_there_is_not_room_now_waits_whole() -> None:
    found = shapes.plan(shapes.alike("llm", 4), in_flight=flying(("a", shapes.ONE)), most=4)
    assert found.requests == ()
    assert "h100-8" in found.deferred["gang/default/llm"]


def test_a_shape_that_rests_is_not_asked_and_another_is() -> None:
    resting = {"h100-1": "none of it came"}
    kinds = (shapes.ONE, shapes.EIGHT)
    assert shapes.asked(shapes.plan(shapes.alone(), shapes=kinds, paused=resting)) == ["h100-8"]


def test_where_every_shape_rests_it_is_told_why() -> None:
    found = shapes.plan(shapes.alone(), paused={"h100-8": "none of it came"})
    assert found.deferred == {"pod/default/train": "h100-8: none of it came"}


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


def limited(*found: provisioning_demand.NodeDemand) -> planner.Plan:
    supply = planner.Supply((shapes.ONE,))
    return planner.make_plan(shapes.empty(), supply, found, snapshots.DECIDING, Two())


def test_a_queue_at_its_limit_brings_no_node() -> None:
    found = limited(*(shapes.alone(f"train-{at}", leaf="small") for at in range(4)))
    assert len(found.requests) == 2
    assert found.limited == dict.fromkeys(
        ("pod/default/train-2", "pod/default/train-3"), "queue small is at its limit"
    )


def test_a_queue_at_its_limit_holds_nobody_else_up() -> None:
    pods = [shapes.alone(f"train-{at}", leaf="small") for at in range(3)]
    assert len(limited(*pods, shapes.alone("other", leaf="large")).requests) == 3


def test_a_later_workload_takes_no_node_that_an_earlier_gang_needs() -> None:
    found = (
        shapes.alone("first", 2),
        shapes.gang("second", *(gangs.member(f"m{at}", gpus) for at, gpus in enumerate((1, 4, 4)))),
        shapes.gang("third", gangs.member("t0", 1), gangs.member("t1", 1)),
    )
    kinds = (shapes.EIGHT, shapes.FOUR, shapes.ONE)
    made = shapes.plan(*found, shapes=kinds, most=2)
    assert {"pod/default/first", "gang/default/second"} <= set(made.placements)
