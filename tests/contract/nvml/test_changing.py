"""MIG, faults and events by the fake and by the simulated library: the same refusals."""

from typing import Any

import pytest

from simulator import codes
from tests.contract.nvml.worlds import World
from tests.support.nvml_codes import code_of

ONE, TWO, THREE = 19, 14, 9
WHOLE = str(codes.WHOLE_GPU)


@pytest.fixture
def nvml(changeable: World) -> Any:
    return changeable.nvml


@pytest.fixture
def gpu(nvml: Any) -> Any:
    """A GPU with MIG on."""
    handle = nvml.device_get_handle_by_index(0)
    assert nvml.device_set_mig_mode(handle, 1) == codes.Return.SUCCESS
    return handle


def a_device(nvml: Any, gpu: Any, start: int) -> tuple[Any, Any, Any]:
    """A whole 1g device: GPU instance, compute instance, MIG device."""
    instance = nvml.device_create_gpu_instance_with_placement(gpu, ONE, start, 1)
    info = nvml.gpu_instance_get_compute_instance_profile_info(instance, 0, 0)
    compute = nvml.gpu_instance_create_compute_instance(instance, info.id)
    return instance, compute, nvml.compute_instance_get_info(compute).device


def test_profiles_end_with_the_count_and_those_without_are_not_supported(
    nvml: Any, gpu: Any
) -> None:
    answer = nvml.device_get_gpu_instance_profile_info
    assert code_of(answer, gpu, 5) == codes.Return.NOT_SUPPORTED
    assert code_of(answer, gpu, 0x12) == codes.Return.INVALID_ARGUMENT


def test_a_taken_placement_is_insufficient_resources(nvml: Any, gpu: Any) -> None:
    nvml.device_create_gpu_instance_with_placement(gpu, THREE, 0, 4)
    created = nvml.device_create_gpu_instance_with_placement
    assert code_of(created, gpu, TWO, 2, 2) == codes.Return.INSUFFICIENT_RESOURCES
    assert code_of(created, gpu, TWO, 1, 2) == codes.Return.INVALID_ARGUMENT
    assert nvml.device_get_gpu_instance_remaining_capacity(gpu, TWO) == 1


def test_the_walk_meets_gaps(nvml: Any, gpu: Any) -> None:
    devices = [a_device(nvml, gpu, start) for start in range(3)]
    nvml.compute_instance_destroy(devices[1][1])
    walk = nvml.device_get_mig_device_handle_by_index
    assert walk(gpu, 2) == devices[2][2]
    assert code_of(walk, gpu, 1) == codes.Return.NOT_FOUND
    assert code_of(walk, gpu, 7) == codes.Return.INVALID_ARGUMENT


def test_an_instance_goes_after_what_it_holds_and_its_handle_is_stale(nvml: Any, gpu: Any) -> None:
    instance, compute, device = a_device(nvml, gpu, 4)
    assert nvml.device_get_gpu_instances(gpu, ONE) == [instance]
    assert code_of(nvml.gpu_instance_destroy, instance) == codes.Return.IN_USE
    nvml.compute_instance_destroy(compute)
    nvml.gpu_instance_destroy(instance)
    for call, handle in (
        (nvml.gpu_instance_get_info, instance),
        (nvml.compute_instance_get_info, compute),
        (nvml.device_get_uuid, device),
    ):
        assert code_of(call, handle) == codes.Return.NOT_FOUND


def test_an_instance_made_again_has_its_ids_and_another_uuid(nvml: Any, gpu: Any) -> None:
    uuids = set()
    for _ in range(3):
        instance, compute, device = a_device(nvml, gpu, 2)
        uuids.add(nvml.device_get_uuid(device))
        ids = nvml.device_get_gpu_instance_id(device), nvml.device_get_compute_instance_id(device)
        assert ids == (9, 0)
        nvml.compute_instance_destroy(compute)
        nvml.gpu_instance_destroy(instance)
    assert len(uuids) == 3


def test_the_mode_is_refused_under_instances_by_a_status_and_not_by_a_code(
    nvml: Any, gpu: Any
) -> None:
    nvml.device_create_gpu_instance(gpu, ONE)
    assert nvml.device_set_mig_mode(gpu, 0) == codes.Return.IN_USE
    assert [int(mode) for mode in nvml.device_get_mig_mode(gpu)] == [1, 0]


def test_the_compute_mode_is_a_mig_devices_with_mig_on(nvml: Any, gpu: Any) -> None:
    _, _, device = a_device(nvml, gpu, 0)
    assert code_of(nvml.device_set_compute_mode, gpu, 3) == codes.Return.NOT_SUPPORTED
    nvml.device_set_compute_mode(device, 3)
    assert nvml.device_get_compute_mode(device) == 3


def test_an_event_is_delivered_once_to_who_registered_before(
    changeable: World, nvml: Any, gpu: Any
) -> None:
    changeable.fault("xid", "0", "13", WHOLE, WHOLE)
    waiting = nvml.event_set_create()
    nvml.device_register_events(gpu, 0x8, waiting)
    changeable.fault("xid", "0", "79", WHOLE, WHOLE)
    data = nvml.event_set_wait(waiting, 1)
    assert (data.event_type, data.event_data, data.device) == (0x8, 79, gpu)
    assert (data.gpu_instance_id, data.compute_instance_id) == (codes.WHOLE_GPU,) * 2
    assert code_of(nvml.event_set_wait, waiting, 1) == codes.Return.TIMEOUT


def test_a_lost_gpu_is_lost_by_every_call_and_counted_still(changeable: World, nvml: Any) -> None:
    gpu, other = (nvml.device_get_handle_by_index(index) for index in (3, 4))
    changeable.fault("lose", "3")
    for call in (nvml.device_get_name, nvml.device_get_mig_mode, nvml.device_get_remapped_rows):
        assert code_of(call, gpu) == codes.Return.GPU_IS_LOST
    assert code_of(nvml.device_get_handle_by_index, 3) == codes.Return.GPU_IS_LOST
    assert nvml.device_get_count() == 8
    assert nvml.device_get_name(other)


def test_errors_repairs_and_remaps_are_told(changeable: World, nvml: Any) -> None:
    gpu = nvml.device_get_handle_by_index(0)
    changeable.fault("ecc", "0", "2", "1")
    changeable.fault("remap", "0", "1", "0")
    changeable.fault("repair", "0", "channel")
    assert [nvml.device_get_total_ecc_errors(gpu, error, 0) for error in (0, 1)] == [2, 1]
    assert [int(entry) for entry in nvml.device_get_repair_status(gpu)] == [1, 0]
    changeable.fault("restore", "0")
    assert [int(entry) for entry in nvml.device_get_repair_status(gpu)] == [0, 0]
    assert nvml.device_get_total_ecc_errors(gpu, 1, 1) == 1
