"""What NVML does, by unmodified pynvml: on the simulated library, and on a real GPU's (`gpu`)."""

import ctypes
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pynvml
import pytest

from tests.contract import worlds

Handle: TypeAlias = ctypes.c_void_p
"""What stands for pynvml's pointer type, which has no name."""

LIBRARY_FOLDERS = (
    *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)
UNKNOWN_UUID = "GPU-00000000-0000-0000-0000-000000000000"
UNKNOWN_PCI = "00000000:FF:1F.7"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with worlds.running(tmp_path_factory.mktemp("machine"), "hgx-h100") as library:
        yield library


def hardware_library() -> Path:
    """The installed library, by path: its name alone would find the simulated one once loaded."""
    for folder in filter(None, LIBRARY_FOLDERS):
        path = Path(folder) / "libnvidia-ml.so.1"
        if path.is_file():
            return path
    pytest.skip("no real NVIDIA GPU here: libnvidia-ml.so.1 is not installed")


@pytest.fixture(params=["simulated", pytest.param("hardware", marks=pytest.mark.gpu)])
def library(request: pytest.FixtureRequest) -> Iterator[None]:
    """The library, loaded and not initialised."""
    if request.param == "simulated":
        with worlds.loaded(request.getfixturevalue("simulated")):
            yield
        return
    with worlds.loaded(hardware_library()):
        if (code := answer_or_code(pynvml.nvmlInit)) is not None:
            pytest.skip(f"no real NVIDIA GPU here: nvmlInit answered {code}")
        pynvml.nvmlShutdown()
        yield


@pytest.fixture
def nvml(library: None) -> Iterator[None]:
    """Pynvml, initialised."""
    del library
    pynvml.nvmlInit()
    yield
    pynvml.nvmlShutdown()


@pytest.fixture
def handles(nvml: None) -> list[Handle]:
    del nvml
    return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]


def answer_or_code(call: Callable[..., object], *arguments: object) -> object:
    try:
        return call(*arguments)
    except pynvml.NVMLError as e:
        return f"code {e.value}"


def address(handle: Handle) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


@pytest.mark.usefixtures("library")
def test_before_init_and_after_the_last_shutdown_everything_is_uninitialised() -> None:
    assert worlds.code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() > 0
    pynvml.nvmlShutdown()
    assert worlds.code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED


@pytest.mark.usefixtures("nvml")
def test_versions_of_driver_cuda_and_nvml_belong_together() -> None:
    driver = pynvml.nvmlSystemGetDriverVersion()
    cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    assert driver.split(".")[0].isdigit()
    assert pynvml.nvmlSystemGetNVMLVersion() == f"{cuda // 1000}.{driver}"


@pytest.mark.usefixtures("nvml")
def test_an_index_past_the_end_is_an_invalid_argument() -> None:
    past = pynvml.nvmlDeviceGetCount()
    code = worlds.code_of(pynvml.nvmlDeviceGetHandleByIndex, past)
    assert code == pynvml.NVML_ERROR_INVALID_ARGUMENT


@pytest.mark.usefixtures("nvml")
def test_identities_nobody_has_are_not_found() -> None:
    assert (
        worlds.code_of(pynvml.nvmlDeviceGetHandleByUUID, UNKNOWN_UUID)
        == pynvml.NVML_ERROR_NOT_FOUND
    )
    assert (
        worlds.code_of(pynvml.nvmlDeviceGetHandleByPciBusId, UNKNOWN_PCI)
        == pynvml.NVML_ERROR_NOT_FOUND
    )


def test_a_gpu_is_the_same_by_index_uuid_and_pci_address(handles: list[Handle]) -> None:
    for index, handle in enumerate(handles):
        uuid = pynvml.nvmlDeviceGetUUID(handle)
        bus_id = pynvml.nvmlDeviceGetPciInfo(handle).busId
        assert address(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == address(handle)
        assert address(pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)) == address(handle)
        assert pynvml.nvmlDeviceGetIndex(handle) == index


def test_uuids_and_minors_are_distinct_and_well_formed(handles: list[Handle]) -> None:
    uuids = {pynvml.nvmlDeviceGetUUID(h) for h in handles}
    assert len(uuids) == len(handles)
    assert all(u.startswith("GPU-") and len(u) == 40 for u in uuids)
    assert len({pynvml.nvmlDeviceGetMinorNumber(h) for h in handles}) == len(handles)


def test_gpus_are_numbered_in_pci_order(handles: list[Handle]) -> None:
    bus_ids = [pynvml.nvmlDeviceGetPciInfo(h).busId for h in handles]
    assert bus_ids == sorted(bus_ids)


def test_the_pci_address_and_its_parts_agree(handles: list[Handle]) -> None:
    for handle in handles:
        pci = pynvml.nvmlDeviceGetPciInfo(handle)
        assert pci.busId == f"{pci.domain:08X}:{pci.bus:02X}:{pci.device:02X}.0"
        assert pci.busIdLegacy == pci.busId[4:]
        assert pci.pciDeviceId & 0xFFFF == 0x10DE


def test_product_figures_are_those_of_a_data_centre_gpu(handles: list[Handle]) -> None:
    for handle in handles:
        assert pynvml.nvmlDeviceGetName(handle).startswith("NVIDIA ")
        assert pynvml.nvmlDeviceGetBrand(handle) == pynvml.NVML_BRAND_NVIDIA
        assert pynvml.nvmlDeviceGetSerial(handle).isdigit()
        assert pynvml.nvmlDeviceGetArchitecture(handle) == pynvml.NVML_DEVICE_ARCH_HOPPER
        assert pynvml.nvmlDeviceGetCudaComputeCapability(handle) == (9, 0)
        assert isinstance(answer_or_code(pynvml.nvmlDeviceGetModuleId, handle), int)


def test_memory_holds_what_is_reserved_and_used(handles: list[Handle]) -> None:
    for handle in handles:
        v1 = pynvml.nvmlDeviceGetMemoryInfo(handle)
        v2 = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        assert v2.total >= v2.reserved + v2.used
        assert v2.reserved > 0
        assert v1.total == v2.total
        assert v1.used >= v2.used


def test_a_memory_structure_of_unknown_version_is_refused(handles: list[Handle]) -> None:
    info = pynvml.nvmlDeviceGetMemoryInfo
    code = worlds.code_of(lambda: info(handles[0], version=0x09000028))
    assert code == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


def test_modes_are_readable(handles: list[Handle]) -> None:
    for handle in handles:
        assert pynvml.nvmlDeviceGetComputeMode(handle) in {0, 2, 3}
        assert pynvml.nvmlDeviceGetPersistenceMode(handle) in {0, 1}
        assert pynvml.nvmlDeviceGetVirtualizationMode(handle) in range(5)
        assert set(pynvml.nvmlDeviceGetMigMode(handle)) <= {0, 1}
        assert set(pynvml.nvmlDeviceGetEccMode(handle)) <= {0, 1}


def test_with_mig_off_there_are_no_mig_devices(handles: list[Handle]) -> None:
    for handle in handles:
        if pynvml.nvmlDeviceGetMigMode(handle)[0] == 0:
            assert pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) == 0
        assert pynvml.nvmlDeviceIsMigDeviceHandle(handle).value == 0


def test_power_lies_within_its_limits(handles: list[Handle]) -> None:
    for handle in handles:
        least, most = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
        assert least <= pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) <= most
        assert least <= pynvml.nvmlDeviceGetPowerManagementLimit(handle) <= most
        assert pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) <= most
        assert 0 < pynvml.nvmlDeviceGetPowerUsage(handle) <= 1.5 * most


def test_sensors_show_what_sensors_can_show(handles: list[Handle]) -> None:
    for handle in handles:
        assert 0 < pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU) < 120
        rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
        assert 0 <= rates.gpu <= 100
        assert 0 <= rates.memory <= 100


def test_encoders_and_decoders_tell_how_busy_they_are(handles: list[Handle]) -> None:
    for handle in handles:
        if pynvml.nvmlDeviceGetMigMode(handle)[0] == 0:
            assert 0 <= pynvml.nvmlDeviceGetEncoderUtilization(handle)[0] <= 100
            assert 0 <= pynvml.nvmlDeviceGetDecoderUtilization(handle)[0] <= 100


def test_a_sensor_that_does_not_exist_is_an_invalid_argument(handles: list[Handle]) -> None:
    code = worlds.code_of(pynvml.nvmlDeviceGetTemperature, handles[0], 99)
    assert code == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_link_past_the_end_is_an_invalid_argument(handles: list[Handle]) -> None:
    if answer_or_code(pynvml.nvmlDeviceGetNvLinkState, handles[0], 0) == "code 3":
        pytest.skip("this GPU has no NVLink")
    past = pynvml.NVML_NVLINK_MAX_LINKS
    code = worlds.code_of(pynvml.nvmlDeviceGetNvLinkState, handles[0], past)
    assert code == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_active_links_have_a_version_and_another_end(handles: list[Handle]) -> None:
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        if answer_or_code(pynvml.nvmlDeviceGetNvLinkState, handles[0], link) != 1:
            continue
        assert pynvml.nvmlDeviceGetNvLinkVersion(handles[0], link) > 0
        assert pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handles[0], link) in {0, 2}
        assert pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handles[0], link).busId


def test_every_field_value_has_a_code_of_its_own(handles: list[Handle]) -> None:
    fields = [pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 99999]
    known, unknown = pynvml.nvmlDeviceGetFieldValues(handles[0], fields)
    assert (known.fieldId, unknown.fieldId) == tuple(fields)
    assert known.nvmlReturn in {pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_SUPPORTED}
    assert known.value.uiVal <= pynvml.NVML_NVLINK_MAX_LINKS
    assert unknown.nvmlReturn != pynvml.NVML_SUCCESS


def test_gpus_of_one_machine_have_a_common_ancestor(handles: list[Handle]) -> None:
    for one, other in itertools.pairwise(handles):
        level = pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other)
        assert level in {10, 20, 30, 40, 50}
        assert pynvml.nvmlDeviceGetTopologyCommonAncestor(other, one) == level
        assert pynvml.nvmlDeviceGetP2PStatus(
            one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK
        ) in range(7)


def test_processes_are_listed(handles: list[Handle]) -> None:
    for handle in handles:
        assert all(p.pid > 0 for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle))


@pytest.mark.usefixtures("nvml")
def test_a_null_handle_is_an_invalid_argument() -> None:
    code = worlds.code_of(pynvml.nvmlDeviceGetName, pynvml.c_nvmlDevice_t())
    assert code == pynvml.NVML_ERROR_INVALID_ARGUMENT


@pytest.mark.usefixtures("library")
def test_a_function_that_does_not_exist_is_not_found() -> None:
    code = worlds.code_of(pynvml._nvmlGetFunctionPointer, "nvmlDeviceGetWings")
    assert code == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
