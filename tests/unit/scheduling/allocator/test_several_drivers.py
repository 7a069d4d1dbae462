"""Claims over several drivers, and claims beside those that kube-scheduler allocates."""

from dataclasses import replace
from typing import Any

from driver import names, reasons
from driver.resources.dra import claims, slices
from driver.scheduling.allocator import allocation_result, dra_allocator, ownership
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import cluster_state
from tests.support import allocation, snapshots
from tests.support.builders import objects

NIC = "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
NIC_CLASS = objects.device_class("nic", f'device.driver == "{NIC}"')


def pci_devices(kind: str, count: int, **more: Any) -> list[objects.Raw]:
    """Devices whose PCIe roots are `pci0000:00`, `pci0000:01` and so on."""
    return [
        objects.with_values(objects.a_device(f"{kind}-{i}", **more), **{ROOT: f"pci0000:0{i}"})
        for i in range(count)
    ]


def node_slices(node: str, gpus: int = 2, nics: int = 2, **nic_fields: Any) -> list[objects.Raw]:
    return [
        objects.a_slice(node, pci_devices("gpu", gpus)),
        objects.a_slice(node, pci_devices("nic", nics, **nic_fields), NIC),
    ]


def managed(*nodes: str, nics: int = 2) -> cluster_state.ClusterState:
    """Nodes whose NICs have the allocator taint, as a DeviceTaintRule gives it."""
    parts = [part for node in nodes for part in node_slices(node, nics=nics)]
    return snapshots.view(*parts, found_classes=[NIC_CLASS])


def unmanaged(*nodes: str, nics: int = 1, **nic_fields: Any) -> cluster_state.ClusterState:
    """Nodes whose NICs kube-scheduler allocates."""
    fields = {"taints": [], **nic_fields}
    parts = [part for node in nodes for part in node_slices(node, nics=nics, **fields)]
    return snapshots.view(*parts, found_classes=[NIC_CLASS])


def nic_request(name: str = "nic", count: int = 1) -> objects.Raw:
    return objects.a_request(name, count, deviceClassName="nic")


def split(
    view: cluster_state.ClusterState, *open_claims: claims.Claim
) -> ownership.ClaimSplit | allocator_types.Unschedulable:
    pod = objects.pod("pod", *(claim.name for claim in open_claims))
    return ownership.OwnershipResolver().split_claims(view, pod, open_claims)


def decide(view: cluster_state.ClusterState, *open_claims: claims.Claim) -> allocation.Answer:
    """Decide for the claims of one pod, whoever allocates each."""
    claim_split = split(view, *open_claims)
    if isinstance(claim_split, allocator_types.Unschedulable):
        return claim_split
    pod = objects.pod("pod", *(claim.name for claim in open_claims))
    return dra_allocator.allocate(view, claim_split.workload(pod, ()), snapshots.DECIDING)


def test_a_claim_gets_gpu_and_nic_under_one_pcie_root() -> None:
    view = managed("node-a")
    held = snapshots.holding("gpu-0", "node-a", "gpu-0")
    view.set_claim(held.key, held)
    joint = objects.claim(
        "joint", objects.a_request("gpu"), nic_request(), constraints=[objects.matching(ROOT)]
    )
    assert allocation.devices(decide(view, joint)) == ["gpu-1", "nic-1"]


def test_an_allocation_over_two_drivers_names_both_in_one_status() -> None:
    view = managed("node-a")
    joint = objects.claim("joint", objects.a_request("gpu"), nic_request())
    workload = allocator_types.Workload(objects.pod("pod", "joint"), (joint,))
    answer = allocation.placed(dra_allocator.allocate(view, workload, snapshots.DECIDING))
    (written,) = allocation_result.build_allocations(view, workload, answer, "").values()
    assert [result.device.driver for result in written.results] == [names.DRIVER, NIC]
    assert written.selector is not None


def test_nothing_of_a_joint_claim_is_allocated_without_a_pair() -> None:
    view = managed("node-a", nics=1)
    held = snapshots.holding("gpu-0", "node-a", "gpu-0")
    view.set_claim(held.key, held)
    joint = objects.claim(
        "joint", objects.a_request("gpu"), nic_request(), constraints=[objects.matching(ROOT)]
    )
    assert (
        reasons.Reason.CONSTRAINT_NOT_SATISFIED in allocation.refused(decide(view, joint)).reasons
    )


def test_a_claim_with_a_part_for_each_allocator_is_refused_with_both_named() -> None:
    mixed = objects.claim("mixed", objects.a_request("gpu"), nic_request())
    answer = allocation.refused(decide(unmanaged("node-a"), mixed))
    assert answer.blocker is reasons.Reason.FOREIGN_DEVICES
    assert f"kube-scheduler allocates the devices of request nic ({NIC})" in answer.detail
    assert "the controller those of gpu" in answer.detail


def test_kube_scheduler_keeps_a_claim_that_it_can_allocate_whole() -> None:
    ways = [objects.a_way("gpu"), objects.a_way("nic", deviceClassName="nic")]
    either = objects.claim("either", objects.first_available("any", *ways), nic_request("more"))
    claim_split = split(unmanaged("node-a"), either)
    assert isinstance(claim_split, ownership.ClaimSplit)
    assert (claim_split.controller, claim_split.scheduler) == ((), (either,))


def test_the_node_has_devices_for_the_claim_of_kube_scheduler_too() -> None:
    view = unmanaged("node-a", "node-b")
    held = snapshots.holding("nic-0", "node-a", {"device": "nic-0", "driver": NIC})
    view.set_claim(held.key, held)
    gpu, nic = objects.claim("gpu"), objects.claim("nic", nic_request())
    answer = allocation.placed(decide(view, gpu, nic))
    assert (answer.node, [pick.device.driver for pick in answer.assignments]) == (
        "node-b",
        [names.DRIVER],
    )


def test_a_node_without_devices_for_the_other_claim_says_so() -> None:
    gpu, nic = objects.claim("gpu"), objects.claim("nic", nic_request(count=2))
    refusal = allocation.refusal(decide(unmanaged("node-a"), gpu, nic))
    assert refusal.node_reason is reasons.Reason.OTHER_CLAIM_UNSATISFIED
    assert "claim nic" in refusal.detail


def test_devices_that_kube_scheduler_will_take_are_not_counted_on_twice() -> None:
    view = unmanaged("node-a", "node-b")
    nodes = []
    for number in range(2):
        gpu = objects.claim(f"gpu-{number}")
        nic = objects.claim(f"nic-{number}", nic_request())
        workload = allocator_types.Workload(
            objects.pod(f"pod-{number}", gpu.name, nic.name), (gpu,), scheduler_claims=(nic,)
        )
        answer = allocation.placed(dra_allocator.allocate(view, workload, snapshots.DECIDING))
        nodes.append(answer.node)
        view.begin_write(allocation_result.build_decision(view, workload, answer))
    assert sorted(nodes) == ["node-a", "node-b"]


def test_a_field_unknown_here_is_kube_schedulers_to_judge_for_its_claims() -> None:
    view = unmanaged("node-a", nodeAllocatableResourceMappings={"cpu": {}})
    gpu, nic = objects.claim("gpu"), objects.claim("nic", nic_request())
    assert allocation.devices(decide(view, gpu, nic)) == ["gpu-0"]


def test_a_claim_with_unknown_fields_does_not_narrow_the_nodes() -> None:
    strange = objects.claim("nic", {**nic_request(count=9), "newField": {"a": 1}})
    strange = replace(strange, spec=replace(strange.spec, unsupported=("newField",)))
    assert allocation.devices(decide(unmanaged("node-a"), objects.claim("gpu"), strange))


def test_a_nic_beside_an_mps_share_counts_as_no_second_gpu() -> None:
    share = objects.a_share_device("mps", names.SHARING_MPS)
    nic = objects.a_slice("node-a", pci_devices("nic", 1), NIC)
    view = snapshots.view(objects.a_slice("node-a", [share]), nic, found_classes=[NIC_CLASS])
    part = objects.a_request("share", deviceClassName=snapshots.ANY)
    both = objects.claim("both", part, nic_request())
    answer = allocation.decide(
        view,
        both,
        containers=[{"name": "main", "resources": {"claims": [{"name": "both"}]}}],
    )
    assert allocation.devices(answer) == ["mps", "nic-0"]


def test_a_claim_waits_while_devices_of_a_managed_driver_pass_to_the_controller() -> None:
    handover = {"key": names.HANDOVER_TAINT, "effect": "NoSchedule"}
    parts = node_slices("node-a", taints=[handover])
    view = cluster_state.build(
        snapshots.DRIVER,
        snapshots.caches(
            [objects.node("node-a")],
            [slices.parse(part) for part in parts],
            found_classes=[objects.device_class(), NIC_CLASS],
        ),
        other_drivers=frozenset({NIC}),
    )
    joint = objects.claim("joint", objects.a_request("gpu"), nic_request())
    refusal = allocation.refusal(decide(view, joint))
    assert (refusal.fits, refusal.requested) == (1, 2)
    assert reasons.Reason.DEVICE_TAINTED in dict(refusal.device_reasons)


def test_a_driver_of_no_rule_stays_kube_schedulers() -> None:
    view = managed("node-a")
    bare = objects.a_slice("node-a", pci_devices("nic", 2, taints=[]), NIC)
    parsed = slices.parse(bare)
    view.set_slice(parsed.name, parsed)
    claim_split = split(view, objects.claim("nic", nic_request()))
    assert isinstance(claim_split, ownership.ClaimSplit)
    assert not claim_split
