from collections.abc import Callable

import pytest

from simulator import codes, library, machine, profile, state


def a_client(*, visible: set[int] | None = None, source: str = "hgx-h100") -> library.Library:
    nvml = library.Library(machine.build(source, seed="node-1"), visible=visible)
    nvml.init()
    return nvml


def code_of(call: Callable[[], object]) -> codes.Return:
    with pytest.raises(codes.NvmlError) as refused:
        call()
    return refused.value.code


def test_a_seed_decides_uuids_and_serials() -> None:
    first, again, other = (machine.build("hgx-h100", seed=s) for s in ("a", "a", "b"))
    identities = [{(g.uuid, g.serial) for g in m.gpus} for m in (first, again, other)]
    assert identities[0] == identities[1]
    assert not {u for u, _ in identities[0]} & {u for u, _ in identities[2]}
    assert len(identities[0]) == 8


def test_a_client_sees_its_gpus_in_pci_order_numbered_from_zero() -> None:
    nvml = a_client(visible={5, 3})
    handles = [nvml.device_get_handle_by_index(i) for i in range(nvml.device_get_count())]
    assert [nvml.device_get_minor_number(h) for h in handles] == [3, 5]
    assert [nvml.device_get_index(h) for h in handles] == [0, 1]


def test_a_gpu_outside_the_view_is_not_found_and_its_handle_is_invalid() -> None:
    everything, narrow = a_client(), a_client(visible={3})
    hidden = everything.device_get_handle_by_index(0)
    uuid = everything.device_get_uuid(hidden)
    assert code_of(lambda: narrow.device_get_handle_by_uuid(uuid)) == codes.Return.NOT_FOUND
    assert code_of(lambda: narrow.device_get_name(hidden)) == codes.Return.INVALID_ARGUMENT


def test_without_a_gpu_init_wants_the_flag_that_says_so() -> None:
    nvml = library.Library(machine.build("hgx-h100", seed="node-1"), visible=set())
    assert code_of(nvml.init) == codes.Return.NOT_FOUND
    nvml.init(1)
    assert nvml.device_get_count() == 0


def test_init_is_counted() -> None:
    nvml = a_client()
    nvml.init()
    nvml.shutdown()
    assert nvml.device_get_count() == 8
    nvml.shutdown()
    assert code_of(nvml.device_get_count) == codes.Return.UNINITIALIZED
    assert code_of(nvml.shutdown) == codes.Return.UNINITIALIZED


def test_a_lost_gpu_answers_so_on_every_call_and_the_others_work() -> None:
    nvml = a_client()
    handles = [nvml.device_get_handle_by_index(i) for i in range(8)]
    uuid = nvml.device_get_uuid(handles[2])
    gpu = nvml.machine.find("2")
    nvml.machine.lose(gpu)
    assert code_of(lambda: nvml.device_get_name(handles[2])) == codes.Return.GPU_IS_LOST
    assert code_of(lambda: nvml.device_get_handle_by_index(2)) == codes.Return.GPU_IS_LOST
    assert code_of(lambda: nvml.device_get_handle_by_uuid(uuid)) == codes.Return.GPU_IS_LOST
    assert nvml.device_get_count() == 8
    assert nvml.device_get_name(handles[3]) == "NVIDIA H100 80GB HBM3"
    nvml.machine.restore(gpu)
    assert nvml.device_get_uuid(handles[2]) == uuid


def test_a_reboot_resets_what_changes_and_keeps_identities() -> None:
    nvml = a_client()
    handle, boot = nvml.device_get_handle_by_index(0), nvml.machine.boot_id
    uuid = nvml.device_get_uuid(handle)
    nvml.device_set_compute_mode(handle, codes.ComputeMode.EXCLUSIVE_PROCESS)
    nvml.machine.set_reading(nvml.machine.find(uuid), "celsius", 90)
    nvml.machine.reboot()
    assert nvml.device_get_compute_mode(handle) == codes.ComputeMode.DEFAULT
    assert nvml.device_get_temperature(handle, 0) == 31
    assert nvml.device_get_uuid(handle) == uuid
    assert nvml.machine.boot_id != boot


def test_compute_mode_takes_root_and_a_mode_that_exists() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    user, root = library.Library(built, root=False), library.Library(built)
    user.init()
    root.init()
    handle = root.device_get_handle_by_index(0)
    assert code_of(lambda: root.device_set_compute_mode(handle, 1)) == codes.Return.INVALID_ARGUMENT
    assert code_of(lambda: user.device_set_compute_mode(handle, 3)) == codes.Return.NO_PERMISSION
    root.device_set_compute_mode(handle, 3)
    assert user.device_get_compute_mode(handle) == 3


def test_the_figures_of_an_h100_are_those_of_the_capture() -> None:
    nvml = a_client()
    handle = nvml.device_get_handle_by_pci_bus_id("0000:CA:00.0")
    memory, pci = nvml.device_get_memory_info(handle), nvml.device_get_pci_info(handle)
    assert (memory.total >> 20, memory.reserved >> 20) == (81559, 480)
    assert memory.total == memory.reserved + memory.free + memory.used
    assert (pci.bus_id, pci.pci_device_id) == ("00000000:CA:00.0", 0x233010DE)
    assert nvml.device_get_cuda_compute_capability(handle) == (9, 0)
    assert nvml.system_get_driver_version() == "580.105.08"
    assert nvml.system_get_cuda_driver_version() == 13000
    assert nvml.device_get_power_management_limit_constraints(handle) == (200_000, 700_000)
    assert nvml.device_get_module_id(handle) == 2


def test_topology_follows_numa_nodes_and_links_end_at_switches() -> None:
    nvml = a_client()
    a, b, c = (nvml.device_get_handle_by_index(i) for i in (0, 1, 4))
    assert nvml.device_get_topology_common_ancestor(a, b) == codes.TopologyLevel.NODE
    assert nvml.device_get_topology_common_ancestor(a, c) == codes.TopologyLevel.SYSTEM
    assert nvml.device_get_p2p_status(a, c, codes.P2PIndex.NVLINK) == codes.P2PStatus.OK
    ends = {nvml.device_get_nv_link_remote_pci_info(a, link).bus_id for link in range(18)}
    assert len(ends) == 4
    assert code_of(lambda: nvml.device_get_nv_link_state(a, 18)) == codes.Return.INVALID_ARGUMENT


def test_the_links_of_a_bridge_end_at_the_other_gpu_of_the_pair() -> None:
    nvml = a_client(source="a30-bridged")
    first, second, third, _ = (nvml.device_get_handle_by_index(i) for i in range(4))
    assert nvml.device_get_nv_link_remote_device_type(first, 0) == codes.NVLINK_REMOTE_GPU
    ends = {nvml.device_get_nv_link_remote_pci_info(first, link).bus_id for link in range(4)}
    assert ends == {nvml.device_get_pci_info(second).bus_id}
    across = codes.P2PIndex.NVLINK
    assert nvml.device_get_p2p_status(first, second, across) == codes.P2PStatus.OK
    assert nvml.device_get_p2p_status(second, third, across) == codes.P2PStatus.NOT_SUPPORTED


def test_a_gpu_without_nvlink_or_mig_says_not_supported() -> None:
    nvml = a_client(source="t4")
    handle = nvml.device_get_handle_by_index(0)
    assert code_of(lambda: nvml.device_get_nv_link_state(handle, 0)) == codes.Return.NOT_SUPPORTED
    assert code_of(lambda: nvml.device_get_mig_mode(handle)) == codes.Return.NOT_SUPPORTED
    assert nvml.device_get_field_values(handle, [91], [0])[0].code == codes.Return.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("celsius", 121, "expected 0 to 120"), ("volts", 1, "no reading 'volts'")],
)
def test_a_reading_no_sensor_shows_is_refused(name: str, value: int, words: str) -> None:
    built = machine.build("hgx-h100", seed="node-1")
    with pytest.raises(machine.BadReadingError, match=words):
        built.set_reading(built.gpus[0], name, value)


def test_a_state_of_another_machine_is_refused() -> None:
    load = profile.load("hgx-h100")
    with pytest.raises(ValueError, match="other GPUs"):
        machine.Machine(load, "node-1", state.State())


def test_the_boards_of_a_gb200_tray_have_a_serial_for_each_pair() -> None:
    gpus = machine.build("gb200-tray", seed="node-1").gpus
    serials = [gpu.serial for gpu in gpus]
    assert serials[0] == serials[1] != serials[2] == serials[3]
    assert len({gpu.uuid for gpu in gpus}) == 4


def test_a_tray_belongs_to_a_fabric_and_a_single_node_to_an_empty_one() -> None:
    tray, node, cards = (a_client(source=name) for name in ("gb200-tray", "hgx-h200", "l40s"))
    info = tray.device_get_gpu_fabric_info(tray.device_get_handle_by_index(0))
    assert (info.cluster.strip("0") != "", info.clique, info.state) == (True, 2, 3)
    assert set(node.device_get_gpu_fabric_info(node.device_get_handle_by_index(0)).cluster) == {"0"}
    gpu = cards.device_get_handle_by_index(0)
    assert code_of(lambda: cards.device_get_gpu_fabric_info(gpu)) == codes.Return.NOT_SUPPORTED
    assert cards.device_get_module_id(gpu) == 0
    link = tray.device_get_handle_by_index(0)
    assert tray.device_get_nv_link_remote_device_type(link, 0) == codes.NVLINK_REMOTE_SWITCH
    away = code_of(lambda: tray.device_get_nv_link_remote_pci_info(link, 0))
    assert away == codes.Return.NOT_SUPPORTED


def test_functions_newer_than_the_driver_are_not_found() -> None:
    old, new = a_client(source="l40s"), a_client(source="hgx-h100")
    gpu = old.device_get_handle_by_index(0)
    assert code_of(lambda: old.device_get_addressing_mode(gpu)) == codes.Return.FUNCTION_NOT_FOUND
    assert old.device_get_module_id(gpu) == 0
    hmm = new.device_get_addressing_mode(new.device_get_handle_by_index(0))
    assert hmm == codes.AddressingMode.HMM


def test_an_excluded_gpu_is_named_and_not_enumerated() -> None:
    text = profile.text_of("l4").replace("minor: 2,", "minor: 2, excluded: true,")
    nvml = library.Library(machine.Machine(profile.parse("excluding", text), "node-1"))
    nvml.init()
    assert (nvml.device_get_count(), nvml.get_excluded_device_count()) == (7, 1)
    excluded_device = nvml.get_excluded_device_info_by_index(0)
    assert excluded_device.pci.bus_id == "00000000:39:00.0"
    refused = code_of(lambda: nvml.device_get_handle_by_uuid(excluded_device.uuid))
    assert refused == codes.Return.NOT_FOUND
    past = code_of(lambda: nvml.get_excluded_device_info_by_index(1))
    assert past == codes.Return.INVALID_ARGUMENT


def test_only_a_tray_tells_its_place_in_the_rack() -> None:
    tray, node = a_client(source="gb200-tray"), a_client(source="hgx-b200")
    platform_info = tray.device_get_platform_info(tray.device_get_handle_by_index(0))
    assert (
        platform_info.slot_number,
        platform_info.tray_index,
        platform_info.host_id,
        platform_info.module_id,
    ) == (14, 4, 1, 2)
    gpu = node.device_get_handle_by_index(0)
    refused = code_of(lambda: node.device_get_platform_info(gpu))
    assert refused == codes.Return.NOT_SUPPORTED


def test_clocks_and_bar1_are_the_products_and_readings_can_be_set() -> None:
    nvml = a_client(source="t4")
    gpu = nvml.device_get_handle_by_index(0)
    nvml.machine.set_reading(nvml.machine.gpus[0], "sm_mhz", 300)
    assert nvml.device_get_clock_info(gpu, codes.Clock.SM) == 300
    assert nvml.device_get_max_clock_info(gpu, codes.Clock.SM) == 1590
    assert nvml.device_get_max_clock_info(gpu, codes.Clock.MEMORY) == 5001
    assert nvml.device_get_bar1_memory_info(gpu).total == 256 << 20
    assert code_of(lambda: nvml.device_get_clock_info(gpu, 9)) == codes.Return.INVALID_ARGUMENT
    assert code_of(lambda: nvml.device_get_remapped_rows(gpu)) == codes.Return.NOT_SUPPORTED
    assert nvml.device_get_retired_pages_pending_status(gpu) is False


def test_a_gpu_that_is_gone_is_counted_no_more_until_it_is_back() -> None:
    nvml = a_client()
    gone, next_one = (nvml.device_get_handle_by_index(i) for i in (2, 3))
    uuid = nvml.device_get_uuid(gone)
    nvml.machine.remove(nvml.machine.gpus[2])
    assert nvml.device_get_count() == 7
    assert nvml.device_get_handle_by_index(2) == next_one
    assert code_of(lambda: nvml.device_get_name(gone)) == codes.Return.GPU_IS_LOST
    assert code_of(lambda: nvml.device_get_handle_by_uuid(uuid)) == codes.Return.NOT_FOUND
    nvml.machine.restore(nvml.machine.gpus[2])
    assert nvml.device_get_handle_by_uuid(uuid) == gone
    assert nvml.device_get_count() == 8
