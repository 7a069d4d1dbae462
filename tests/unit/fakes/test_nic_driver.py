"""Tests of what the NIC driver publishes, and of which claims it refuses."""

from typing import Any

import pytest

from driver import names
from driver.resources.dra import slices
from tests.fakes.nic_driver import pools, prepared_claims
from tests.support.builders import objects

SHARED = {"shareID": "5c7d1f6e-0000-4000-8000-000000000001"}
OTHER_SHARE = {"shareID": "5c7d1f6e-0000-4000-8000-000000000002"}


def a_result(device: str = "nic-0", **more: Any) -> prepared_claims.Raw:
    return {"pool": "node-a", "device": device, "request": "nics", **more}


def test_a_nic_is_published_with_the_attributes_that_other_drivers_match() -> None:
    pool = pools.Pool("node-a", (pools.Nic("nic-0", "pci0000:50", 0, {"rdma": True}),))
    (device,) = slices.parse(pool.slice()).devices
    assert device.attributes == {
        names.ATTR_PCIE_ROOT: "pci0000:50",
        names.ATTR_NUMA_NODE: 0,
        "rdma": True,
    }
    assert (device.taints, device.allow_multiple) == ((), False)


def test_a_shared_nic_has_capacity_and_a_tainted_nic_its_taints() -> None:
    taint = {"key": "example.com/down", "effect": "NoSchedule"}
    policy = {"value": "10", "requestPolicy": {"default": "1", "validValues": ["1"]}}
    capacity: dict[str, Any] = {"bandwidth": "100G", "vfs": policy}
    nic = pools.Nic("nic-0", capacity=capacity, shared=True, taints=(taint,))
    assert nic.render() == {
        "name": "nic-0",
        "capacity": {"bandwidth": {"value": "100G"}, "vfs": policy},
        "allowMultipleAllocations": True,
        "taints": [taint],
    }


def test_a_pool_is_of_its_node_unless_it_is_attached_over_the_network() -> None:
    nics = (pools.Nic("nic-0"),)
    local = pools.Pool("node-a", nics).slice()["spec"]
    assert local["nodeName"] == "node-a"
    everywhere = pools.Pool("fabric", nics, {"allNodes": True}).slice()["spec"]
    assert everywhere["allNodes"] is True
    selected = pools.Pool("rack", nics, {"nodeSelector": objects.on_host("node-b")}).slice()["spec"]
    assert selected["nodeSelector"] == objects.on_host("node-b")
    assert not {"nodeName"} & (everywhere.keys() | selected.keys())


def test_there_is_a_nic_beside_each_pcie_root_that_devices_publish() -> None:
    roots = ("pci0000:61", "pci0000:50", "pci0000:61")
    near = [
        {
            "name": f"gpu-{number}",
            "attributes": {
                names.ATTR_PCIE_ROOT: {"string": root},
                names.ATTR_NUMA_NODE: {"int": int(root == "pci0000:61")},
            },
        }
        for number, root in enumerate(roots)
    ]
    counters: prepared_claims.Raw = {"spec": {"sharedCounters": []}}
    published = [counters, objects.a_slice("node-a", [*near, objects.a_device("far")])]
    assert pools.beside(published) == (
        pools.Nic("nic-0", "pci0000:50", 0),
        pools.Nic("nic-1", "pci0000:61", 1),
    )


def test_a_nic_of_another_claim_is_refused_until_that_is_unprepared() -> None:
    claims = prepared_claims.PreparedClaims()
    claims.prepare("a", [a_result()])
    claims.prepare("a", [a_result()])
    with pytest.raises(prepared_claims.Refused, match="node-a/nic-0 still prepared for claim a"):
        claims.prepare("b", [a_result(), a_result("nic-1")])
    claims.prepare("c", [a_result("nic-1")])
    assert claims.unprepare("a") == ("node-a/nic-0",)
    assert claims.unprepare("a") == ()
    claims.prepare("b", [a_result()])


def test_shares_and_admin_access_exclude_nobody_but_a_whole_nic_does() -> None:
    claims = prepared_claims.PreparedClaims()
    claims.prepare("a", [a_result(**SHARED)])
    claims.prepare("b", [a_result(**OTHER_SHARE)])
    claims.prepare("admin", [a_result(adminAccess=True)])
    with pytest.raises(prepared_claims.Refused):
        claims.prepare("whole", [a_result()])


def test_the_spec_of_a_claim_has_a_variable_for_each_nic() -> None:
    spec = prepared_claims.cdi_spec(
        "nic.example.com/nic", "u", [a_result("nic-3"), a_result(**SHARED)]
    )
    assert spec["kind"] == "nic.example.com/nic"
    assert {device["name"]: device["containerEdits"]["env"] for device in spec["devices"]} == {
        "u-nic-3": ["NIC_3=nic-3"],
        f"u-nic-0-{SHARED['shareID']}": ["NIC_0=nic-0"],
    }
