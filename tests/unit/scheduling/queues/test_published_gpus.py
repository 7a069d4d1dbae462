"""Amounts of GPUs as AMD's and Intel's drivers published them (tests/data/slices/README.md)."""

from driver.resources.dra import slices
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import managed_gpus, objects

MIB, GIB = 1 << 20, 1 << 30
MI300X = "AMD_Instinct_MI300X_OAM"


def fleet(name: str, driver: str) -> cluster_state.ClusterState:
    """A node with the recorded devices of a managed driver."""
    view = cluster_state.ClusterState(snapshots.DRIVER, other_drivers=frozenset({driver}))
    for raw in managed_gpus.recorded(name):
        parsed = slices.parse(raw)
        view.set_slice(parsed.name, parsed)
    view.set_device_class("gpu", objects.device_class("gpu", f'device.driver == "{driver}"'))
    return view


def usage(view: cluster_state.ClusterState, driver: str, device: str) -> queue_resources.Amounts:
    held = snapshots.holding("c", "node-a", {"device": device, "driver": driver})
    assert held.allocation is not None
    return queue_resources.results_amounts(view, held.allocation.results)


def test_gpus_of_amd_have_their_memory_and_partitions_are_parts_of_one() -> None:
    view = fleet("amd", managed_gpus.AMD)
    amounts = queue_resources.capacity(view)
    assert (amounts.gpus, amounts.models) == (3000, {MI300X: 3000})
    assert amounts.memory == (2 * 196592 + 8 * 24560) * MIB
    whole = usage(view, managed_gpus.AMD, "gpu-1-128")
    assert (whole.gpus, whole.memory) == (1000, 196592 * MIB)
    part = usage(view, managed_gpus.AMD, "gpu-10-140")
    assert (part.gpus, part.memory, part.models) == (125, 24560 * MIB, {MI300X: 125})


def test_gpus_of_intel_have_their_memory_and_functions_are_parts_of_one() -> None:
    view = fleet("intel", managed_gpus.INTEL)
    amounts = queue_resources.capacity(view)
    assert amounts.gpus == 4000
    assert amounts.models == {"Max 1550": 2000, "Flex 170": 1000, "B60": 1000}
    assert amounts.memory == 2 * 128 * GIB + 16 * GIB + 24480 * MIB
    function = usage(view, managed_gpus.INTEL, "0000-ca-00-1-0x56c0")
    assert (function.gpus, function.models) == (500, {"Flex 170": 500})


def test_a_request_of_any_device_counts_its_smallest_kind() -> None:
    claim = objects.claim("c", objects.a_request("gpu", deviceClassName="gpu"))
    amounts = queue_resources.requested_amounts(fleet("amd", managed_gpus.AMD), [claim])
    assert amounts.gpus == 125
