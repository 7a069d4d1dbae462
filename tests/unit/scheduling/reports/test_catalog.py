from typing import Any

import pytest

from driver import names, reasons
from driver.scheduling.reports import model, paging, read_model, selection
from tests.support.builders import objects
from tests.support.scenarios import fleets

R = fleets.a_reading()
GPUS = {gpu.index: gpu for gpu in (R.node("gpu-1") or model.Node(name="")).gpus}


def part(index: int, claim: str) -> model.Part:
    return next(item for item in GPUS[index].parts if item.claim == claim)


def test_the_fleet_is_counted_by_mode_and_health() -> None:
    fleet = R.fleet()
    assert (fleet.nodes, fleet.nodes_ready, fleet.gpus) == (3, 2, 24)
    assert fleet.modes == {"free": 18, "kept": 1, "mig": 1, "mps": 1, "time-slicing": 1, "whole": 2}
    assert (fleet.unhealthy, fleet.cordoned, fleet.idle, fleet.waiting) == (1, 1, 2, 3)
    assert fleet.products[0].free == 16


def test_a_mig_device_lies_at_its_memory_slices() -> None:
    assert (part(4, "batch/small").start, part(4, "batch/small").width) == (250, 125)
    assert (part(4, "batch/half").start, part(4, "batch/half").width) == (500, 500)
    assert part(4, "batch/half").profile == "3g.40gb"


def test_shares_lie_side_by_side_by_their_memory() -> None:
    first, second = GPUS[2].parts
    assert (first.start, second.start) == (0, first.width)
    assert first.width == 2 * second.width


def test_shares_of_more_than_the_gpu_are_drawn_narrower() -> None:
    raw = fleets.raw()
    for entry in raw:
        if entry["kind"] == "ResourceClaim" and entry["metadata"]["name"] in {"serve", "rank"}:
            (result,) = entry["status"]["allocation"]["devices"]["results"]
            result["consumedCapacity"]["memory"] = "80Gi"
    node = fleets.a_reading(raw).node("gpu-1")
    assert node is not None
    first, second = node.gpus[2].parts
    assert first.width == second.width == second.start == 500


def test_reported_activity_is_beside_the_device() -> None:
    assert part(2, "nlp/rank").use == model.Use(
        last_busy="2026-11-22T09:30:00Z",
        idle_since="2026-11-22T09:30:00Z",
        utilization=0,
        peak_memory=6 << 30,
    )
    busy = part(0, "vision/train").use
    assert busy is not None
    assert not busy.idle_since


def test_a_fault_is_unhealthy_and_anothers_taint_is_a_cordon() -> None:
    assert [GPUS[entry].health for entry in (4, 5, 6)] == ["healthy", "unhealthy", "cordoned"]
    assert GPUS[5].taints[0].key == names.TAINT_XID
    assert not GPUS[4].taints


def test_nvlink_names_the_other_gpus_by_their_place() -> None:
    assert GPUS[0].nvlink == (1, 2, 3, 4, 5, 6, 7)


def test_reserved_devices_are_listed_on_their_gpu() -> None:
    node = R.node("gpu-2")
    assert node is not None
    (retained,) = node.gpus[0].kept
    assert (retained.reservation, retained.holder, retained.width) == (
        "vision/nightly",
        "gang nightly",
        1000,
    )


@pytest.mark.parametrize("by", ["name", "uuid", "pci"])
def test_a_gpu_is_found_by_name_uuid_and_address(by: str) -> None:
    expected = getattr(GPUS[3], by)
    assert expected
    assert R.gpu("gpu-1", expected) == GPUS[3]


def test_a_missing_object_is_none() -> None:
    assert R.node("nowhere") is None
    assert R.gpu("gpu-1", "gpu-9") is None
    assert R.gpu("nowhere", "gpu-9") is None
    assert R.claim("a/b") is None
    assert R.pod("a/b") is None
    assert R.queue("nobody") is None


def test_nodes_are_filtered_by_one_gpu_that_is_all_of_it() -> None:
    def found(**fields: str) -> list[str]:
        return [item.name for item in R.nodes(node_filter=selection.NodeFilter(**fields)).items]

    assert found() == ["gpu-1", "gpu-2", "gpu-3"]
    assert found(mode="mig") == ["gpu-1"]
    assert found(mode="free", health="unhealthy") == ["gpu-1"]
    assert found(mode="mig", health="unhealthy") == []
    assert found(name="3") == ["gpu-3"]
    assert found(product="NVIDIA A100") == []


def test_a_list_is_read_part_by_part() -> None:
    first = R.nodes(selection.PageRequest(limit=2))
    assert ([item.name for item in first.items], first.next, first.total) == (
        ["gpu-1", "gpu-2"],
        "gpu-2",
        3,
    )
    rest = R.nodes(selection.PageRequest(after=first.next, limit=2))
    assert ([item.name for item in rest.items], rest.next) == (["gpu-3"], "")


def test_a_part_after_what_has_gone_begins_where_that_was() -> None:
    assert paging.page(["a", "c", "d"], str, after="b", limit=1) == (("c",), "c")


def test_a_claim_says_what_it_asks_has_and_who_uses_it() -> None:
    claim = R.claim("nlp/serve")
    assert claim is not None
    assert claim.requests[0].text == "gpu-mps.ration.dev (memory 20Gi)"
    assert (claim.state, claim.node, claim.pods, claim.queue) == (
        "reserved",
        "gpu-1",
        ("nlp/serve",),
        "nlp",
    )
    assert claim.devices[0].part == part(2, "nlp/serve")


def test_claims_are_of_one_namespace_or_of_all() -> None:
    assert [item.key for item in R.claims("batch").items] == [
        "batch/gated",
        "batch/half",
        "batch/small",
    ]
    assert R.claims().total == 8


def other_driver(**status: Any) -> list[dict[str, Any]]:
    """The fleet, and a claim for a device of another driver."""
    head = {"apiVersion": "resource.k8s.io/v1"}
    request = objects.a_request("n", deviceClassName="nic.example.com")
    claim = {**head, "kind": "ResourceClaim", **objects.a_claim("nic", request, **status)}
    of_driver = {"kind": "DeviceClass", **objects.a_class("nic.example.com"), **head}
    of_driver["spec"]["selectors"] = [{"cel": {"expression": 'device.driver == "nic.example.com"'}}]
    return [*fleets.raw(), of_driver, claim]


def test_a_claim_of_another_driver_is_not_listed() -> None:
    assert fleets.a_reading(other_driver()).claims("default").total == 0


def test_claims_of_a_managed_driver_are_listed_and_hold_no_gpu_of_ours() -> None:
    rule = fleets.an_allocator_rule("nic.example.com")
    device = {"driver": "nic.example.com", "pool": "gpu-1", "device": "gpu-0"}
    allocated = other_driver(status=objects.allocated("gpu-1", device))
    for raw in (other_driver(), allocated):
        reading = fleets.a_reading([*raw, rule])
        assert [item.key for item in reading.claims("default").items] == ["default/nic"]
        assert reading.managed_drivers == ("nic.example.com",)
        assert reading.fleet().modes == R.fleet().modes


def test_queues_stand_before_their_children_and_what_is_left_out_comes_last() -> None:
    shown = [(item.name, item.depth) for item in R.queues().items]
    assert shown == [("dev", 0), ("research", 0), ("nlp", 1), ("vision", 1), ("lost", 0)]
    lost = R.queue("lost")
    assert lost is not None
    assert (lost.accepted, lost.problem) == (False, "spec.parent: queue gone does not exist")


def test_a_queue_has_the_pods_that_have_devices_or_wait() -> None:
    nlp = R.queue("nlp")
    assert nlp is not None
    assert [(pod.key, pod.state) for pod in nlp.pods] == [
        ("nlp/big", "waiting"),
        ("nlp/rank", "running"),
        ("nlp/serve", "running"),
    ]
    assert nlp.limit.gpus == "12"


def test_pending_pods_are_listed_with_reason_and_remedy() -> None:
    pods = {item.key: item for item in R.waiting().items}
    assert set(pods) == {"batch/gated", "dev/lost", "nlp/big"}
    assert pods["nlp/big"].reason == reasons.Reason.NO_FIT
    assert pods["batch/gated"].reason == reasons.Reason.SCHEDULING_GATED
    assert pods["dev/lost"].reason == reasons.Reason.CLAIM_NOT_FOUND
    assert all(pod.advice for pod in pods.values())


def of_pod(annotations: dict[str, Any] | None = None, **claim: Any) -> model.Pod:
    """A pod with one claim: what is said of it."""
    pod = {"apiVersion": "v1", "kind": "Pod", **objects.a_pod("pod", "claim", status=annotations)}
    if claim.pop("bound", False):
        pod["spec"]["nodeName"] = "gpu-1"
    document = objects.a_claim("claim", **claim)
    fields = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **document}
    result = fleets.a_reading([*fleets.raw(), pod, fields]).pod("default/pod")
    assert result is not None
    return result


def test_a_pod_that_nobody_answered_says_so_with_the_schedulers_words() -> None:
    silent = of_pod()
    assert (silent.state, silent.reason) == ("waiting", reasons.Reason.NOT_EVALUATED)
    refused = of_pod(objects.refused("0/3 nodes are available: 3 cannot allocate all claims."))
    assert refused.reason == reasons.Reason.NOT_EVALUATED
    assert "3 cannot allocate all claims" in refused.message


def test_a_placed_pod_that_the_scheduler_refuses_says_so() -> None:
    device = fleets.gpu("gpu-1", 7)
    pod = of_pod(objects.refused(), status=objects.allocated("gpu-1", device))
    assert (pod.state, pod.reason) == ("placed", reasons.Reason.REJECTED_BY_SCHEDULER)
    assert pod.node == "gpu-1"


def test_a_condition_of_an_earlier_version_is_read_under_its_present_reason() -> None:
    condition = {
        "type": names.CONDITION_ALLOCATED,
        "status": "False",
        "reason": "QueueLimit",
        "message": "queue nlp: 12 of 12 GPUs",
    }
    document = of_pod({"phase": "Pending", "conditions": [condition]})
    assert document.reason == reasons.Reason.QUEUE_LIMIT_EXCEEDED
    assert document.advice


def test_a_bound_pod_whose_devices_are_refused_has_the_plugins_words() -> None:
    device = fleets.gpu("gpu-1", 7)
    status = objects.allocated("gpu-1", device)
    status["devices"] = [
        {
            "driver": names.DRIVER,
            "pool": "gpu-1",
            "device": device,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "ConfigInvalid",
                    "message": "sharing.strategy: is Both",
                }
            ],
        }
    ]
    pod = of_pod(bound=True, status=status)
    assert (pod.state, pod.reason) == ("placed", reasons.Reason.CONFIG_INVALID)


def test_a_later_look_takes_over_the_nodes_whose_slices_did_not_change() -> None:
    objects_of = fleets.objects_of(fleets.raw())
    previous = read_model.ClusterModel(objects_of)
    first = previous.pools
    after = read_model.ClusterModel(objects_of, previous).pools
    assert all(after[name] is published_pool for name, published_pool in first.items())
