"""MIG by unmodified pynvml, on the simulated library."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from simulator import control, layout
from tests.contract import worlds

Handle = Any
"""What stands for pynvml's pointer types, which have no names."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="MIG is root's")


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    with worlds.running(tmp_path, "hgx-h100") as library, worlds.initialised(library):
        yield tmp_path


@pytest.fixture
def gpu(base: Path) -> Handle:
    """A GPU with MIG on."""
    del base
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceSetMigMode(handle, 1) == pynvml.NVML_SUCCESS
    return handle


def create(gpu: Handle, profile: int, start: int, size: int) -> Handle:
    arguments = ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(start, size))
    return pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, arguments)


def a_device(gpu: Handle, start: int) -> tuple[Handle, Handle, Handle]:
    """A whole 1g device: GPU instance, compute instance, MIG device."""
    instance = create(gpu, 19, start, 1)
    info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, 0, 0)
    compute = pynvml.nvmlGpuInstanceCreateComputeInstance(instance, info.id)
    return instance, compute, pynvml.nvmlComputeInstanceGetInfo(compute).device


def address(handle: Handle) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def listed(call: Any, source: Handle, profile: int, kind: Any, most: int) -> list[Any]:
    count, result = ctypes.c_uint(), (kind * most)()
    call(source, profile, result, ctypes.byref(count))
    return list(result)[: count.value]


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize("version", [1, 2])
def test_profile_infos_of_both_versions_agree_with_the_guide(version: int) -> None:
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, 2, version)
    assert (info.id, info.sliceCount, info.instanceCount) == (9, 3, 2)
    assert (info.multiprocessorCount, info.copyEngineCount, info.decoderCount) == (60, 3, 3)
    assert (info.jpegCount, info.ofaCount, info.memorySizeMB) == (3, 0, 40448)
    if version == 2:
        assert info.name == "MIG 3g.40gb"
    code = worlds.code_of(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 5, version)
    assert code == pynvml.NVML_ERROR_NOT_SUPPORTED


@pytest.mark.usefixtures("base")
def test_placements_can_be_counted_first_and_then_read() -> None:
    gpu, count = pynvml.nvmlDeviceGetHandleByIndex(0), ctypes.c_uint()
    answer = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    answer(gpu, 15, None, ctypes.byref(count))
    assert count.value == 4
    places = listed(answer, gpu, 15, pynvml.c_nvmlGpuInstancePlacement_t, 4)
    assert [(entry.start, entry.size) for entry in places] == [(0, 2), (2, 2), (4, 2), (6, 2)]


def test_an_instance_is_made_found_and_destroyed(gpu: Handle) -> None:
    instance, compute, device = a_device(gpu, 4)
    info = pynvml.nvmlGpuInstanceGetInfo(instance)
    assert (info.id, info.profileId, info.placement.start, info.placement.size) == (11, 19, 4, 1)
    assert address(info.device) == address(gpu)
    assert address(pynvml.nvmlDeviceGetGpuInstanceById(gpu, 11)) == address(instance)
    results = listed(pynvml.nvmlDeviceGetGpuInstances, gpu, 19, pynvml.c_nvmlGpuInstance_t, 7)
    assert [address(result) for result in results] == [address(instance)]
    info_value = pynvml.nvmlComputeInstanceGetInfo(compute)
    assert address(info_value.gpuInstance) == address(instance)
    assert (
        info_value.id,
        info_value.profileId,
        info_value.placement.start,
        info_value.placement.size,
    ) == (0, 0, 0, 1)
    assert pynvml.nvmlDeviceIsMigDeviceHandle(device).value == 1
    code = worlds.code_of(pynvml.nvmlGpuInstanceDestroy, instance)
    assert code == pynvml.NVML_ERROR_IN_USE
    pynvml.nvmlComputeInstanceDestroy(compute)
    pynvml.nvmlGpuInstanceDestroy(instance)
    code = worlds.code_of(pynvml.nvmlDeviceGetGpuInstanceById, gpu, 11)
    assert code == pynvml.NVML_ERROR_NOT_FOUND


def test_a_taken_placement_is_insufficient_resources(gpu: Handle) -> None:
    create(gpu, 9, 0, 4)
    code = worlds.code_of(create, gpu, 14, 2, 2)
    assert code == pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 14) == 1
    pynvml.nvmlDeviceCreateGpuInstance(gpu, 14)
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 14) == 0


def test_the_walk_meets_gaps(gpu: Handle) -> None:
    devices = [a_device(gpu, start) for start in range(3)]
    pynvml.nvmlComputeInstanceDestroy(devices[1][1])
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu) == 7
    walk = pynvml.nvmlDeviceGetMigDeviceHandleByIndex
    assert address(walk(gpu, 2)) == address(devices[2][2])
    assert worlds.code_of(walk, gpu, 1) == pynvml.NVML_ERROR_NOT_FOUND


def test_a_mig_device_tells_its_ids_attributes_and_parent(gpu: Handle) -> None:
    _, _, device = a_device(gpu, 6)
    uuid = pynvml.nvmlDeviceGetUUID(device)
    assert uuid.startswith("MIG-")
    assert address(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == address(device)
    assert pynvml.nvmlDeviceGetName(device) == "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    assert pynvml.nvmlDeviceGetGpuInstanceId(device) == 13
    assert pynvml.nvmlDeviceGetComputeInstanceId(device) == 0
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
    assert address(parent) == address(gpu)
    has = pynvml.nvmlDeviceGetAttributes(device)
    assert (has.multiprocessorCount, has.gpuInstanceSliceCount, has.memorySizeMB) == (16, 1, 9984)
    assert pynvml.nvmlDeviceGetMemoryInfo(device).total == 9984 << 20


def test_capability_files_and_nodes_follow_the_instances(base: Path, gpu: Handle) -> None:
    position = layout.Layout(base)
    path = position.capabilities / "gpu0/mig/gi9"
    instance, compute, _ = a_device(gpu, 2)
    lines = (position.host_root / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines()
    for name in ("access", "ci0/access"):
        text = (path / name).read_text()
        minor = int(text.splitlines()[0].removeprefix("DeviceFileMinor: "))
        assert text == f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
        assert f"gpu0/gi9/{name} {minor}" in lines
        assert (position.capability_nodes / f"nvidia-cap{minor}").exists()
    pynvml.nvmlComputeInstanceDestroy(compute)
    pynvml.nvmlGpuInstanceDestroy(instance)
    assert not path.exists()
    assert {path.name for path in position.capability_nodes.iterdir()} == {
        "nvidia-cap1",
        "nvidia-cap2",
    }


def test_nvidia_smi_lists_mig_devices_below_their_gpu(base: Path, gpu: Handle) -> None:
    _, _, device = a_device(gpu, 0)
    instance = create(gpu, 9, 4, 4)
    part = pynvml.nvmlGpuInstanceCreateComputeInstance(instance, 0)
    uuids = [
        pynvml.nvmlDeviceGetUUID(entry)
        for entry in (device, pynvml.nvmlComputeInstanceGetInfo(part).device)
    ]
    smi = layout.Layout(base).driver_root / "usr/bin/nvidia-smi"
    done = subprocess.run([smi, "-L"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:3] == [
        f"  MIG 1g.10gb     Device  0: (UUID: {uuids[0]})",
        f"  MIG 1c.3g.40gb  Device  1: (UUID: {uuids[1]})",
    ]


def test_a_gpu_with_a_new_minor_number_moves_its_device_node_and_keeps_handles(base: Path) -> None:
    dev = layout.Layout(base).driver_root / "dev"
    control.send(base, "moves", "0")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceSetMigMode(handle, 1) == pynvml.NVML_SUCCESS
    assert pynvml.nvmlDeviceGetMinorNumber(handle) == 8
    assert (dev / "nvidia8").exists()
    assert not (dev / "nvidia0").exists()
    a_device(handle, 0)
    assert (layout.Layout(base).capabilities / "gpu8/mig/gi7/ci0/access").exists()
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 8


def test_a_mode_is_pending_while_another_client_has_a_shy_gpu_open(base: Path) -> None:
    smi = layout.Layout(base).driver_root / "usr/bin/nvidia-smi"

    def switch(gpu: int) -> str:
        command = [str(smi), "-i", str(gpu), "-mig", "1"]
        return subprocess.check_output(command, text=True)

    control.send(base, "shy", "0", "1")
    assert "MIG mode is in pending enable state for GPU 00000000:53:00.0:In use" in switch(0)
    assert switch(1) == "Enabled MIG Mode for GPU 00000000:64:00.0\nAll done.\n"
    assert pynvml.nvmlDeviceGetMigMode(pynvml.nvmlDeviceGetHandleByIndex(0)) == [0, 1]


class ProfileInfoV3(ctypes.Structure):
    """`nvmlGpuInstanceProfileInfo_v3_t`, which pynvml does not have."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("version", "id", "slices", "instances", "sm")),
        *((name, ctypes.c_uint) for name in ("copy", "decoder", "encoder", "jpeg", "ofa")),
        ("memory", ctypes.c_ulonglong),
        ("name", ctypes.c_char * 96),
        ("capabilities", ctypes.c_uint),
    )


def test_the_third_profile_structure_tells_who_has_graphics(tmp_path: Path) -> None:
    with worlds.running(tmp_path, "rtx-pro-6000") as library, worlds.initialised(library):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        answer = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetGpuInstanceProfileInfoV")
        document = {}
        for enum in (0x0, 0xA, 0xD):
            info = ProfileInfoV3(version=ctypes.sizeof(ProfileInfoV3) | 3 << 24)
            assert answer(gpu, enum, ctypes.byref(info)) == pynvml.NVML_SUCCESS
            document[info.name.decode()] = (info.id, info.encoder, info.memory, info.capabilities)
        assert document == {
            "MIG 1g.24gb": (14, 1, 24192, 0),
            "MIG 1g.24gb+gfx": (47, 1, 24192, 2),
            "MIG 1g.24gb-me": (67, 0, 24192, 0),
        }
