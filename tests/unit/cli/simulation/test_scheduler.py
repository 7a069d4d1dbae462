from driver import names, reasons
from driver.cli.simulation import scheduler
from driver.resources.dra import claims, slices
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from tests.properties import drawing
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.scenarios.replays import a_desk, a_pod_alone, a_task, devices

FOREIGN = "tpu.example.com"


def sat_down(
    simulated_scheduler: scheduler.SimulatedScheduler, name: str, gpus: int = 1
) -> scheduler.Answer:
    task = a_task(name, gpus)
    simulated_scheduler.add(task.claims)
    return simulated_scheduler.decide(task.pod)


def asking_cpu(amount: str) -> list[objects.Raw]:
    return [{"name": "c", "resources": {"requests": {"cpu": amount}}}]


def test_earlier_placements_block_later_ones() -> None:
    simulated_scheduler = a_desk({"node-a": 1})
    assert devices(sat_down(simulated_scheduler, "one")) == ["gpu-0"]
    answer = sat_down(simulated_scheduler, "two")
    assert isinstance(answer, allocator_types.Unschedulable)
    assert "DeviceInUse" in allocator_messages.unschedulable(answer)


def test_a_pod_takes_cpu_of_its_node_too() -> None:
    simulated_scheduler = a_desk({"node-a": 8})
    for name in ("one", "two"):
        task = a_task(name, containers=asking_cpu("5"))
        simulated_scheduler.add(task.claims)
        answer = simulated_scheduler.decide(task.pod)
    assert isinstance(answer, allocator_types.Unschedulable)
    assert [rejection.node_reason for rejection in answer.rejections] == [reasons.Reason.NODE_FULL]


def test_a_departed_pod_restores_the_previous_state() -> None:
    simulated_scheduler = a_desk({"node-a": 2})
    previous = drawing.shown(simulated_scheduler.view)
    task = a_task("one", 2)
    simulated_scheduler.add(task.claims)
    bound = simulated_scheduler.decide(task.pod)
    assert isinstance(bound, scheduler.BoundPod)
    assert drawing.shown(simulated_scheduler.view) != previous
    simulated_scheduler.remove_pod(bound)
    simulated_scheduler.drop(task.claims)
    assert drawing.shown(simulated_scheduler.view) == previous


def test_pods_that_share_a_claim_go_where_it_is_and_the_last_frees_it() -> None:
    simulated_scheduler = a_desk({"node-a": 1, "node-b": 1}, objects.claim("both"))
    first, second = (
        simulated_scheduler.decide(objects.pod(name, "both")) for name in ("one", "two")
    )
    assert isinstance(first, scheduler.BoundPod)
    assert isinstance(second, scheduler.BoundPod)
    assert first.placement.node == second.placement.node
    assert ([allocation.name for allocation in first.allocations], second.allocations) == (
        ["both"],
        (),
    )
    simulated_scheduler.remove_pod(first)
    assert isinstance(sat_down(simulated_scheduler, "three", 2), allocator_types.Unschedulable)
    (both,) = simulated_scheduler.pod_claims(second.pod)
    assert [consumer.name for consumer in both.consumers] == ["two"]
    simulated_scheduler.remove_pod(second)
    (both,) = simulated_scheduler.pod_claims(second.pod)
    assert (both.allocation, both.consumers) == (None, ())


def test_claims_are_written_as_the_scheduler_leaves_them_without_a_hold() -> None:
    simulated_scheduler = a_desk({"node-a": 1})
    bound = sat_down(simulated_scheduler, "one")
    assert isinstance(bound, scheduler.BoundPod)
    (claim,) = bound.allocations
    assert claim.consumers == (claims.Consumer("", "pods", "one", objects.uid_of("one")),)
    assert claim.allocation is not None
    assert claim.allocation.stamped == scheduler.STAMP


def test_a_pod_whose_claim_is_not_there_waits_for_it() -> None:
    answer = a_desk({"node-a": 1}).decide(objects.pod("one", "later"))
    assert answer == scheduler.Skipped("waits for claim later")


def test_a_pod_whose_claim_was_not_made_yet_names_its_entry() -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    answer = a_desk({"node-a": 1}).decide(objects.pod("one", resourceClaims=[entry]))
    assert answer == scheduler.Skipped("waits for the claim of its entry gpu")


def test_pods_without_a_claim_are_the_schedulers_and_do_not_matter() -> None:
    answer = a_desk({"node-a": 1}).decide(a_pod_alone("one").pod)
    assert isinstance(answer, scheduler.Skipped)
    assert not answer.matters


def test_pods_without_a_claim_are_placed_where_that_is_asked() -> None:
    answer = a_desk({"node-a": 1}, every_pod=True).decide(a_pod_alone("one").pod)
    assert isinstance(answer, scheduler.BoundPod)
    assert (answer.placement.node, answer.allocations) == ("node-a", ())


def test_a_pod_without_a_claim_that_has_its_node_takes_of_it() -> None:
    simulated_scheduler = a_desk({"node-a": 8})
    answer = simulated_scheduler.decide(
        a_pod_alone("busy", nodeName="node-a", containers=asking_cpu("8")).pod
    )
    assert isinstance(answer, scheduler.Skipped)
    assert isinstance(sat_down(simulated_scheduler, "one"), allocator_types.Unschedulable)


def test_devices_of_another_driver_are_left_to_kube_scheduler() -> None:
    other = objects.device_class(FOREIGN, f'device.driver == "{FOREIGN}"')
    device_classes = [objects.device_class(), other]
    simulated_scheduler = a_desk({"node-a": 1}, found_classes=device_classes)
    foreign = objects.claim("tpu", objects.a_request(deviceClassName=FOREIGN))
    simulated_scheduler.add([foreign])
    answer = simulated_scheduler.decide(objects.pod("one", "tpu"))
    assert isinstance(answer, scheduler.Skipped)
    assert (answer.matters, "kube-scheduler allocates tpu" in answer.why) == (True, True)


def test_a_claim_that_mixes_drivers_is_refused_as_the_controller_refuses_it() -> None:
    other = objects.device_class(FOREIGN, f'device.driver == "{FOREIGN}"')
    simulated_scheduler = a_desk({"node-a": 1}, found_classes=[objects.device_class(), other])
    mixed = objects.a_request("tpu", deviceClassName=FOREIGN)
    simulated_scheduler.add([objects.claim("both", objects.a_request(), mixed)])
    answer = simulated_scheduler.decide(objects.pod("one", "both"))
    assert isinstance(answer, allocator_types.Unschedulable)
    assert answer.blocker is reasons.Reason.FOREIGN_DEVICES


def test_a_claim_of_another_driver_is_left_unallocated_and_reported() -> None:
    other = objects.device_class(FOREIGN, f'device.driver == "{FOREIGN}"')
    simulated_scheduler = a_desk({"node-a": 1}, found_classes=[objects.device_class(), other])
    tpus = slices.parse(objects.a_slice("node-a", [objects.a_device("tpu-0", taints=[])], FOREIGN))
    simulated_scheduler.view.set_slice(tpus.name, tpus)
    simulated_scheduler.add(
        [objects.claim("gpu"), objects.claim("tpu", objects.a_request(deviceClassName=FOREIGN))]
    )
    answer = simulated_scheduler.decide(objects.pod("one", "gpu", "tpu"))
    assert isinstance(answer, scheduler.BoundPod)
    assert (devices(answer), answer.others) == (["gpu-0"], ("tpu",))


def test_another_gate_is_waited_for_and_our_own_is_not() -> None:
    simulated_scheduler = a_desk({"node-a": 1})
    simulated_scheduler.add([objects.claim("claim")])
    gated = objects.pod("one", schedulingGates=[{"name": "example.com/quota"}])
    assert simulated_scheduler.decide(gated) == scheduler.Skipped(
        "waits for its scheduling gate example.com/quota"
    )
    ours = objects.pod("two", schedulingGates=[{"name": names.ALLOCATION_GATE}])
    assert devices(simulated_scheduler.decide(ours)) == ["gpu-0"]


def test_a_claim_that_is_being_deleted_is_waited_for() -> None:
    gone = objects.a_claim("claim")
    gone["metadata"]["deletionTimestamp"] = "2026-11-22T09:00:00Z"
    simulated_scheduler = a_desk({"node-a": 1}, claims.parse(gone))
    answer = simulated_scheduler.decide(objects.pod("one"))
    assert answer == scheduler.Skipped("waits for claim, which is being deleted")


def test_claims_allocated_in_the_cluster_are_in_use() -> None:
    simulated_scheduler = a_desk({"node-a": 2}, snapshots.holding("old", "node-a", "gpu-0"))
    assert devices(sat_down(simulated_scheduler, "one")) == ["gpu-1"]
