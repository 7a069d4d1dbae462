"""Events and errors by unmodified pynvml, on the simulated library."""

import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from driver import clock
from simulator import control, layout
from tests.contract import worlds
from tests.fakes import loading

CLOCK = clock.SystemClock()
ALL_OF_THEM = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeSingleBitEccError


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    with worlds.running(tmp_path, "hgx-h100") as library, worlds.initialised(library):
        yield tmp_path


@pytest.fixture
def waiting(base: Path) -> Iterator[Any]:
    """A set registered for GPU 0."""
    del base
    event_set = pynvml.nvmlEventSetCreate()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceRegisterEvents(gpu, ALL_OF_THEM, event_set)
    yield event_set
    pynvml.nvmlEventSetFree(event_set)


def xid(base: Path, number: int, gpu: str = "0") -> None:
    control.send(base, "xid", gpu, str(number), str(0xFFFFFFFF), str(0xFFFFFFFF))


def test_a_wait_ends_with_the_event_and_not_with_its_timeout(base: Path, waiting: Any) -> None:
    sender = threading.Timer(0.2, xid, (base, 79))
    sender.start()
    began = CLOCK.monotonic()
    data = pynvml.nvmlEventSetWait_v2(waiting, 20_000)
    assert 0.1 < CLOCK.monotonic() - began < 10
    sender.join()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert (
        ctypes.cast(data.device, ctypes.c_void_p).value == ctypes.cast(gpu, ctypes.c_void_p).value
    )
    assert (data.eventType, data.eventData) == (pynvml.nvmlEventTypeXidCriticalError, 79)
    assert (data.gpuInstanceId, data.computeInstanceId) == (0xFFFFFFFF, 0xFFFFFFFF)


def test_a_wait_without_an_event_times_out_and_holds_up_no_other_call(
    base: Path, waiting: Any
) -> None:
    xid(base, 48, gpu="1")
    counted: list[int] = []
    other = threading.Thread(target=lambda: counted.append(pynvml.nvmlDeviceGetCount()))
    other.start()
    assert worlds.code_of(pynvml.nvmlEventSetWait_v2, waiting, 100) == pynvml.NVML_ERROR_TIMEOUT
    other.join()
    assert counted == [8]


def test_a_lost_gpu_ends_the_wait(base: Path, waiting: Any) -> None:
    control.send(base, "lose", "0")
    code = worlds.code_of(pynvml.nvmlEventSetWait_v2, waiting, 5_000)
    assert code == pynvml.NVML_ERROR_GPU_IS_LOST


@pytest.mark.usefixtures("base")
def test_types_are_registered_only_where_they_are_supported(waiting: Any) -> None:
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    supported = pynvml.nvmlDeviceGetSupportedEventTypes(gpu)
    assert supported & ALL_OF_THEM == ALL_OF_THEM
    code = worlds.code_of(pynvml.nvmlDeviceRegisterEvents, gpu, 1 << 40, waiting)
    assert code == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_errors_and_repairs_are_read(base: Path) -> None:
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    control.send(base, "ecc", "0", "2", "1")
    control.send(base, "remap", "0", "1", "0")
    control.send(base, "recovery", "0", "GPU_RESET")
    corrected, volatile = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC
    assert pynvml.nvmlDeviceGetTotalEccErrors(gpu, corrected, volatile) == 2
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(gpu, 1, volatile, 2) == 1
    assert pynvml.nvmlDeviceGetRemappedRows(gpu) == (0, 1, 1, 0)
    assert pynvml.nvmlDeviceGetRowRemapperHistogram(gpu).max == 2559
    (answer,) = pynvml.nvmlDeviceGetFieldValues(gpu, [230])
    assert answer.value.uiVal == 1
    control.send(base, "restore", "0")
    assert pynvml.nvmlDeviceGetRemappedRows(gpu) == (0, 1, 0, 0)


def test_the_energy_counter_only_grows_until_the_gpu_is_made_anew(base: Path) -> None:
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    first, second = (pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) for _ in range(2))
    assert 0 < first <= second
    control.send(base, "restore", "0")
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) < first


def test_a_slow_call_takes_its_time(base: Path) -> None:
    control.send(base, "slow", "device_get_count", "200")
    began = CLOCK.monotonic()
    pynvml.nvmlDeviceGetCount()
    assert CLOCK.monotonic() - began >= 0.2


def test_a_call_to_a_hanging_gpu_blocks_and_calls_to_others_do_not(
    base: Path,
) -> None:
    sick, well = (pynvml.nvmlDeviceGetHandleByIndex(number) for number in (0, 1))
    control.send(base, "hang", "0", "*")
    done = threading.Event()

    def ask() -> None:
        pynvml.nvmlDeviceGetMemoryInfo(sick)
        done.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert pynvml.nvmlDeviceGetMemoryInfo(well).total
    assert not done.wait(0.2)
    control.send(base, "hang", "0", "")
    asking.join(20)
    assert done.is_set()


def test_a_driver_upgrade_moves_the_libraries_and_then_the_reboot_loads_it(base: Path) -> None:
    position = layout.Layout(base)
    control.send(base, "upgrade", "590.48.01")
    library = position.libraries / "libnvidia-ml.so.1"
    assert library.resolve().name == "libnvidia-ml.so.590.48.01"
    version = position.host_root / "proc/driver/nvidia/version"
    assert "580.105.08" in version.read_text()
    pynvml.nvmlShutdown()
    code = worlds.code_of(pynvml.nvmlInit)
    assert code == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    control.send(base, "reboot")
    assert "590.48.01" in version.read_text()
    pynvml.nvmlInit()
    assert pynvml.nvmlSystemGetDriverVersion() == "590.48.01"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set the persistence mode")
def test_persistence_is_set_and_on_again_after_a_reboot(base: Path) -> None:
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceSetPersistenceMode(gpu, 0)
    assert pynvml.nvmlDeviceGetPersistenceMode(gpu) == 0
    control.send(base, "reboot")
    assert pynvml.nvmlDeviceGetPersistenceMode(gpu) == 1


def test_a_process_is_listed_and_no_samples_of_it_are_kept(base: Path) -> None:
    control.send(base, "process", "0", "41", str(3 << 30), str(0xFFFFFFFF), str(0xFFFFFFFF))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    (process,) = pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)
    assert (process.pid, process.usedGpuMemory) == (41, 3 << 30)
    assert pynvml.nvmlDeviceGetBAR1MemoryInfo(gpu).bar1Used == 2 << 20
    code = worlds.code_of(pynvml.nvmlDeviceGetProcessUtilization, gpu, 0)
    assert code == pynvml.NVML_ERROR_NOT_FOUND


def test_samples_of_processes_are_counted_before_they_are_written(base: Path) -> None:
    for pid in ("41", "42"):
        control.send(base, "process", "0", pid, str(1 << 30), str(0xFFFFFFFF), str(0xFFFFFFFF))
        control.send(base, "work", "0", pid, "30")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    call = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetProcessUtilization")
    since, result = ctypes.c_ulonglong(0), (pynvml.c_nvmlProcessUtilizationSample_t * 3)()
    for room, into in ((0, None), (0, result), (1, result)):
        count = ctypes.c_uint(room)
        code = call(gpu, into, ctypes.byref(count), since)
        assert (code, count.value) == (pynvml.NVML_ERROR_INSUFFICIENT_SIZE, 2)
        assert result[0].pid == 0
    count = ctypes.c_uint(3)
    assert call(gpu, result, ctypes.byref(count), since) == pynvml.NVML_SUCCESS
    assert [(entry.pid, entry.smUtil) for entry in result[: count.value]] == [(41, 30), (42, 30)]
    assert call(gpu, result, None, since) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    samples = pynvml.nvmlDeviceGetProcessUtilization(gpu, 0)
    assert [entry.pid for entry in samples] == [41, 42]
    assert pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu == 60


@pytest.mark.skipif(os.geteuid() != 0, reason="errors of the SRAM are root's")
def test_errors_of_the_sram_are_read(base: Path) -> None:
    control.send(base, "sram", "0", "3", "2", "1")
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(status))
    assert (status.aggregateCor, status.volatileUncSecDed, status.bThresholdExceeded) == (3, 2, 1)
    assert (status.aggregateUncBucketL2, status.aggregateUncBucketOther) == (2, 0)
    status.version = 7
    code = worlds.code_of(pynvml.nvmlDeviceGetSramEccErrorStatus, gpu, ctypes.byref(status))
    assert code == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


def test_pending_repairs_are_read(base: Path) -> None:
    control.send(base, "repair", "0", "tpc")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetRepairStatus(gpu) == [0, 1]


#
def test_the_unrepairable_memory_flag_is_the_headers_and_not_pynvmls(base: Path) -> None:
    """The header has no version in this structure and pynvml reads one: it always sees 0."""
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    older = worlds.code_of(pynvml.nvmlDeviceGetUnrepairableMemoryFlag_v1, gpu)
    assert older == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    pynvml.nvmlShutdown()
    control.send(base, "upgrade", "590.48.01")
    control.send(base, "reboot")
    control.send(base, "repair", "0", "memory")
    loading.load((layout.Layout(base).libraries / "libnvidia-ml.so.1").resolve())
    pynvml.nvmlInit()
    flag = ctypes.c_uint()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    answer = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetUnrepairableMemoryFlag_v1")
    assert answer(gpu, ctypes.byref(flag)) == pynvml.NVML_SUCCESS
    assert flag.value == 1
    assert pynvml.nvmlDeviceGetUnrepairableMemoryFlag_v1(gpu) == 0


def test_retired_pages_are_read(tmp_path: Path) -> None:
    with worlds.running(tmp_path, "t4") as library, worlds.initialised(library):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        assert pynvml.nvmlDeviceGetRetiredPages(gpu, 1) == []
        for _ in range(7):
            control.send(tmp_path, "retire", "0", "1")
        assert len(set(pynvml.nvmlDeviceGetRetiredPages(gpu, 1))) == 7
        assert pynvml.nvmlDeviceGetRetiredPages(gpu, 0) == []
        assert pynvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu) == 1
