"""Whole specs, as a runtime gets them; the driver root's path stands as DRIVER in the files.

TOLD is where the files are that tell containers of their devices.
"""

import json
from pathlib import Path

import pytest

from driver import ids
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint
from tests.fakes import gpunode
from tests.support.builders import allocated_claims

GOLDEN = Path(__file__).parents[3] / "data/cdi"
FILES = (
    f"{gpunode.LIBRARIES}/libnvidia-allocator.so.{gpunode.VERSION}",
    f"{gpunode.LIBRARIES}/vdpau/libvdpau_nvidia.so.{gpunode.VERSION}",
    "usr/share/glvnd/egl_vendor.d/10_nvidia.json",
    "etc/vulkan/icd.d/nvidia_icd.json",
    f"lib/firmware/nvidia/{gpunode.VERSION}/gsp_ga10x.bin",
)


@pytest.fixture
def node(tmp_path: Path) -> gpunode.GpuNode:
    gpu_node = gpunode.GpuNode(tmp_path)
    for name in FILES:
        gpunode.write(gpu_node.root / name, "")
    return gpu_node


def a_record(process: gpunode.Process) -> checkpoint.Record:
    device = steps.PlannedDevice(
        request="gpu",
        pool="node",
        device=ids.DeviceName("gpu-0"),
        gpu=process.gpus.current().gpus[0].uuid,
        cdi_id=f"{gpunode.KIND}=one",
        edits=steps.Edits((process.gpus.current().gpus[0].uuid,)),
    )
    return checkpoint.Record(
        allocated_claims.a_ref(), checkpoint.State.STARTED, "boot", (device,), ()
    )


@pytest.mark.parametrize("name", ["without-hook", "with-hook"])
def test_a_claims_spec_is_the_one_on_file(node: gpunode.GpuNode, name: str) -> None:
    if name == "with-hook":
        gpunode.write(node.host / "usr/bin/nvidia-cdi-hook", "")
    process = node.process()
    written = process.executor.specs.render(a_record(process)).decode()
    expected = (GOLDEN / f"{name}.json").read_text()
    shown = written.replace(str(node.root), "DRIVER").replace(str(node.told), "TOLD")
    assert shown == expected


def test_a_claims_spec_has_the_hosts_paths_where_the_plugin_sees_them_elsewhere(
    node: gpunode.GpuNode,
) -> None:
    node.host_seen_at = node.base
    process = node.process()
    for _ in range(2):
        written = process.executor.specs.render(a_record(process)).decode()
        assert str(node.base) not in written
        shown = written.replace('"/driver-root', '"DRIVER').replace('"/told', '"TOLD')
        assert shown == (GOLDEN / "without-hook.json").read_text()


def test_a_second_spec_is_identical_and_a_new_hook_is_in_the_next(
    node: gpunode.GpuNode,
) -> None:
    process = node.process()
    specs, record = process.executor.specs, a_record(process)
    first = specs.render(record)
    assert specs.render(record) == first
    gpunode.write(node.host / "usr/bin/nvidia-cdi-hook", "")
    hooked = specs.render(record)
    assert specs.render(record) == hooked
    assert len(json.loads(hooked)["containerEdits"]["hooks"]) == 4
    assert "hooks" not in json.loads(first)["containerEdits"]
