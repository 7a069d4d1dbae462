from dataclasses import replace

from driver import names, reasons
from driver.resources.dra import device_classes
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import base, policy_selector, ranking, workload_mix
from driver.scheduling.snapshot import cluster_state
from tests.support import allocation, snapshots
from tests.support.builders import objects

SPREADING = "spreading"


def a_class(words: str | None) -> device_classes.DeviceClass:
    return replace(objects.device_class(SPREADING), policies=words)


def fleet(words: str | None) -> cluster_state.ClusterState:
    """Two nodes of two GPUs; one GPU of the second is in use."""
    values = (objects.a_slice("node-a", 2), objects.a_slice("node-b", 2))
    held = snapshots.holding("x", "node-b", "gpu-0")
    return snapshots.view(*values, taken=[held], found_classes=[a_class(words)])


def decide(
    view: cluster_state.ClusterState, *asking: str
) -> allocator_types.Placement | allocator_types.Unschedulable:
    requests = [
        objects.a_request(f"r{index}", 1, deviceClassName=name) for index, name in enumerate(asking)
    ]
    claim = objects.claim("c", *requests)
    deciding = replace(snapshots.DECIDING, policy_chain=ranking.parse_policies("pack"))
    return dra_allocator.allocate(view, allocation.workload(claim), deciding)


def test_a_class_says_what_is_best_for_what_asks_it() -> None:
    view = fleet("spread")
    packed, spread = decide(view, snapshots.ANY), decide(view, SPREADING)
    assert allocation.placed(packed).node == "node-b"
    assert allocation.placed(spread).node == "node-a"
    assert (
        allocation.placed(spread).explanation
        == "the emptiest node: 2 of 2 GPUs were free, 1 are left"
    )


def test_a_class_may_ask_for_no_policy_at_all() -> None:
    assert allocation.placed(decide(fleet(""), SPREADING)).explanation == "the first by name"


def test_a_class_that_says_nothing_leaves_it_to_the_controller() -> None:
    assert allocation.placed(decide(fleet(None), SPREADING)).node == "node-b"


def test_the_first_class_with_a_policy_decides() -> None:
    view = fleet("spread")
    assert allocation.placed(decide(view, snapshots.ANY, SPREADING)).node == "node-a"


def test_a_policy_that_is_not_there_is_told_with_the_class_that_names_it() -> None:
    answer = allocation.refused(decide(fleet("best"), SPREADING))
    assert answer.blocker is reasons.Reason.CONFIG_INVALID
    assert answer.detail.startswith(
        f"DeviceClass spreading: annotation {names.POLICIES_ANNOTATION}: 'best' is no policy; "
        "expected some of "
    )


def test_the_policies_are_the_same_object_as_long_as_nothing_changes() -> None:
    view, selector = fleet("spread"), policy_selector.PolicySelector(ranking.parse_policies("pack"))
    wants = allocation.wants(view, objects.claim("c", objects.a_request("r", 1)))
    selected = selector.select(view, wants)
    assert selector.select(view, wants) is selected


def test_policies_of_a_class_know_what_is_usually_asked_as_the_controllers_do() -> None:
    usual = workload_mix.build_mix([(workload_mix.WorkloadShape(base.WHOLE, 2), 1.0)])
    view, selector = (
        fleet("fragmentation"),
        policy_selector.PolicySelector(ranking.parse_policies("pack", usual)),
    )
    asking = objects.a_request("r", 1, deviceClassName=SPREADING)
    selected = selector.select(view, allocation.wants(view, objects.claim("c", asking)))
    assert isinstance(selected, ranking.PolicyChain)
    assert selected.mix.shapes == usual.shapes


def test_the_policies_of_a_class_are_read_from_its_annotation() -> None:
    raw = objects.a_class(SPREADING)
    raw["metadata"]["annotations"] = {names.POLICIES_ANNOTATION: "spread"}
    assert device_classes.parse(raw).policies == "spread"
    assert device_classes.parse(objects.a_class(SPREADING)).policies is None
