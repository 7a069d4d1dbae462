"""Devices that failed, by the taints of their drivers."""

import pytest

from driver import ids
from driver.resources.dra import slices
from driver.scheduling.preemption import faulty
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects


@pytest.mark.parametrize(
    ("managed", "faults"),
    [(frozenset({"gpu.nvidia.com"}), ["gpu-0"]), (frozenset[str](), [])],
)
def test_a_taint_of_nvidias_driver_is_a_fault_of_its_managed_gpus(
    managed: frozenset[str], faults: list[str]
) -> None:
    xid = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
    nvidia = objects.a_slice("node-a", [objects.a_device("gpu-0", taints=[xid])], "gpu.nvidia.com")
    view = cluster_state.ClusterState(snapshots.DRIVER, other_drivers=managed)
    parsed = slices.parse(nvidia)
    view.set_slice(parsed.name, parsed)
    view.set_node(ids.NodeName("node-a"), objects.node("node-a"))
    held = snapshots.holding("c", "node-a", {"device": "gpu-0", "driver": "gpu.nvidia.com"})
    view.set_claim(held.key, held)
    failed = faulty.faulty_devices(view, ids.NodeName("node-a"))
    assert [fault.device.device for fault in failed] == faults
