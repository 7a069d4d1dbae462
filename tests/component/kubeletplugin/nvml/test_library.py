"""The real adapter, by unmodified pynvml, on the simulated C library."""

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from driver import errors
from driver.devices import mig
from driver.kubeletplugin.nvml import library as nvml
from simulator import builder, control, layout, machine, node, profile, store
from tests.fakes import loading
from tests.fakes import nvml as fakes

SEED = "node-1"
WIDE = (2, 15)
"""Size and profile id of a 1g.20gb."""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    builder.build(tmp_path, store.create(tmp_path, "hgx-h100", SEED))
    return tmp_path


def start(base: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "simulator", "run", str(base)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready: ")
    return process


def stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.communicate(timeout=10)


@pytest.fixture
def running(base: Path) -> Iterator[Path]:
    process = start(base)
    yield base
    stop(process)


@pytest.fixture
def adapter(base: Path) -> Iterator[nvml.NvmlLibrary]:
    position = layout.Layout(base)
    nvml_library = nvml.NvmlLibrary(position.driver_root, position.host_root)
    yield nvml_library
    nvml_library.close()
    loading.forget()


@pytest.mark.parametrize("name", profile.names())
def test_the_adapter_sees_of_every_machine_what_the_fake_sees(tmp_path: Path, name: str) -> None:
    builder.build(tmp_path, store.create(tmp_path, name, SEED))
    running = node.Node(tmp_path)
    running.start()
    position = layout.Layout(tmp_path)
    library = nvml.NvmlLibrary(position.driver_root, position.host_root)
    try:
        seen = library.inventory()
    finally:
        library.close()
        loading.forget()
        running.stop()
    assert seen == fakes.FakeNvml(machine.build(name, seed=SEED)).inventory()
    assert seen.gpus
    assert not seen.broken


@pytest.mark.usefixtures("running")
def test_instances_that_exist_are_seen_with_their_places(adapter: nvml.NvmlLibrary) -> None:
    adapter.inventory()
    third = pynvml.nvmlDeviceGetHandleByIndex(2)
    assert pynvml.nvmlDeviceSetMigMode(third, 1) == pynvml.NVML_SUCCESS
    whole, empty = partition(third, 4), partition(third, 0)
    compute(whole, 2)
    result = adapter.inventory().gpus[2].mig
    assert result is not None
    assert result.enabled
    spanning = result.instance(gpu_instance(whole))
    assert spanning is not None
    assert (spanning.profile_id, spanning.placement) == (9, mig.Placement(4, 4))
    assert str(spanning.uuid).startswith("MIG-")
    bare = result.instance(gpu_instance(empty))
    assert bare is not None
    assert bare.uuid is None
    compute(empty, 0)
    again = adapter.inventory().gpus[2].mig
    assert again is not None
    assert again.instance(gpu_instance(empty)) == bare


@pytest.mark.usefixtures("running")
def test_a_part_of_a_wide_instance_is_not_taken_for_the_whole_of_it(
    adapter: nvml.NvmlLibrary,
) -> None:
    """Make it as `nvidia-smi mig -cgi 1g.20gb -cci 0` does: all slices, not all multiprocessors."""
    adapter.inventory()
    fourth = pynvml.nvmlDeviceGetHandleByIndex(3)
    assert pynvml.nvmlDeviceSetMigMode(fourth, 1) == pynvml.NVML_SUCCESS
    part, whole = (partition(fourth, start, *WIDE) for start in (0, 2))
    compute(part, pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE)
    compute(whole, pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1)
    result = adapter.inventory().gpus[3].mig
    assert result is not None
    uuids = {gpu_instance(entry): result.instance(gpu_instance(entry)) for entry in (part, whole)}
    assert [uuid is not None and uuid.uuid is not None for uuid in uuids.values()] == [False, True]


def partition(device: object, start: int, size: int = 4, profile: int = 9) -> object:
    """A 3g.40gb, or another profile, at a place, without compute instances."""
    arguments = ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(start, size))
    return pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, profile, arguments)


def compute(instance: object, profile_id: int) -> None:
    pynvml.nvmlGpuInstanceCreateComputeInstance(instance, profile_id)


def gpu_instance(instance: object) -> int:
    return int(pynvml.nvmlGpuInstanceGetInfo(instance).id)


@pytest.mark.usefixtures("running")
def test_the_links_of_a_switched_board_reach_every_gpu(adapter: nvml.NvmlLibrary) -> None:
    inventory = adapter.inventory()
    assert len(inventory.gpus) == 8
    assert all(len(gpu.nvlink_peers) == 7 for gpu in inventory.gpus)


def test_the_links_of_a_bridge_reach_the_other_gpu_of_the_pair(tmp_path: Path) -> None:
    builder.build(tmp_path, store.create(tmp_path, "a30-bridged", SEED))
    process = start(tmp_path)
    position = layout.Layout(tmp_path)
    adapter = nvml.NvmlLibrary(position.driver_root, position.host_root)
    try:
        gpus = adapter.inventory().gpus
    finally:
        adapter.close()
        loading.forget()
        stop(process)
    pairs = {gpu.pci: list(gpu.nvlink_peers) for gpu in gpus}
    low, low_too, high, high_too = pairs
    assert pairs == {low: [low_too], low_too: [low], high: [high_too], high_too: [high]}


def test_a_lost_gpu_is_counted_and_the_others_are_read(
    adapter: nvml.NvmlLibrary, running: Path
) -> None:
    control.send(running, "lose", "3")
    inventory = adapter.inventory()
    assert len(inventory.gpus) == 7
    (broken,) = inventory.broken
    assert broken.location == "GPU at index 3"
    assert "NVML error 15" in broken.problem
    control.send(running, "restore", "3")
    assert len(adapter.inventory().gpus) == 8


def test_a_gpu_that_goes_and_returns_hides_no_other(
    adapter: nvml.NvmlLibrary, running: Path
) -> None:
    uuids = [gpu.uuid for gpu in adapter.inventory().gpus]
    control.send(running, "remove", "0")
    assert [gpu.uuid for gpu in adapter.inventory().gpus] == uuids[1:]
    control.send(running, "restore", "0")
    assert [gpu.uuid for gpu in adapter.inventory().gpus] == uuids


def test_a_driver_that_is_not_loaded_is_a_fault_until_it_is(
    adapter: nvml.NvmlLibrary, base: Path
) -> None:
    with pytest.raises(errors.DeviceFault) as fault:
        adapter.inventory()
    assert fault.value.code == pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    process = start(base)
    assert len(adapter.inventory().gpus) == 8
    stop(process)
    with pytest.raises(errors.DeviceFault):
        adapter.inventory()
    process = start(base)
    assert len(adapter.inventory().gpus) == 8
    stop(process)


def test_a_root_without_the_library_is_a_fault_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(errors.DeviceFault, match=r"libnvidia-ml\.so\.1") as fault:
        nvml.NvmlLibrary(tmp_path, tmp_path).inventory()
    assert fault.value.code == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND


@pytest.mark.usefixtures("running")
def test_closing_twice_is_harmless_and_reading_opens_again(adapter: nvml.NvmlLibrary) -> None:
    adapter.inventory()
    adapter.close()
    adapter.close()
    assert len(adapter.inventory().gpus) == 8


def _utf16(_handle: object) -> str:
    return b"\xff\xfeN".decode()


@pytest.mark.parametrize(
    ("call", "answer", "problem"),
    [
        ("nvmlDeviceGetName", lambda _handle: "NVIDIA\x00\x07", "is not a name"),
        ("nvmlDeviceGetName", _utf16, "'utf-8' codec can't decode byte 0xff"),
        ("nvmlDeviceGetUUID", lambda _handle: "GPU-; rm -rf", "is not a GPU's UUID"),
    ],
)
@pytest.mark.usefixtures("running")
def test_a_gpu_that_talks_garbage_is_broken_and_hides_no_other(
    adapter: nvml.NvmlLibrary,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    answer: Callable[[object], str],
    problem: str,
) -> None:
    real = getattr(pynvml, call)

    def second_only(handle: object) -> object:
        return answer(handle) if pynvml.nvmlDeviceGetIndex(handle) == 1 else real(handle)

    second_only.__name__ = call
    monkeypatch.setattr(pynvml, call, second_only)
    inventory = adapter.inventory()
    assert len(inventory.gpus) == 7
    (broken,) = inventory.broken
    assert broken.location == "0000:64:00.0"
    assert call in broken.problem
    assert problem in broken.problem


OPTIONAL = (
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetBrand",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetModuleId",
    "nvmlDeviceGetNvLinkRemoteDeviceType",
    "nvmlDeviceGetNvLinkRemotePciInfo",
    "nvmlDeviceGetNvLinkState",
    "nvmlDeviceGetVirtualizationMode",
)
"""What a GPU is published without where its call fails."""


def failing(name: str, code: int) -> Callable[..., object]:
    def call(*_: object) -> object:
        raise pynvml.NVMLError(code)

    call.__name__ = name
    return call


#
@pytest.mark.parametrize("call", OPTIONAL)
@pytest.mark.parametrize(
    "code",
    [
        pynvml.NVML_ERROR_UNKNOWN,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_NOT_READY,
        pynvml.NVML_ERROR_NO_PERMISSION,
    ],
)
@pytest.mark.usefixtures("running")
def test_an_optional_fact_that_fails_takes_no_gpu_away(
    adapter: nvml.NvmlLibrary, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    monkeypatch.setattr(pynvml, call, failing(call, code))
    inventory = adapter.inventory()
    assert len(inventory.gpus) == 8
    assert inventory.broken == ()


@pytest.mark.usefixtures("running")
def test_an_optional_fact_of_a_lost_gpu_still_says_that_it_is_lost(
    adapter: nvml.NvmlLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = "nvmlDeviceGetBrand"
    monkeypatch.setattr(pynvml, call, failing(call, pynvml.NVML_ERROR_GPU_IS_LOST))
    assert len(adapter.inventory().broken) == 8


@pytest.mark.usefixtures("running")
def test_an_address_that_is_none_is_garbage_too(
    adapter: nvml.NvmlLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Info:
        busId = "somewhere"  # noqa: N815 - pynvml's name

    monkeypatch.setattr(pynvml, "nvmlDeviceGetPciInfo", lambda _handle: Info)
    inventory = adapter.inventory()
    assert not inventory.gpus
    assert len(inventory.broken) == 8
    assert "'somewhere' is not a PCI address" in inventory.broken[0].problem


@pytest.mark.usefixtures("running")
def test_a_driver_that_is_newer_than_its_module_is_a_fault_of_the_whole(
    adapter: nvml.NvmlLibrary, base: Path
) -> None:
    assert len(adapter.inventory().gpus) == 8
    adapter.close()
    control.send(base, "upgrade", "590.44.01")
    with pytest.raises(errors.DeviceFault) as fault:
        adapter.inventory()
    assert fault.value.code == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH


@pytest.mark.usefixtures("running")
def test_profiles_are_read_once_for_each_start_of_the_library(
    adapter: nvml.NvmlLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    call = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements

    def counted(*arguments: object) -> object:
        reads.append(1)
        return call(*arguments)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetGpuInstancePossiblePlacements", counted)
    first = adapter.inventory()
    once = len(reads)
    assert once
    assert (adapter.inventory(), len(reads)) == (first, once)
    adapter.close()
    assert (adapter.inventory(), len(reads)) == (first, 2 * once)
