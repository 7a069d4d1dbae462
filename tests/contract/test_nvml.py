"""What NVML does, by unmodified pynvml: on the simulated library, and on a real GPU's (`gpu`)."""

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from simulator import builder, layout, node, store

UNKNOWN_UUID = "GPU-00000000-0000-0000-0000-000000000000"
UNKNOWN_PCI = "00000000:FF:1F.7"


@contextlib.contextmanager
def loaded(library: Path | str) -> Iterator[None]:
    """Let pynvml speak to that library."""
    pynvml.nvmlLib = ctypes.CDLL(str(library))
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        yield
    finally:
        pynvml.nvmlLib = None
        pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("machine")
    builder.build(base, store.create(base, "hgx-h100", "contract"))
    running = node.Node(base)
    running.start()
    yield layout.Layout(base).libraries / "libnvidia-ml.so.1"
    running.stop()


@pytest.fixture(params=["simulated", pytest.param("hardware", marks=pytest.mark.gpu)])
def library(request: pytest.FixtureRequest) -> Iterator[None]:
    """The library, loaded and not initialised."""
    if request.param == "simulated":
        with loaded(request.getfixturevalue("simulated")):
            yield
        return
    try:
        with loaded("libnvidia-ml.so.1"):
            pynvml.nvmlInit()
            pynvml.nvmlShutdown()
            yield
    except (OSError, pynvml.NVMLError) as e:
        pytest.skip(f"no real NVIDIA GPU here: {e}")


@pytest.fixture
def nvml(library: None) -> Iterator[Any]:
    """Pynvml, initialised."""
    del library
    pynvml.nvmlInit()
    yield pynvml
    pynvml.nvmlShutdown()


@pytest.fixture
def handles(nvml: Any) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]


def code_of(call: Callable[..., object], *arguments: object) -> int:
    with pytest.raises(pynvml.NVMLError) as refused:
        call(*arguments)
    return int(refused.value.value)


def answer_or_code(call: Callable[..., Any], *arguments: object) -> Any:
    try:
        return call(*arguments)
    except pynvml.NVMLError as e:
        return f"code {e.value}"


def address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


@pytest.mark.usefixtures("library")
def test_before_init_and_after_the_last_shutdown_everything_is_uninitialised() -> None:
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() > 0
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED


def test_versions_of_driver_cuda_and_nvml_belong_together(nvml: Any) -> None:
    driver = nvml.nvmlSystemGetDriverVersion()
    cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
    assert driver.split(".")[0].isdigit()
    assert nvml.nvmlSystemGetNVMLVersion() == f"{cuda // 1000}.{driver}"


def test_an_index_past_the_end_is_an_invalid_argument(nvml: Any) -> None:
    past = nvml.nvmlDeviceGetCount()
    code = code_of(nvml.nvmlDeviceGetHandleByIndex, past)
    assert code == nvml.NVML_ERROR_INVALID_ARGUMENT


def test_identities_nobody_has_are_not_found(nvml: Any) -> None:
    assert code_of(nvml.nvmlDeviceGetHandleByUUID, UNKNOWN_UUID) == nvml.NVML_ERROR_NOT_FOUND
    assert code_of(nvml.nvmlDeviceGetHandleByPciBusId, UNKNOWN_PCI) == nvml.NVML_ERROR_NOT_FOUND


def test_a_gpu_is_the_same_by_index_uuid_and_pci_address(nvml: Any, handles: list[Any]) -> None:
    for index, handle in enumerate(handles):
        uuid = nvml.nvmlDeviceGetUUID(handle)
        bus_id = nvml.nvmlDeviceGetPciInfo(handle).busId
        assert address(nvml.nvmlDeviceGetHandleByUUID(uuid)) == address(handle)
        assert address(nvml.nvmlDeviceGetHandleByPciBusId(bus_id)) == address(handle)
        assert nvml.nvmlDeviceGetIndex(handle) == index


def test_uuids_and_minors_are_distinct_and_well_formed(nvml: Any, handles: list[Any]) -> None:
    uuids = {nvml.nvmlDeviceGetUUID(h) for h in handles}
    assert len(uuids) == len(handles)
    assert all(u.startswith("GPU-") and len(u) == 40 for u in uuids)
    assert len({nvml.nvmlDeviceGetMinorNumber(h) for h in handles}) == len(handles)


def test_gpus_are_numbered_in_pci_order(nvml: Any, handles: list[Any]) -> None:
    bus_ids = [nvml.nvmlDeviceGetPciInfo(h).busId for h in handles]
    assert bus_ids == sorted(bus_ids)


def test_the_pci_address_and_its_parts_agree(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        pci = nvml.nvmlDeviceGetPciInfo(handle)
        assert pci.busId == f"{pci.domain:08X}:{pci.bus:02X}:{pci.device:02X}.0"
        assert pci.busIdLegacy == pci.busId[4:]
        assert pci.pciDeviceId & 0xFFFF == 0x10DE


def test_product_figures_are_those_of_a_data_centre_gpu(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert nvml.nvmlDeviceGetName(handle).startswith("NVIDIA ")
        assert nvml.nvmlDeviceGetBrand(handle) == nvml.NVML_BRAND_NVIDIA
        assert nvml.nvmlDeviceGetSerial(handle).isdigit()
        assert nvml.nvmlDeviceGetArchitecture(handle) == nvml.NVML_DEVICE_ARCH_HOPPER
        assert nvml.nvmlDeviceGetCudaComputeCapability(handle) == (9, 0)
        assert isinstance(answer_or_code(nvml.nvmlDeviceGetModuleId, handle), int)


def test_memory_holds_what_is_reserved_and_used(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        v1 = nvml.nvmlDeviceGetMemoryInfo(handle)
        v2 = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
        assert v2.total >= v2.reserved + v2.used
        assert v2.reserved > 0
        assert v1.total == v2.total
        assert v1.used >= v2.used


def test_a_memory_structure_of_unknown_version_is_refused(nvml: Any, handles: list[Any]) -> None:
    info = nvml.nvmlDeviceGetMemoryInfo
    code = code_of(lambda: info(handles[0], version=0x09000028))
    assert code == nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


def test_modes_are_readable(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert nvml.nvmlDeviceGetComputeMode(handle) in {0, 2, 3}
        assert nvml.nvmlDeviceGetPersistenceMode(handle) in {0, 1}
        assert nvml.nvmlDeviceGetVirtualizationMode(handle) in range(5)
        assert set(nvml.nvmlDeviceGetMigMode(handle)) <= {0, 1}
        assert set(nvml.nvmlDeviceGetEccMode(handle)) <= {0, 1}


def test_with_mig_off_there_are_no_mig_devices(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        if nvml.nvmlDeviceGetMigMode(handle)[0] == 0:
            assert nvml.nvmlDeviceGetMaxMigDeviceCount(handle) == 0
        assert nvml.nvmlDeviceIsMigDeviceHandle(handle).value == 0


def test_power_lies_within_its_limits(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        least, most = nvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
        assert least <= nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) <= most
        assert least <= nvml.nvmlDeviceGetPowerManagementLimit(handle) <= most
        assert nvml.nvmlDeviceGetEnforcedPowerLimit(handle) <= most
        assert 0 < nvml.nvmlDeviceGetPowerUsage(handle) <= 1.5 * most


def test_sensors_show_what_sensors_can_show(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert 0 < nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU) < 120
        rates = nvml.nvmlDeviceGetUtilizationRates(handle)
        assert 0 <= rates.gpu <= 100
        assert 0 <= rates.memory <= 100


def test_a_sensor_that_does_not_exist_is_an_invalid_argument(nvml: Any, handles: list[Any]) -> None:
    code = code_of(nvml.nvmlDeviceGetTemperature, handles[0], 99)
    assert code == nvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_link_past_the_end_is_an_invalid_argument(nvml: Any, handles: list[Any]) -> None:
    if answer_or_code(nvml.nvmlDeviceGetNvLinkState, handles[0], 0) == "code 3":
        pytest.skip("this GPU has no NVLink")
    past = nvml.NVML_NVLINK_MAX_LINKS
    code = code_of(nvml.nvmlDeviceGetNvLinkState, handles[0], past)
    assert code == nvml.NVML_ERROR_INVALID_ARGUMENT


def test_active_links_have_a_version_and_another_end(nvml: Any, handles: list[Any]) -> None:
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        if answer_or_code(nvml.nvmlDeviceGetNvLinkState, handles[0], link) != 1:
            continue
        assert nvml.nvmlDeviceGetNvLinkVersion(handles[0], link) > 0
        assert nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handles[0], link) in {0, 2}
        assert nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(handles[0], link).busId


def test_every_field_value_has_a_code_of_its_own(nvml: Any, handles: list[Any]) -> None:
    fields = [nvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 99999]
    known, unknown = nvml.nvmlDeviceGetFieldValues(handles[0], fields)
    assert (known.fieldId, unknown.fieldId) == tuple(fields)
    assert known.nvmlReturn in {nvml.NVML_SUCCESS, nvml.NVML_ERROR_NOT_SUPPORTED}
    assert known.value.uiVal <= nvml.NVML_NVLINK_MAX_LINKS
    assert unknown.nvmlReturn != nvml.NVML_SUCCESS


def test_gpus_of_one_machine_have_a_common_ancestor(nvml: Any, handles: list[Any]) -> None:
    for one, other in zip(handles, handles[1:], strict=False):
        level = nvml.nvmlDeviceGetTopologyCommonAncestor(one, other)
        assert level in {10, 20, 30, 40, 50}
        assert nvml.nvmlDeviceGetTopologyCommonAncestor(other, one) == level
        assert nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK) in range(7)


def test_processes_are_listed(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert all(p.pid > 0 for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle))


def test_a_null_handle_is_an_invalid_argument(nvml: Any) -> None:
    code = code_of(nvml.nvmlDeviceGetName, nvml.c_nvmlDevice_t())
    assert code == nvml.NVML_ERROR_INVALID_ARGUMENT


@pytest.mark.usefixtures("library")
def test_a_function_that_does_not_exist_is_not_found() -> None:
    code = code_of(pynvml._nvmlGetFunctionPointer, "nvmlDeviceGetWings")
    assert code == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
