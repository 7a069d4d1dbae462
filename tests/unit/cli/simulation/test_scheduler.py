from driver import names, reasons
from driver.cli.simulation import scheduler
from driver.resources.dra import claims
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from tests.properties import drawing
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.scenarios.replays import a_desk, a_pod_alone, a_task, devices

FOREIGN = "tpu.example.com"


def sat_down(at: scheduler.SimulatedScheduler, name: str, gpus: int = 1) -> scheduler.Answer:
    task = a_task(name, gpus)
    at.add(task.claims)
    return at.decide(task.pod)


def asking_cpu(amount: str) -> list[objects.Raw]:
    return [{"name": "c", "resources": {"requests": {"cpu": amount}}}]


def test_what_was_decided_stays_and_is_in_the_way_of_the_next() -> None:
    at = a_desk({"node-a": 1})
    assert devices(sat_down(at, "one")) == ["gpu-0"]
    answer = sat_down(at, "two")
    assert isinstance(answer, allocator_types.Unschedulable)
    assert "DeviceInUse" in allocator_messages.unschedulable(answer)


def test_a_pod_takes_cpu_of_its_node_too() -> None:
    at = a_desk({"node-a": 8})
    for name in ("one", "two"):
        task = a_task(name, containers=asking_cpu("5"))
        at.add(task.claims)
        answer = at.decide(task.pod)
    assert isinstance(answer, allocator_types.Unschedulable)
    assert [one.node_reason for one in answer.rejections] == [reasons.Reason.NODE_FULL]


def test_what_leaves_is_free_and_all_is_as_it_was() -> None:
    at = a_desk({"node-a": 2})
    before = drawing.shown(at.view)
    task = a_task("one", 2)
    at.add(task.claims)
    bound = at.decide(task.pod)
    assert isinstance(bound, scheduler.BoundPod)
    assert drawing.shown(at.view) != before
    at.remove_pod(bound)
    at.drop(task.claims)
    assert drawing.shown(at.view) == before


def test_pods_that_share_a_claim_go_where_it_is_and_the_last_frees_it() -> None:
    at = a_desk({"node-a": 1, "node-b": 1}, objects.claim("both"))
    first, second = (at.decide(objects.pod(name, "both")) for name in ("one", "two"))
    assert isinstance(first, scheduler.BoundPod)
    assert isinstance(second, scheduler.BoundPod)
    assert first.placement.node == second.placement.node
    assert ([one.name for one in first.allocations], second.allocations) == (["both"], ())
    at.remove_pod(first)
    assert isinstance(sat_down(at, "three", 2), allocator_types.Unschedulable)
    (both,) = at.pod_claims(second.pod)
    assert [one.name for one in both.consumers] == ["two"]
    at.remove_pod(second)
    (both,) = at.pod_claims(second.pod)
    assert (both.allocation, both.consumers) == (None, ())


def test_claims_are_written_as_the_scheduler_leaves_them_without_a_hold() -> None:
    at = a_desk({"node-a": 1})
    bound = sat_down(at, "one")
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
    at = a_desk({"node-a": 8})
    answer = at.decide(a_pod_alone("busy", nodeName="node-a", containers=asking_cpu("8")).pod)
    assert isinstance(answer, scheduler.Skipped)
    assert isinstance(sat_down(at, "one"), allocator_types.Unschedulable)


def test_devices_of_another_driver_are_left_to_kube_scheduler() -> None:
    other = objects.device_class(FOREIGN, f'device.driver == "{FOREIGN}"')
    known = [objects.device_class(), other]
    at = a_desk({"node-a": 1}, found_classes=known)
    foreign = objects.claim("tpu", objects.a_request(deviceClassName=FOREIGN))
    at.add([foreign])
    answer = at.decide(objects.pod("one", "tpu"))
    assert isinstance(answer, scheduler.Skipped)
    assert (answer.matters, "kube-scheduler allocates tpu" in answer.why) == (True, True)


def test_a_claim_that_mixes_drivers_is_refused_as_the_controller_refuses_it() -> None:
    other = objects.device_class(FOREIGN, f'device.driver == "{FOREIGN}"')
    at = a_desk({"node-a": 1}, found_classes=[objects.device_class(), other])
    mixed = objects.a_request("tpu", deviceClassName=FOREIGN)
    at.add([objects.claim("both", objects.a_request(), mixed)])
    answer = at.decide(objects.pod("one", "both"))
    assert isinstance(answer, allocator_types.Unschedulable)
    assert answer.blocker is reasons.Reason.FOREIGN_DEVICES


def test_of_two_claims_that_of_another_driver_is_left_and_told() -> None:
    other = objects.device_class(FOREIGN, f'device.driver == "{FOREIGN}"')
    at = a_desk({"node-a": 1}, found_classes=[objects.device_class(), other])
    at.add([objects.claim("gpu"), objects.claim("tpu", objects.a_request(deviceClassName=FOREIGN))])
    answer = at.decide(objects.pod("one", "gpu", "tpu"))
    assert isinstance(answer, scheduler.BoundPod)
    assert (devices(answer), answer.others) == (["gpu-0"], ("tpu",))


def test_another_gate_is_waited_for_and_our_own_is_not() -> None:
    at = a_desk({"node-a": 1})
    at.add([objects.claim("claim")])
    gated = objects.pod("one", schedulingGates=[{"name": "example.com/quota"}])
    assert at.decide(gated) == scheduler.Skipped("waits for its scheduling gate example.com/quota")
    ours = objects.pod("two", schedulingGates=[{"name": names.ALLOCATION_GATE}])
    assert devices(at.decide(ours)) == ["gpu-0"]


def test_a_claim_that_is_being_deleted_is_waited_for() -> None:
    gone = objects.a_claim("claim")
    gone["metadata"]["deletionTimestamp"] = "2026-11-22T09:00:00Z"
    at = a_desk({"node-a": 1}, claims.parse(gone))
    answer = at.decide(objects.pod("one"))
    assert answer == scheduler.Skipped("waits for claim, which is being deleted")


def test_what_the_cluster_has_given_already_is_taken() -> None:
    at = a_desk({"node-a": 2}, snapshots.holding("old", "node-a", "gpu-0"))
    assert devices(sat_down(at, "one")) == ["gpu-1"]
