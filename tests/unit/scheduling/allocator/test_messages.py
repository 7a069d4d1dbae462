from driver import ids, reasons
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator, settings
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from tests.support import snapshots
from tests.support.allocation import decide, placed, refused, workload
from tests.support.builders import device_layouts, objects

Reason = reasons.Reason


def told(*refusals: tuple[allocator_types.NodeRejection, tuple[str, ...]]) -> str:
    result = {node_rejection: tuple(map(ids.NodeName, nodes)) for node_rejection, nodes in refusals}
    return allocator_messages.unschedulable(allocator_types.Unschedulable(rejections=result))


def test_a_blocker_on_all_nodes_is_reported_alone() -> None:
    answer = allocator_types.Unschedulable(
        Reason.DEVICE_CLASS_NOT_FOUND, "claim default/c: request a names class b"
    )
    assert (
        allocator_messages.unschedulable(answer)
        == "DeviceClassNotFound: claim default/c: request a names class b"
    )


def test_a_shortage_is_reported_with_the_other_reasons() -> None:
    counted = ((Reason.COUNTERS_EXHAUSTED, 2), (Reason.DEVICE_IN_USE, 4))
    lacking = allocator_types.NodeRejection(fits=2, requested=8, device_reasons=counted)
    assert told((lacking, ("node-a", "node-b"))) == (
        "No node fits. node-a, node-b: 2 of 8 devices fit, 6 lacking (2 CountersExhausted, 4 "
        "DeviceInUse)"
    )


def test_enough_devices_of_which_no_combination_does_are_not_told_as_lacking() -> None:
    unmet = allocator_types.NodeRejection(
        fits=2, requested=2, device_reasons=((Reason.CONSTRAINT_NOT_SATISFIED, 2),)
    )
    assert told((unmet, ("node-a",))) == (
        "No node fits. node-a: 2 of 2 devices fit, and no combination of them does (2 "
        "ConstraintNotSatisfied)"
    )


def test_a_device_with_an_unserved_field_is_reported_with_the_field_and_its_gate() -> None:
    needs_cpu = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}}}}
    own, other = objects.a_device("gpu-0", **needs_cpu), objects.a_device("mig-0", strange=True)
    other["attributes"]["type"]["string"] = "mig"
    answer = decide(snapshots.view(objects.a_slice("node-a", [own, other])), objects.claim())
    assert allocator_messages.unschedulable(refused(answer)) == (
        "No node fits. node-a: 0 of 1 devices fit, 1 lacking (1 UnsupportedDeviceFields), not "
        "allocated for nodeAllocatableResources (feature gate DRANodeAllocatableResources)"
    )


def test_a_slice_with_an_unserved_field_is_reported_with_the_field_and_its_gate() -> None:
    skipping = objects.a_slice("node-a", 1)
    skipping["spec"]["skipNodeOperations"] = ["*"]
    answer = refused(decide(snapshots.view(skipping), objects.claim()))
    assert allocator_messages.unschedulable(answer).endswith(
        "not allocated for skipNodeOperations (feature gate DRAOptionalNodeOperations)"
    )


def hard() -> claims.Claim:
    """Four of each kind would do alone, and no four of both."""
    both = [objects.matching(device_layouts.NUMA), objects.matching(device_layouts.ROW)]
    return objects.claim("c", objects.a_request(count=5), constraints=both)


def test_an_exhausted_step_budget_is_reported_as_such() -> None:
    view = device_layouts.looking(
        *({"numa": index // 8, "row": index // 4 % 2} for index in range(16))
    )
    hasty = settings.Settings(
        snapshots.DECIDING.policy_chain, snapshots.DECIDING.rules, step_budget=3
    )
    answer = refused(dra_allocator.allocate(view, workload(hard()), hasty))
    assert answer.budget_exceeded
    assert allocator_messages.unschedulable(answer) == (
        "No node fits. node-a: SearchBudgetExceeded (the search for a combination took too many "
        "steps): 4 of 5 devices fit (12 ConstraintNotSatisfied)"
    )
    patient = refused(decide(view, hard()))
    assert not patient.budget_exceeded
    assert allocator_messages.unschedulable(patient) == (
        "No node fits. node-a: 4 of 5 devices fit, 1 lacking (12 ConstraintNotSatisfied)"
    )


def test_a_placement_names_devices_and_of_shares_how_much() -> None:
    share = objects.a_share_device("ts")
    view = snapshots.view(objects.a_slice("node-a", [objects.a_device("gpu-0"), share]))
    part = objects.a_request(
        "part",
        deviceClassName=snapshots.ANY,
        selectors=[{"cel": {"expression": "device.allowMultipleAllocations"}}],
        capacity={"requests": {"memory": "1500Mi"}},
    )
    answer = placed(decide(view, objects.claim("c", objects.a_request(), part)))
    assert allocator_messages.placement(answer) == (
        "Allocated gpu-0, ts (memory 2Gi) on node-a: the only node that fits"
    )


def test_more_than_eight_nodes_are_not_all_named() -> None:
    nodes = tuple(f"node-{index}" for index in range(10))
    assert told((allocator_types.NodeRejection(fits=0, requested=1), nodes)).startswith(
        "No node fits. node-0, node-1, node-2, node-3, node-4, node-5, node-6, node-7 and 2 more: "
    )
