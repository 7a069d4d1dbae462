"""Tests of what NVML tells of GPUs, whoever is asked."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from simulator import codes
from tests.contract.nvml.worlds import World
from tests.support.nvml_codes import code_of

UNKNOWN_UUID = "GPU-00000000-0000-0000-0000-000000000000"
UNKNOWN_PCI = "00000000:FF:1F.0"
ANOTHER_FUNCTION = "00000000:FF:1F.7"
MAX_LINKS = codes.NVLINK_MAX_LINKS
ABSENT = {codes.Return.NOT_SUPPORTED, codes.Return.FUNCTION_NOT_FOUND}


@pytest.fixture
def nvml(world: World) -> Any:
    return world.nvml


@pytest.fixture
def handles(nvml: Any) -> list[Any]:
    return [nvml.device_get_handle_by_index(i) for i in range(nvml.device_get_count())]


def answer(call: Callable[..., Any], *arguments: object) -> Any:
    """Return what it says, or None where the machine does not have it."""
    try:
        return call(*arguments)
    except codes.NvmlError as e:
        if e.code not in ABSENT:
            raise
        return None


def test_versions_of_driver_cuda_and_nvml_belong_together(nvml: Any) -> None:
    driver, cuda = nvml.system_get_driver_version(), nvml.system_get_cuda_driver_version()
    assert driver.split(".")[0].isdigit()
    assert nvml.system_get_nvml_version() == f"{cuda // 1000}.{driver}"


def test_an_index_past_the_end_is_an_invalid_argument(nvml: Any) -> None:
    past = nvml.device_get_count()
    assert code_of(nvml.device_get_handle_by_index, past) == codes.Return.INVALID_ARGUMENT
    past = nvml.get_excluded_device_count()
    refused = code_of(nvml.get_excluded_device_info_by_index, past)
    assert refused == codes.Return.INVALID_ARGUMENT


def test_identities_nobody_has_are_not_found(nvml: Any) -> None:
    assert code_of(nvml.device_get_handle_by_uuid, UNKNOWN_UUID) == codes.Return.NOT_FOUND
    by_address = nvml.device_get_handle_by_pci_bus_id
    assert code_of(by_address, UNKNOWN_PCI) == codes.Return.NOT_FOUND
    assert code_of(by_address, ANOTHER_FUNCTION) == codes.Return.INVALID_ARGUMENT


def test_a_gpu_is_the_same_by_index_uuid_and_pci_address(nvml: Any, handles: list[Any]) -> None:
    for index, handle in enumerate(handles):
        bus_id = nvml.device_get_pci_info(handle).bus_id
        assert nvml.device_get_handle_by_uuid(nvml.device_get_uuid(handle)) == handle
        assert nvml.device_get_handle_by_pci_bus_id(bus_id) == handle
        assert nvml.device_get_index(handle) == index


def test_uuids_and_minors_are_distinct_and_well_formed(nvml: Any, handles: list[Any]) -> None:
    uuids = {nvml.device_get_uuid(h) for h in handles}
    assert len(uuids) == len(handles)
    assert all(u.startswith("GPU-") and len(u) == 40 for u in uuids)
    assert len({nvml.device_get_minor_number(h) for h in handles}) == len(handles)


def test_gpus_are_numbered_in_pci_order(nvml: Any, handles: list[Any]) -> None:
    bus_ids = [nvml.device_get_pci_info(h).bus_id for h in handles]
    assert bus_ids == sorted(bus_ids)


def test_the_pci_address_and_its_parts_agree(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        pci = nvml.device_get_pci_info(handle)
        assert pci.bus_id == f"{pci.domain:08X}:{pci.bus:02X}:{pci.device:02X}.0"
        assert pci.bus_id_legacy == pci.bus_id[4:]
        assert pci.pci_device_id & 0xFFFF == 0x10DE


def test_product_figures_are_those_of_a_data_centre_gpu(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert nvml.device_get_name(handle).startswith("NVIDIA ")
        assert nvml.device_get_brand(handle) == codes.Brand.NVIDIA
        assert nvml.device_get_serial(handle).isdigit()
        assert nvml.device_get_architecture(handle) == codes.Architecture.HOPPER
        assert tuple(nvml.device_get_cuda_compute_capability(handle)) == (9, 0)
        assert nvml.device_get_module_id(handle) in range(256)
        assert answer(nvml.device_get_addressing_mode, handle) in set(codes.AddressingMode)


def test_memory_holds_what_is_reserved_and_used(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        memory = nvml.device_get_memory_info(handle)
        assert memory.total >= memory.reserved + memory.used
        assert memory.reserved > 0


def test_modes_are_readable(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert nvml.device_get_compute_mode(handle) in {0, 2, 3}
        assert nvml.device_get_persistence_mode(handle) in {0, 1}
        assert nvml.device_get_virtualization_mode(handle) in range(5)
        assert set(nvml.device_get_mig_mode(handle)) <= {0, 1}
        assert set(nvml.device_get_ecc_mode(handle)) <= {0, 1}


def test_with_mig_off_there_are_no_mig_devices(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        if not nvml.device_get_mig_mode(handle)[0]:
            assert nvml.device_get_max_mig_device_count(handle) == 0
        assert not nvml.device_is_mig_device_handle(handle)


def test_placements_are_listed_whatever_the_mode(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        info = nvml.device_get_gpu_instance_profile_info(handle, 0)
        places = nvml.device_get_gpu_instance_possible_placements(handle, info.id)
        assert [(entry.start, entry.size) for entry in places] == [(start, 1) for start in range(7)]
        assert (info.id, info.slice_count, info.instance_count) == (19, 1, 7)


def test_power_lies_within_its_limits(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        least, most = nvml.device_get_power_management_limit_constraints(handle)
        assert least <= nvml.device_get_power_management_default_limit(handle) <= most
        assert least <= nvml.device_get_power_management_limit(handle) <= most
        assert nvml.device_get_enforced_power_limit(handle) <= most
        assert 0 < nvml.device_get_power_usage(handle) <= 1.5 * most


def test_sensors_show_what_sensors_can_show(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert 0 < nvml.device_get_temperature(handle, 0) < 120
        if nvml.device_get_mig_mode(handle)[0]:
            continue
        rates = nvml.device_get_utilization_rates(handle)
        assert 0 <= rates.gpu <= 100
        assert 0 <= rates.memory <= 100
        assert 0 <= nvml.device_get_encoder_utilization(handle)[0] <= 100
        assert 0 <= nvml.device_get_decoder_utilization(handle)[0] <= 100


def test_a_sensor_that_does_not_exist_is_an_invalid_argument(nvml: Any, handles: list[Any]) -> None:
    refused = code_of(nvml.device_get_temperature, handles[0], 99)
    assert refused == codes.Return.INVALID_ARGUMENT


def test_a_link_past_the_end_is_an_invalid_argument(nvml: Any, handles: list[Any]) -> None:
    if answer(nvml.device_get_nv_link_state, handles[0], 0) is None:
        pytest.skip("this GPU has no NVLink")
    refused = code_of(nvml.device_get_nv_link_state, handles[0], MAX_LINKS)
    assert refused == codes.Return.INVALID_ARGUMENT


def test_active_links_have_a_version_and_another_end(nvml: Any, handles: list[Any]) -> None:
    (count,) = nvml.device_get_field_values(handles[0], [codes.Field.NVLINK_LINK_COUNT], [0])
    links = field(count)[1] if field(count)[0] == codes.Return.SUCCESS else 0
    assert links <= MAX_LINKS
    for link in range(links):
        if not answer(nvml.device_get_nv_link_state, handles[0], link):
            continue
        assert nvml.device_get_nv_link_version(handles[0], link) > 0
        assert nvml.device_get_nv_link_remote_device_type(handles[0], link) in {0, 2}
        assert nvml.device_get_nv_link_remote_pci_info(handles[0], link).bus_id


def field(value: Any) -> tuple[int, int]:
    """Code and value, of either world."""
    return value if isinstance(value, tuple) else (value.code, value.value)


def test_every_field_value_has_a_code_of_its_own(nvml: Any, handles: list[Any]) -> None:
    existing, unknown = nvml.device_get_field_values(handles[0], [91, 99999], [0, 0])
    assert field(existing)[0] in {codes.Return.SUCCESS, codes.Return.NOT_SUPPORTED}
    assert field(unknown)[0] != codes.Return.SUCCESS


def test_gpus_of_one_machine_have_a_common_ancestor(nvml: Any, handles: list[Any]) -> None:
    for entry, other in itertools.pairwise(handles):
        level = nvml.device_get_topology_common_ancestor(entry, other)
        assert level in {10, 20, 30, 40, 50}
        assert nvml.device_get_topology_common_ancestor(other, entry) == level
        assert nvml.device_get_p2p_status(entry, other, codes.P2PIndex.NVLINK) in range(7)


def test_rows_are_remapped_and_no_pages_retired(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert answer(nvml.device_get_remapped_rows, handle) is not None
        assert answer(nvml.device_get_retired_pages, handle, 0) is None
        assert answer(nvml.device_get_retired_pages_pending_status, handle) is None
        repairs = answer(nvml.device_get_repair_status, handle)
        assert repairs is None or set(repairs) <= {0, 1}


def test_processes_are_listed(nvml: Any, handles: list[Any]) -> None:
    for handle in handles:
        assert all(p.pid > 0 for p in nvml.device_get_compute_running_processes(handle))


def test_xids_can_be_waited_for_and_unknown_types_cannot(nvml: Any, handles: list[Any]) -> None:
    waiting = nvml.event_set_create()
    supported = nvml.device_get_supported_event_types(handles[0])
    assert supported & 0x8
    nvml.device_register_events(handles[0], supported & 0x8, waiting)
    assert code_of(nvml.event_set_wait, waiting, 1) == codes.Return.TIMEOUT
    refused = code_of(nvml.device_register_events, handles[0], 1 << 40, waiting)
    assert refused == codes.Return.NOT_SUPPORTED
    nvml.event_set_free(waiting)
