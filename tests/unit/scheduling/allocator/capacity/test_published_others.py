"""Slices that AMD's and Intel's drivers published (tests/data/slices/README.md)."""

import pytest

from driver.resources.dra import pools, slices
from driver.scheduling.allocator.capacity import pool_layout, vocabulary
from driver.scheduling.allocator.policies import base
from tests.support.builders import managed_gpus

MIB, GIB = 1 << 20, 1 << 30
MI300X = "AMD_Instinct_MI300X_OAM"


def layout(name: str) -> pool_layout.PoolLayout:
    pool = pools.newest_generation([slices.parse(raw) for raw in managed_gpus.recorded(name)])
    assert pool.complete
    return pool_layout.get_layout(pool)


def gpu_of(gpus: pool_layout.PoolLayout, device: str) -> base.GpuState:
    return gpus.idle_gpus[gpus.faces[device].gpu]


def test_whole_gpus_of_amd_have_product_and_memory() -> None:
    gpus = layout("amd")
    assert len(gpus.idle_gpus) == 3
    assert {gpu.model.product for gpu in gpus.idle_gpus} == {MI300X}
    for name in ("gpu-1-128", "gpu-2-129"):
        assert gpus.faces[name].mode == base.WHOLE
        assert gpu_of(gpus, name).model.memory == 196592 * MIB


def test_the_first_partition_of_amds_gpu_counts_beside_the_seven_others() -> None:
    gpus = layout("amd")
    parts = [face for face in gpus.faces.values() if face.mode == base.MIG]
    assert len(parts) == 8
    assert gpus.faces["gpu-3-130"] in parts
    assert len({face.gpu for face in parts}) == 1
    cut = gpu_of(gpus, "gpu-3-130")
    assert cut.free_slices == 0xFF
    assert {entry.profile for entry in cut.model.placements} == {"cpx_nps4"}
    assert {entry.memory for entry in cut.model.placements} == {24560 * MIB}


def test_models_of_intel_are_their_products() -> None:
    gpus = layout("intel")
    products = sorted((gpu.model.product, gpu.model.memory) for gpu in gpus.idle_gpus)
    assert products == [
        ("B60", 24480 * MIB),
        ("Flex 170", 16 * GIB),
        ("Max 1550", 128 * GIB),
        ("Max 1550", 128 * GIB),
    ]


def test_virtual_functions_of_intel_are_parts_of_their_gpu() -> None:
    gpus = layout("intel")
    whole, *functions = (gpus.faces[f"0000-ca-00-{number}-0x56c0"] for number in range(3))
    assert whole.mode == base.WHOLE
    assert [(face.gpu, face.mode) for face in functions] == [(whole.gpu, base.MIG)] * 2
    assert sorted(face.mask for face in functions) == [1, 2]
    assert gpus.idle_gpus[whole.gpu].free_slices == 0b11


@pytest.mark.parametrize("name", ["amd", "intel"])
def test_every_gpu_has_its_pcie_root_and_no_numa_node(name: str) -> None:
    locations = layout(name).locations
    assert len({location.pcie_root for location in locations}) == len(locations)
    for location in locations:
        assert location.pcie_root.startswith("pci0000:")
        assert location.numa_node == base.UNKNOWN_NUMA


def test_a_function_is_cordoned_with_its_gpu() -> None:
    (resource_slice,) = (slices.parse(raw) for raw in managed_gpus.recorded("intel"))
    keys = {
        str(device.name): vocabulary.gpu_key(managed_gpus.INTEL, device)
        for device in resource_slice.devices
    }
    assert keys["0000-ca-00-2-0x56c0"] == keys["0000-ca-00-0-0x56c0"] == "0000:ca:00.0"
    assert keys["0000-29-00-0-0x0bd5"] == "0000:29:00.0"
