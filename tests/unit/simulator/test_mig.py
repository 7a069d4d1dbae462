import pytest

from simulator import capabilities, client, codes, geometry, library, machine, profile, state
from tests.support.nvml_codes import code_of

ONE, ONE_MEDIA, ONE_DOUBLE, TWO, THREE, FOUR, SEVEN = 19, 20, 15, 14, 9, 5, 0


def a_client(*, mig: bool = True) -> tuple[library.Library, client.Handle]:
    """An H100's client; MIG on its first GPU."""
    nvml = library.Library(machine.build("hgx-h100", seed="node-1"))
    nvml.init()
    handle = nvml.device_get_handle_by_index(0)
    if mig:
        assert nvml.device_set_mig_mode(handle, 1) == codes.Return.SUCCESS
    return nvml, handle


def a_device(
    nvml: library.Library, gpu: client.Handle, profile_id: int, compute: int, start: int, size: int
) -> client.Handle:
    instance = nvml.device_create_gpu_instance_with_placement(gpu, profile_id, start, size)
    handle = nvml.gpu_instance_create_compute_instance(instance, compute)
    return nvml.compute_instance_get_info(handle).device


def test_hopper_changes_its_mode_at_once_and_forgets_it_at_reboot() -> None:
    nvml, handle = a_client()
    assert nvml.device_get_mig_mode(handle) == (True, True)
    assert nvml.device_get_max_mig_device_count(handle) == 7
    nvml.machine.reboot()
    assert nvml.device_get_mig_mode(handle) == (False, False)
    assert nvml.device_get_max_mig_device_count(handle) == 0


def test_ampere_waits_for_a_reset_and_keeps_its_mode() -> None:
    nvml = library.Library(machine.build("dgx-a100", seed="node-1"))
    nvml.init()
    handle = nvml.device_get_handle_by_index(0)
    assert nvml.device_set_mig_mode(handle, 1) == codes.Return.RESET_REQUIRED
    assert nvml.device_get_mig_mode(handle) == (False, True)
    nvml.machine.restore(nvml.machine.gpus[0])
    assert nvml.device_get_mig_mode(handle) == (True, True)
    nvml.machine.reboot()
    assert nvml.device_get_mig_mode(handle) == (True, True)


def test_a_busy_gpu_answers_success_with_the_status_in_use() -> None:
    nvml, handle = a_client(mig=False)
    board = nvml.machine.board(nvml.machine.gpus[0])
    board.processes.append(state.Process(pid=7, memory=1))
    assert nvml.device_set_mig_mode(handle, 1) == codes.Return.IN_USE
    assert nvml.device_get_mig_mode(handle) == (False, True)


def test_mig_is_not_turned_off_under_an_instance() -> None:
    nvml, handle = a_client()
    nvml.device_create_gpu_instance(handle, ONE)
    assert nvml.device_set_mig_mode(handle, 0) == codes.Return.IN_USE
    assert nvml.device_get_mig_mode(handle)[0]


def test_profiles_are_asked_by_enum_and_used_by_id() -> None:
    nvml, handle = a_client(mig=False)
    answer = nvml.device_get_gpu_instance_profile_info
    infos = {enum: answer(handle, enum) for enum in (0, 7, 9, 1, 2, 3, 4)}
    result = {info.name: (enum, info.id, info.instance_count) for enum, info in infos.items()}
    assert result == {
        "MIG 1g.10gb": (0, 19, 7),
        "MIG 1g.10gb+me": (7, 20, 1),
        "MIG 1g.20gb": (9, 15, 4),
        "MIG 2g.20gb": (1, 14, 3),
        "MIG 3g.40gb": (2, 9, 2),
        "MIG 4g.40gb": (3, 5, 1),
        "MIG 7g.80gb": (4, 0, 1),
    }
    for absent in set(range(geometry.PROFILE_COUNT)) - infos.keys():
        assert code_of(answer, handle, absent) is codes.Return.NOT_SUPPORTED
    assert code_of(answer, handle, geometry.PROFILE_COUNT) is codes.Return.INVALID_ARGUMENT


def test_placements_are_listed_with_mig_off_and_nothing_else_is() -> None:
    nvml, handle = a_client(mig=False)
    places = nvml.device_get_gpu_instance_possible_placements(handle, THREE)
    assert places == [geometry.Placement(0, 4), geometry.Placement(4, 4)]
    for call in (
        nvml.device_get_gpu_instance_remaining_capacity,
        nvml.device_create_gpu_instance,
        nvml.device_get_gpu_instances,
        nvml.device_get_gpu_instance_by_id,
        nvml.device_get_mig_device_handle_by_index,
    ):
        assert code_of(call, handle, 0) is codes.Return.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("gpu", "profile_id", "start", "size", "expected"),
    [
        (0, SEVEN, 0, 8, 0),
        (0, THREE, 0, 4, 1),
        (0, THREE, 4, 4, 2),
        (0, TWO, 2, 2, 4),
        (0, ONE_DOUBLE, 6, 2, 6),
        (0, ONE, 6, 1, 13),
        (1, SEVEN, 0, 8, 0),
        (1, THREE, 4, 4, 1),
        (1, TWO, 0, 2, 5),
        (1, ONE, 2, 1, 13),
    ],
)
def test_ids_are_positions_and_on_some_boards_the_halves_are_swapped(
    gpu: int, profile_id: int, start: int, size: int, expected: int
) -> None:
    nvml, _ = a_client(mig=False)
    handle = nvml.device_get_handle_by_index(gpu)
    nvml.device_set_mig_mode(handle, 1)
    gpu_instance = nvml.device_create_gpu_instance_with_placement(handle, profile_id, start, size)
    info = nvml.gpu_instance_get_info(gpu_instance)
    assert (info.id, info.profile_id) == (expected, profile_id)
    assert info.placement == geometry.Placement(start, size)
    assert nvml.device_get_gpu_instance_by_id(handle, expected) == gpu_instance
    assert nvml.device_get_gpu_instances(handle, profile_id) == [gpu_instance]


def test_an_occupied_placement_is_insufficient_resources() -> None:
    nvml, handle = a_client()
    created = nvml.device_create_gpu_instance_with_placement
    created(handle, TWO, 2, 2)
    assert code_of(created, handle, TWO, 2, 2) is codes.Return.INSUFFICIENT_RESOURCES
    assert code_of(created, handle, THREE, 0, 4) is codes.Return.INSUFFICIENT_RESOURCES
    assert code_of(created, handle, THREE, 1, 4) is codes.Return.INVALID_ARGUMENT
    assert code_of(created, handle, 99, 0, 1) is codes.Return.INVALID_ARGUMENT
    assert nvml.device_get_gpu_instance_remaining_capacity(handle, ONE) == 5


def test_media_engines_go_to_one_instance() -> None:
    nvml, handle = a_client()
    nvml.device_create_gpu_instance(handle, ONE_MEDIA)
    assert nvml.device_get_gpu_instance_remaining_capacity(handle, ONE_MEDIA) == 0
    again = code_of(nvml.device_create_gpu_instance, handle, ONE_MEDIA)
    assert again is codes.Return.INSUFFICIENT_RESOURCES


def test_a_gpu_instance_goes_after_its_compute_instances_and_those_after_their_processes() -> None:
    nvml, handle = a_client()
    instance = nvml.device_create_gpu_instance(handle, ONE)
    compute = nvml.gpu_instance_create_compute_instance(instance, 0)
    board = nvml.machine.board(nvml.machine.gpus[0])
    board.processes.append(state.Process(5, 1, gpu_instance=7, compute_instance=0))
    assert code_of(nvml.gpu_instance_destroy, instance) is codes.Return.IN_USE
    assert code_of(nvml.compute_instance_destroy, compute) is codes.Return.IN_USE
    board.processes.clear()
    nvml.compute_instance_destroy(compute)
    nvml.gpu_instance_destroy(instance)
    assert code_of(nvml.gpu_instance_destroy, instance) is codes.Return.NOT_FOUND
    assert code_of(nvml.device_get_gpu_instance_by_id, handle, 7) is codes.Return.NOT_FOUND


def test_a_recreated_device_has_the_old_ids_and_a_new_uuid() -> None:
    nvml, handle = a_client()
    first = a_device(nvml, handle, ONE, 0, 3, 1)
    ids = nvml.device_get_gpu_instance_id(first), nvml.device_get_compute_instance_id(first)
    uuid = nvml.device_get_uuid(first)
    assert nvml.device_get_handle_by_uuid(uuid) == first
    nvml.machine.reboot()
    nvml.device_set_mig_mode(handle, 1)
    again = a_device(nvml, handle, ONE, 0, 3, 1)
    assert (
        nvml.device_get_gpu_instance_id(again),
        nvml.device_get_compute_instance_id(again),
    ) == ids
    assert nvml.device_get_uuid(again) != uuid
    assert code_of(nvml.device_get_uuid, first) is codes.Return.NOT_FOUND
    assert code_of(nvml.device_get_handle_by_uuid, uuid) is codes.Return.NOT_FOUND


def test_a_destroyed_device_leaves_a_gap_that_the_next_one_fills() -> None:
    nvml, handle = a_client()
    devices = [a_device(nvml, handle, ONE, 0, start, 1) for start in range(3)]
    by_index = nvml.device_get_mig_device_handle_by_index
    assert [by_index(handle, i) for i in range(3)] == devices
    middle = nvml.device_get_gpu_instance_by_id(handle, 8)
    nvml.compute_instance_destroy(nvml.gpu_instance_get_compute_instance_by_id(middle, 0))
    assert code_of(by_index, handle, 1) is codes.Return.NOT_FOUND
    assert by_index(handle, 2) == devices[2]
    assert code_of(by_index, handle, 7) is codes.Return.INVALID_ARGUMENT
    nvml.gpu_instance_create_compute_instance(middle, 0)
    assert nvml.device_get_index(by_index(handle, 1)) == 1


def test_compute_instances_share_their_gpu_instance() -> None:
    nvml, handle = a_client()
    instance = nvml.device_create_gpu_instance(handle, THREE)
    info = nvml.gpu_instance_get_compute_instance_profile_info(instance, 0, 0)
    assert (info.name, info.instance_count, info.multiprocessor_count) == ("MIG 1c.3g.40gb", 3, 20)
    assert nvml.gpu_instance_get_compute_instance_profile_info(instance, 2, 0).name == "MIG 3g.40gb"
    two = nvml.gpu_instance_create_compute_instance(instance, 1)
    compute_instance = nvml.gpu_instance_create_compute_instance(instance, 0)
    assert nvml.compute_instance_get_info(two).placement == geometry.Placement(0, 2)
    assert nvml.compute_instance_get_info(compute_instance).placement == geometry.Placement(2, 1)
    assert nvml.compute_instance_get_info(compute_instance).id == 1
    assert nvml.gpu_instance_get_compute_instance_remaining_capacity(instance, 0) == 0
    full = code_of(nvml.gpu_instance_create_compute_instance, instance, 0)
    assert full is codes.Return.INSUFFICIENT_RESOURCES
    absent = code_of(nvml.gpu_instance_get_compute_instance_profile_info, instance, 3, 0)
    assert absent is codes.Return.NOT_SUPPORTED
    device = nvml.compute_instance_get_info(compute_instance).device
    assert nvml.device_get_name(device) == "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb"


def test_a_mig_device_tells_what_it_has_and_whose_it_is() -> None:
    nvml, handle = a_client()
    device = a_device(nvml, handle, TWO, 1, 4, 2)
    has = nvml.device_get_attributes(device)
    assert (has.multiprocessor_count, has.memory_size_mb) == (32, 20096)
    assert (has.gpu_instance_slice_count, has.compute_instance_slice_count) == (2, 2)
    assert nvml.device_get_memory_info(device).total == 20096 << 20
    assert nvml.device_get_device_handle_from_mig_device_handle(device) == handle
    assert nvml.device_is_mig_device_handle(device)
    assert not nvml.device_is_mig_device_handle(handle)
    assert code_of(nvml.device_get_minor_number, device) is codes.Return.NOT_SUPPORTED
    assert code_of(nvml.device_get_attributes, handle) is codes.Return.NOT_SUPPORTED
    assert code_of(nvml.device_get_utilization_rates, handle) is codes.Return.NOT_SUPPORTED


def test_with_mig_on_the_compute_mode_is_a_mig_devices() -> None:
    nvml, handle = a_client()
    device = a_device(nvml, handle, ONE, 0, 0, 1)
    assert code_of(nvml.device_set_compute_mode, handle, 3) is codes.Return.NOT_SUPPORTED
    nvml.device_set_compute_mode(device, 3)
    assert nvml.device_get_compute_mode(device) == 3
    assert nvml.device_get_compute_mode(handle) == 0


def test_only_root_with_the_config_capability_makes_instances() -> None:
    nvml, handle = a_client()
    for caps, root in (({1}, False), (set(), True)):
        other = library.Library(nvml.machine, caps=caps, root=root)
        other.init()
        refused = code_of(other.device_create_gpu_instance, handle, ONE)
        assert refused is codes.Return.NO_PERMISSION
        assert code_of(other.device_set_mig_mode, handle, 0) is codes.Return.NO_PERMISSION


def test_a_container_sees_the_mig_devices_whose_capabilities_it_holds() -> None:
    nvml, handle = a_client()
    hidden, values = (a_device(nvml, handle, ONE, 0, start, 1) for start in (0, 1))
    gpu_instance = nvml.machine.board(nvml.machine.gpus[0]).instances[1]
    caps = capabilities.access(0, gpu_instance, gpu_instance.compute[0])
    assert caps == {3 + 8 * 9, 3 + 8 * 9 + 1}
    inside = library.Library(nvml.machine, visible={0}, caps=caps)
    inside.init()
    assert inside.device_get_mig_device_handle_by_index(handle, 1) == values
    absent = code_of(inside.device_get_mig_device_handle_by_index, handle, 0)
    assert absent is codes.Return.NOT_FOUND
    uuid = nvml.device_get_uuid(hidden)
    assert code_of(inside.device_get_handle_by_uuid, uuid) is codes.Return.NOT_FOUND


def test_a_vgpu_guest_makes_nothing() -> None:
    nvml = library.Library(machine.build("vgpu-guest", seed="node-1"))
    nvml.init()
    handle = nvml.device_get_handle_by_index(0)
    assert nvml.device_get_virtualization_mode(handle) == codes.Virtualization.VGPU
    assert code_of(nvml.device_set_mig_mode, handle, 1) is codes.Return.NOT_SUPPORTED


def test_an_older_driver_lacks_the_newer_profiles() -> None:
    text = profile.text_of("hgx-h100").replace("580.105.08", "515.65.01")
    nvml = library.Library(machine.Machine(profile.parse("old", text), "node-1"))
    nvml.init()
    handle = nvml.device_get_handle_by_index(0)
    assert nvml.device_get_gpu_instance_profile_info(handle, 7).id == ONE_MEDIA
    newer = code_of(nvml.device_get_gpu_instance_profile_info, handle, 9)
    assert newer is codes.Return.NOT_SUPPORTED


def test_an_a30_has_four_slices_and_media_engines_for_one_instance() -> None:
    nvml = library.Library(machine.build("a30", seed="node-1"))
    nvml.init()
    handle = nvml.device_get_handle_by_index(0)
    nvml.device_set_mig_mode(handle, 1)
    nvml.machine.restore(nvml.machine.gpus[0])
    assert nvml.device_get_max_mig_device_count(handle) == 4
    gpu_instance = nvml.device_create_gpu_instance_with_placement(handle, 6, 2, 2)
    assert nvml.gpu_instance_get_info(gpu_instance).id == 2
    assert nvml.device_get_gpu_instance_remaining_capacity(handle, 21) == 0
    device_create_gpu_instance = nvml.device_create_gpu_instance(handle, 14)
    assert nvml.gpu_instance_get_info(device_create_gpu_instance).id == 3


def test_a_gpu_without_mig_supports_none_of_it() -> None:
    nvml = library.Library(machine.build("l40s", seed="node-1"))
    nvml.init()
    handle = nvml.device_get_handle_by_index(0)
    assert nvml.device_get_max_mig_device_count(handle) == 0
    for call in (nvml.device_set_mig_mode, nvml.device_get_gpu_instance_profile_info):
        assert code_of(call, handle, 1) is codes.Return.NOT_SUPPORTED
    assert code_of(nvml.device_get_mig_mode, handle) is codes.Return.NOT_SUPPORTED


def an_rtx_pro() -> tuple[library.Library, client.Handle]:
    nvml = library.Library(machine.build("rtx-pro-6000", seed="node-1"))
    nvml.init()
    handle = nvml.device_get_handle_by_index(0)
    assert nvml.device_set_mig_mode(handle, 1) == codes.Return.SUCCESS
    return nvml, handle


def test_an_rtx_pro_has_twelve_memory_slices_and_the_ids_seen_on_one() -> None:
    nvml, handle = an_rtx_pro()
    infos = [nvml.device_get_gpu_instance_profile_info(handle, enum) for enum in (0, 0xA, 0xF, 0xD)]
    assert [(info.name, info.id, info.instance_count) for info in infos] == [
        ("MIG 1g.24gb", 14, 4),
        ("MIG 1g.24gb+gfx", 47, 4),
        ("MIG 1g.24gb+me.all", 65, 1),
        ("MIG 1g.24gb-me", 67, 4),
    ]
    places = nvml.device_get_gpu_instance_possible_placements(handle, 47)
    assert [(placement.start, placement.size) for placement in places] == [
        (0, 3),
        (3, 3),
        (6, 3),
        (9, 3),
    ]
    handles = [nvml.device_create_gpu_instance(handle, profile_id) for profile_id in (5, 14, 14)]
    assert [nvml.gpu_instance_get_info(handle).id for handle in handles] == [1, 5, 6]


def test_a_profile_with_all_media_engines_leaves_none_to_others() -> None:
    nvml, handle = an_rtx_pro()
    nvml.device_create_gpu_instance(handle, 65)
    left = nvml.device_get_gpu_instance_remaining_capacity
    ids = (14, 21, 47, 67, 5, 35, 64, 66, 0)
    assert [left(handle, profile_id) for profile_id in ids] == [0, 0, 0, 3, 0, 0, 0, 1, 0]
    refused = code_of(nvml.device_create_gpu_instance_with_placement, handle, 14, 6, 3)
    assert refused is codes.Return.INSUFFICIENT_RESOURCES


# Covers SIM-3.
def test_an_instance_with_more_multiprocessors_than_a_slice_has_a_profile_of_its_own() -> None:
    nvml, handle = a_client()
    double = nvml.device_create_gpu_instance(handle, ONE_DOUBLE)
    answer = nvml.gpu_instance_get_compute_instance_profile_info
    part = answer(double, 0, 0)
    assert (part.name, part.instance_count, part.multiprocessor_count) == ("MIG 1c.1g.20gb", 1, 16)
    info = answer(double, geometry.WIDE, 0)
    assert (info.slice_count, info.instance_count, info.multiprocessor_count) == (1, 1, 26)
    compute_instance = nvml.gpu_instance_create_compute_instance(double, geometry.WIDE)
    placed = nvml.compute_instance_get_info(compute_instance)
    assert placed.placement == geometry.Placement(0, 2)
    assert nvml.device_get_name(placed.device) == "NVIDIA H100 80GB HBM3 MIG 1g.20gb"
    assert nvml.device_get_attributes(placed.device).compute_instance_slice_count == 1
    single = nvml.device_create_gpu_instance(handle, ONE)
    assert code_of(answer, single, geometry.WIDE, 0) is codes.Return.NOT_SUPPORTED
