"""GPUs of other drivers, as their sources say that they publish them."""

from typing import Any

import pytest

from driver.resources.dra import pools, slices
from driver.scheduling.allocator.capacity import pool_layout, vocabulary
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects

GIB = 1 << 30
NVIDIA, AMD, INTEL = "gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"


def device(name: str, memory: int, more: Any = (), **attributes: Any) -> objects.Raw:
    capacity = {"memory": {"value": str(memory * GIB)}, **dict(more)}
    return objects.with_values(objects.a_device(name, capacity=capacity, taints=[]), **attributes)


def layout(driver: str, *devices: objects.Raw) -> pool_layout.PoolLayout:
    parsed = slices.parse(objects.a_slice("node-a", [*devices], driver))
    return pool_layout.get_layout(pools.newest_generation([parsed]))


def static_mig(name: str, parent: str, profile: str, *places: int) -> objects.Raw:
    return device(
        name,
        10 * len(places),
        {f"memorySlice{index}": {"value": "1"} for index in places},
        type="mig",
        uuid=f"MIG-{name}",
        parentUUID=parent,
        profile=profile,
        productName="NVIDIA A100",
    )


def test_static_mig_devices_of_nvidia_are_parts_of_their_parents() -> None:
    gpus = layout(
        NVIDIA,
        static_mig("a-0", "GPU-a", "1g.10gb", 0),
        static_mig("a-1", "GPU-a", "2g.20gb", 2, 3),
        static_mig("b-0", "GPU-b", "3g.40gb", 0, 1, 2, 3),
    )
    assert [face.gpu for face in gpus.faces.values()] == [0, 0, 1]
    assert [face.mode for face in gpus.faces.values()] == [base.MIG] * 3
    assert [gpu.free_slices for gpu in gpus.idle_gpus] == [0b1101, 0b1111]


def test_whole_gpus_of_nvidia_have_their_product_and_place() -> None:
    gpus = layout(
        NVIDIA,
        device(
            "gpu-0",
            80,
            type="gpu",
            uuid="GPU-a",
            productName="NVIDIA H100",
            **{"resource.kubernetes.io/pcieRoot": "pci0000:17"},
        ),
        device("gpu-vfio-0", 80, type="vfio", uuid="other", productName="NVIDIA H100"),
    )
    (gpu,) = gpus.idle_gpus
    assert (gpu.model.product, gpu.model.memory) == ("NVIDIA H100", 80 * GIB)
    assert gpus.locations[0].pcie_root == "pci0000:17"


def test_a_gpu_that_nvidia_shares_by_capacity_is_a_shared_one() -> None:
    shared = {**device("gpu-0", 80, type="gpu", uuid="GPU-a"), "allowMultipleAllocations": True}
    assert layout(NVIDIA, shared).faces["gpu-0"].mode == base.TIME_SLICING


def test_partitions_of_amd_count_as_equal_parts_of_their_gpu() -> None:
    parts = [
        device(
            f"gpu-{index}-{128 + index}",
            24,
            type="amdgpu-partition",
            parentPciAddr="0000:85:00.0",
            partitionProfile="cpx_nps4",
            productName="AMD_Instinct_MI300X_OAM",
        )
        for index in range(8)
    ]
    whole = device("gpu-8-136", 192, type="amdgpu", pciAddr="0000:95:00.0", productName="MI300X")
    gpus = layout(AMD, *parts, whole)
    assert [gpu.model.memory for gpu in gpus.idle_gpus] == [24 * GIB, 192 * GIB]
    assert gpus.idle_gpus[0].free_slices == 0xFF
    assert gpus.idle_gpus[1].model.placements == ()


def test_a_model_of_intel_is_its_product() -> None:
    gpus = layout(INTEL, device("0000-03-00-0-0x56a0", 16, model="Flex 170", family="Data Center"))
    assert [gpu.model.product for gpu in gpus.idle_gpus] == ["Flex 170"]


def test_numa_nodes_may_be_a_list() -> None:
    numa = "resource.kubernetes.io/numaNode"
    listed = device("gpu-0", 80, type="gpu", uuid="GPU-a")
    listed["attributes"][numa] = {"ints": [1]}
    assert layout(NVIDIA, listed).locations[0].numa_node == 1


@pytest.mark.parametrize(
    ("others", "drivers"),
    [(frozenset({NVIDIA}), [snapshots.DRIVER, NVIDIA]), (frozenset(), [snapshots.DRIVER])],
)
def test_only_managed_drivers_count_as_gpus(others: frozenset[str], drivers: list[str]) -> None:
    view = cluster_state.ClusterState(snapshots.DRIVER, other_drivers=others)
    candidates = (snapshots.DRIVER, NVIDIA, "nic.example.com")
    assert [driver for driver in candidates if vocabulary.is_gpu_driver(view, driver)] == drivers
