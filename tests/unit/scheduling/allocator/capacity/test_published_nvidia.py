"""Slices that NVIDIA's driver published: whole GPUs, MIG on demand, fixed MIG devices.

Recorded of its release 0.5 on simulated machines (tests/data/slices/README.md).
"""

import json
from pathlib import Path

import pytest

from driver.resources.dra import pools, slices
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.allocator.policies import base

DATA = Path(__file__).parents[4] / "data" / "slices"
MIB = 1 << 20
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"


def layout(name: str) -> pool_layout.PoolLayout:
    items = json.loads((DATA / f"nvidia-{name}.json").read_text())["items"]
    pool = pools.newest_generation([slices.parse(item) for item in items])
    assert pool.complete
    return pool_layout.get_layout(pool)


def modes(name: str) -> list[str]:
    return sorted({face.mode for face in layout(name).faces.values()})


def test_whole_gpus_have_product_memory_and_a_pcie_root_each() -> None:
    gpus = layout("whole")
    assert [gpu.model.product for gpu in gpus.idle_gpus] == [H100] * 8
    assert {gpu.model.memory for gpu in gpus.idle_gpus} == {81559 * MIB}
    assert modes("whole") == [base.WHOLE]
    assert len({location.pcie_root for location in gpus.locations}) == 8
    assert sorted(location.numa_node for location in gpus.locations) == [0] * 4 + [1] * 4


def test_parts_on_demand_are_of_their_gpu_with_its_slices_and_memory() -> None:
    gpus = layout("dynamic-mig")
    assert [gpu.model.product for gpu in gpus.idle_gpus] == [H100] * 2
    assert modes("dynamic-mig") == [base.MIG, base.WHOLE]
    whole, part = gpus.faces["gpu-0"], gpus.faces["gpu-0-mig-3g40gb-9-4"]
    assert (whole.gpu, whole.mode, whole.mask) == (part.gpu, base.WHOLE, 0xFF)
    assert (part.mode, part.mask) == (base.MIG, 0xF0)
    assert gpus.faces["gpu-1"].gpu != whole.gpu
    model = gpus.idle_gpus[whole.gpu].model
    assert model.all_slices == 0xFF
    assert model.memory == whole.memory
    placements = {(entry.profile, entry.mask) for entry in model.placements}
    assert {("1g.10gb", 1 << index) for index in range(7)} <= placements
    assert ("7g.80gb", 0xFF) in placements


def test_fixed_parts_are_of_their_gpu_beside_whole_ones() -> None:
    gpus = layout("static-mig")
    assert modes("static-mig") == [base.MIG, base.WHOLE]
    assert len(gpus.idle_gpus) == 8
    parts = {name: face for name, face in gpus.faces.items() if name.startswith("gpu-0-")}
    assert {face.mask for face in parts.values()} == {0b1, 0b10, 0b1100, 0b11110000}
    assert len({face.gpu for face in parts.values()}) == 1
    (index, *_) = {face.gpu for face in parts.values()}
    cut = gpus.idle_gpus[index]
    assert (cut.model.product, cut.free_slices) == (A100, 0xFF)
    profiles = sorted(entry.profile for entry in cut.model.placements)
    assert profiles == ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]
    assert gpus.idle_gpus[gpus.faces["gpu-7"].gpu].model.placements == ()


@pytest.mark.parametrize("name", ["whole", "dynamic-mig", "static-mig"])
def test_every_gpu_has_its_root_and_numa_node(name: str) -> None:
    for location in layout(name).locations:
        assert location.pcie_root.startswith("pci0000:")
        assert location.numa_node != base.UNKNOWN_NUMA
