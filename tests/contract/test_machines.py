"""Every machine, walked by unmodified pynvml: what it says of itself holds together."""

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pynvml
import pytest

from simulator import codes, layout, profile
from tests.contract import worlds

ABSENT = {pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}


@pytest.fixture(params=profile.names(), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def base(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp(name)
    with worlds.running(path, name) as library, worlds.initialised(Path(library)):
        yield path


@pytest.fixture
def machine(name: str, base: Path) -> profile.Profile:
    del base
    return profile.load(name)


def handles() -> list[object]:
    return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]


def answer(call: Callable[..., object], *arguments: object) -> Any:
    """Return what it says, or None where the machine does not have it."""
    try:
        return call(*arguments)
    except pynvml.NVMLError as e:
        if e.value not in ABSENT:
            raise
        return None


def test_gpus_are_all_there_with_distinct_identities(machine: profile.Profile) -> None:
    results = handles()
    assert len(results) == len(machine.gpus)
    for identity in (pynvml.nvmlDeviceGetUUID, pynvml.nvmlDeviceGetMinorNumber):
        assert len({identity(handle) for handle in results}) == len(results)


def test_figures_are_the_products(machine: profile.Profile) -> None:
    slots = sorted(machine.gpus, key=lambda slot: slot.pci)
    for handle, slot in zip(handles(), slots, strict=True):
        product = machine.products[slot.product]
        assert pynvml.nvmlDeviceGetName(handle) == product.name
        assert pynvml.nvmlDeviceGetMemoryInfo(handle).total == product.memory_mib.total << 20
        assert pynvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Total == product.bar1_mib << 20
        assert pynvml.nvmlDeviceGetMaxClockInfo(handle, 1) == product.clocks_mhz.graphics
        assert pynvml.nvmlDeviceGetClockInfo(handle, 2) <= product.clocks_mhz.memory
        generation = pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
        assert generation == product.pcie.generation
        assert pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle) == product.pcie.width
        addressing = answer(pynvml.nvmlDeviceGetAddressingMode, handle)
        assert addressing in {None, product.addressing}
        assert answer(pynvml.nvmlDeviceGetFanSpeed, handle) is None
        assert pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle) == []
        assert pynvml.nvmlDeviceGetMPSComputeRunningProcesses(handle) == []
        assert pynvml.nvmlDeviceGetPerformanceState(handle) == 0
        assert pynvml.nvmlDeviceGetDisplayActive(handle) == 0
        assert answer(pynvml.nvmlDeviceGetDriverModel_v2, handle) is None
        assert pynvml.nvmlDeviceGetTemperature(handle, 0) == product.idle_celsius
        newer = answer(pynvml.nvmlDeviceGetTemperatureV, handle, 0)
        assert newer in {None, product.idle_celsius}


def test_only_products_with_mig_have_a_mode_and_profiles_that_fit(
    machine: profile.Profile,
) -> None:
    slots = sorted(machine.gpus, key=lambda slot: slot.pci)
    for handle, slot in zip(handles(), slots, strict=True):
        product = machine.products[slot.product]
        assert (answer(pynvml.nvmlDeviceGetMigMode, handle) is None) == (product.mig is None)
        infos = [
            answer(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, enum)
            for enum in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
        ]
        names = [info.name.removeprefix("MIG ") for info in infos if info]
        expected = product.mig.profiles.values() if product.mig else ()
        assert sorted(names) == sorted(mig_profile.name for mig_profile in expected)


def test_rows_are_remapped_or_pages_retired(machine: profile.Profile) -> None:
    del machine
    for handle in handles():
        rows = answer(pynvml.nvmlDeviceGetRemappedRows, handle)
        pages = answer(pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
        assert (rows is None) != (pages is None)


def test_the_fabric_tells_its_cluster_and_clique(machine: profile.Profile) -> None:
    for handle in handles():
        info = pynvml.c_nvmlGpuFabricInfo_v3_t()
        info.version = pynvml.nvmlGpuFabricInfo_v3
        reported = answer(pynvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(info))
        assert (reported is None) == (machine.fabric is None)
        if machine.fabric:
            assert bytes(info.clusterUuid).hex() == machine.fabric.cluster.replace("-", "")
            assert (info.cliqueId, info.state) == (machine.fabric.clique, 3)
            newest = {machine.products[slot.product].architecture for slot in machine.gpus}
            told_health = int(newest == {codes.Architecture.BLACKWELL})
            assert (info.status, info.healthSummary) == (0, told_health)


def test_links_end_at_switches_or_across_a_bridge_or_do_not_exist(
    machine: profile.Profile,
) -> None:
    slots = sorted(machine.gpus, key=lambda slot: slot.pci)
    for handle, slot in zip(handles(), slots, strict=True):
        nvlink = machine.products[slot.product].nvlink
        kind = answer(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, 0)
        switched = pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
        end = pynvml.NVML_NVLINK_DEVICE_TYPE_GPU if slot.bridge else switched
        assert kind == (end if nvlink else None)


def test_nvidia_smi_tells_the_same_gpus(machine: profile.Profile, base: Path) -> None:
    smi = layout.Layout(base).driver_root / "usr/bin/nvidia-smi"
    done = subprocess.run([smi, "-q", "-x"], capture_output=True, text=True, check=True)
    element = ET.fromstring(done.stdout)  # noqa: S314 - our own program's
    assert element.findtext("attached_gpus") == str(len(machine.gpus))
    assert [gpu.findtext("uuid") for gpu in element.iter("gpu")] == [
        pynvml.nvmlDeviceGetUUID(handle) for handle in handles()
    ]


def test_only_a_rack_is_told_by_its_gpus(machine: profile.Profile) -> None:
    for handle in handles():
        info = pynvml.c_nvmlPlatformInfo_v2_t()
        reported = answer(pynvml.nvmlDeviceGetPlatformInfo, handle, ctypes.byref(info))
        assert (reported is None) == (machine.platform is None)
        if machine.platform:
            assert info.chassisSerialNumber == machine.platform.chassis
            assert ord(info.slotNumber) == machine.platform.slot
            assert ord(info.moduleId) == pynvml.nvmlDeviceGetModuleId(handle)


def test_no_gpu_is_excluded_that_is_not_said_to_be(machine: profile.Profile) -> None:
    assert pynvml.nvmlGetExcludedDeviceCount() == sum(gpu.excluded for gpu in machine.gpus)
