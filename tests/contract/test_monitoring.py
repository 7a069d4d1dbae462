"""Tests of what monitoring programs read first, through the simulated library's C functions."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from simulator import codes, control
from tests.contract import worlds

SECOND_NUMA_NODE, CPUS = 1, 32
H100_MEMORY_MHZ = 2619
WHOLE = str(codes.WHOLE_GPU)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "gpus"


@pytest.fixture
def gpu(base: Path) -> Iterator[pynvml.c_nvmlDevice_t]:
    with worlds.running(base, "hgx-h100") as library, worlds.initialised(library):
        yield pynvml.nvmlDeviceGetHandleByIndex(4)


def field(gpu: pynvml.c_nvmlDevice_t, number: int, scope: int = 0) -> tuple[int, int]:
    (answer,) = pynvml.nvmlDeviceGetFieldValues(gpu, [(number, scope)])
    long = answer.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
    return answer.nvmlReturn, answer.value.ullVal if long else answer.value.uiVal


def test_a_board_names_its_firmware_and_its_link(gpu: pynvml.c_nvmlDevice_t) -> None:
    assert pynvml.nvmlDeviceGetVbiosVersion(gpu).count(".") == 4
    firmware = pynvml.nvmlDeviceGetGspFirmwareVersion(gpu).decode()
    assert firmware == pynvml.nvmlSystemGetDriverVersion()
    assert pynvml.nvmlDeviceGetPcieSpeed(gpu) == 32_000
    assert pynvml.nvmlDeviceGetPcieThroughput(gpu, pynvml.NVML_PCIE_UTIL_TX_BYTES) == 0
    assert pynvml.nvmlDeviceGetNumGpuCores(gpu) == 132 * 128


def test_processors_and_memory_near_a_gpu_are_those_of_its_numa_node(
    gpu: pynvml.c_nvmlDevice_t,
) -> None:
    (first, second) = pynvml.nvmlDeviceGetCpuAffinity(gpu, 2)
    assert first | second << 64 == (2**CPUS - 1) << CPUS * SECOND_NUMA_NODE
    assert pynvml.nvmlDeviceGetMemoryAffinity(gpu, 1, 0)[0] == 1 << SECOND_NUMA_NODE


def test_clocks_are_listed_from_the_greatest_down(gpu: pynvml.c_nvmlDevice_t) -> None:
    assert pynvml.nvmlDeviceGetSupportedMemoryClocks(gpu) == [H100_MEMORY_MHZ]
    clocks = pynvml.nvmlDeviceGetSupportedGraphicsClocks(gpu, H100_MEMORY_MHZ)
    assert clocks == sorted(clocks, reverse=True)
    assert clocks[0] == 1980
    other = worlds.code_of(pynvml.nvmlDeviceGetSupportedGraphicsClocks, gpu, 1)
    assert other == codes.Return.NOT_FOUND


def test_an_idle_gpus_clocks_are_held_by_idleness_and_a_busy_ones_by_nothing(
    gpu: pynvml.c_nvmlDevice_t, base: Path
) -> None:
    idle = pynvml.nvmlClocksEventReasonGpuIdle
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(gpu) == idle
    assert pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu) == idle
    control.send(base, "set_reading", "4", "gpu_percent", "90")
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(gpu) == 0


def test_a_gpu_is_hotter_when_it_shuts_down_than_when_it_slows_down(
    gpu: pynvml.c_nvmlDevice_t,
) -> None:
    kinds = (pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    shutdown, slowdown = (pynvml.nvmlDeviceGetTemperatureThreshold(gpu, kind) for kind in kinds)
    assert shutdown > slowdown


def test_a_link_can_do_peer_to_peer_and_has_no_errors(gpu: pynvml.c_nvmlDevice_t) -> None:
    assert pynvml.nvmlDeviceGetNvLinkCapability(gpu, 0, pynvml.NVML_NVLINK_CAP_P2P_SUPPORTED) == 1
    counter = pynvml.NVML_NVLINK_ERROR_DL_CRC_FLIT
    assert pynvml.nvmlDeviceGetNvLinkErrorCounter(gpu, 17, counter) == 0
    beyond = worlds.code_of(pynvml.nvmlDeviceGetNvLinkErrorCounter, gpu, 18, counter)
    assert beyond == codes.Return.INVALID_ARGUMENT


@pytest.mark.usefixtures("gpu")
def test_a_process_is_named_by_its_program() -> None:
    assert "python" in pynvml.nvmlSystemGetProcessName(os.getpid())
    assert worlds.code_of(pynvml.nvmlSystemGetProcessName, 4_194_304) == codes.Return.NOT_FOUND


# Covers SIM-5.
def test_fields_of_power_and_energy_are_what_the_functions_answer(
    gpu: pynvml.c_nvmlDevice_t, base: Path
) -> None:
    control.send(base, "set_reading", "4", "power_mw", "345678")
    assert field(gpu, pynvml.NVML_FI_DEV_POWER_INSTANT) == (0, 345_678)
    assert field(gpu, pynvml.NVML_FI_DEV_POWER_MAX_LIMIT) == (0, 700_000)
    previous = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    code, energy = field(gpu, pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION)
    assert (code, energy >= previous) == (0, True)


def test_fields_of_nvlink_are_by_link(gpu: pynvml.c_nvmlDevice_t) -> None:
    assert field(gpu, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 17) == (0, 0)
    assert field(gpu, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0xFFFFFFFF) == (0, 0)
    assert field(gpu, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 18)[0] != 0
    assert field(gpu, pynvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON) == (0, 26_562)


def test_older_versions_of_functions_write_their_shorter_structures(
    gpu: pynvml.c_nvmlDevice_t, base: Path
) -> None:
    library, end = pynvml.nvmlLib, 0x7E
    control.send(base, "process", "4", "4711", str(2048 << 20), WHOLE, WHOLE)
    pci = (ctypes.c_ubyte * 68)(*[end] * 68)
    assert library.nvmlDeviceGetPciInfo_v2(gpu, pci) == 0
    assert bytes(pci[:12]) == b"0000:97:00.0"
    assert set(pci[36:]) == {end}
    count, infos = ctypes.c_uint(2), (ctypes.c_ulonglong * 5)(*[end] * 5)
    answer = library.nvmlDeviceGetComputeRunningProcesses
    assert answer(gpu, ctypes.byref(count), infos) == 0
    assert (count.value, infos[0] & 0xFFFFFFFF, infos[1]) == (1, 4711, 2048 << 20)
    assert list(infos[2:]) == [end] * 3


# Covers SIM-4.
def test_a_function_that_nothing_simulates_is_there_and_not_supported(
    gpu: pynvml.c_nvmlDevice_t,
) -> None:
    code = worlds.code_of(pynvml.nvmlDeviceGetMemoryBusWidth, gpu)
    assert code == codes.Return.NOT_SUPPORTED
