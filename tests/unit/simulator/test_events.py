import pytest

from simulator import client, codes, events, faults, library, machine, profile
from tests.support.nvml_codes import code_of

XID = events.EventType.XID
WHOLE = codes.WHOLE_GPU


def a_client(*, root: bool = True, source: machine.Machine | None = None) -> library.Library:
    nvml = library.Library(source or machine.build("hgx-h100", seed="node-1"), root=root)
    nvml.init()
    return nvml


def registered(nvml: library.Library, *gpus: int, mask: int = XID) -> client.Handle:
    waiting = nvml.event_set_create()
    for index in gpus:
        nvml.device_register_events(nvml.device_get_handle_by_index(index), mask, waiting)
    return waiting


def test_an_event_is_delivered_once_to_each_set_that_waits_for_it() -> None:
    nvml = a_client()
    source = nvml.machine
    faults.xid(source, source.gpus[0], 13, WHOLE, WHOLE)
    handle, other = registered(nvml, 0, 1), registered(nvml, 0)
    faults.xid(source, source.gpus[0], 48, WHOLE, WHOLE)
    faults.xid(source, source.gpus[1], 79, WHOLE, WHOLE)
    data = nvml.event_set_wait(handle, 0)
    assert data.device == nvml.device_get_handle_by_index(0)
    assert (data.event_type, data.event_data, data.gpu_instance_id) == (XID, 48, WHOLE)
    assert nvml.event_set_wait(handle, 0).event_data == 79
    assert nvml.event_set_wait(other, 0).event_data == 48
    for waiting in (handle, other):
        assert code_of(nvml.event_set_wait, waiting, 0) is codes.Return.TIMEOUT


def test_a_mask_lets_its_types_through_and_no_others() -> None:
    nvml = a_client()
    source = nvml.machine
    single = registered(nvml, 0, mask=events.EventType.SINGLE_BIT_ECC)
    faults.xid(source, source.gpus[0], 48, WHOLE, WHOLE)
    faults.ecc(source, source.gpus[0], 3, 1)
    data = nvml.event_set_wait(single, 0)
    assert (data.event_type, data.event_data) == (events.EventType.SINGLE_BIT_ECC, 3)
    assert code_of(nvml.event_set_wait, single, 0) is codes.Return.TIMEOUT


def test_a_change_of_mig_is_an_event_with_the_instances_ids() -> None:
    nvml = a_client()
    gpu = nvml.device_get_handle_by_index(0)
    waiting = registered(nvml, 0, mask=events.EventType.MIG_CONFIG)
    nvml.device_set_mig_mode(gpu, 1)
    instance = nvml.device_create_gpu_instance(gpu, 9)
    nvml.gpu_instance_create_compute_instance(instance, 2)
    seen = [nvml.event_set_wait(waiting, 0) for _ in range(3)]
    ids = [(data.gpu_instance_id, data.compute_instance_id) for data in seen]
    assert ids == [(WHOLE, WHOLE), (1, WHOLE), (1, 0)]


def test_an_xid_of_an_instance_names_it_and_is_for_root_only() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    user = a_client(root=False, source=source)
    ours, theirs = registered(nvml, 0), registered(user, 0)
    nvml.device_set_mig_mode(gpu, 1)
    instance = nvml.device_create_gpu_instance(gpu, 19)
    nvml.gpu_instance_create_compute_instance(instance, 0)
    faults.xid(source, source.gpus[0], 43, 7, 0)
    faults.xid(source, source.gpus[0], 95, WHOLE, WHOLE)
    data = nvml.event_set_wait(ours, 0)
    assert (data.event_data, data.gpu_instance_id, data.compute_instance_id) == (43, 7, 0)
    assert user.event_set_wait(theirs, 0).event_data == 95


def test_events_before_a_loss_are_delivered_and_then_the_loss_is_told() -> None:
    nvml = a_client()
    source = nvml.machine
    waiting = registered(nvml, 0, 3)
    faults.xid(source, source.gpus[3], 79, WHOLE, WHOLE)
    source.lose(source.gpus[3])
    assert nvml.event_set_wait(waiting, 0).event_data == 79
    assert code_of(nvml.event_set_wait, waiting, 0) is codes.Return.GPU_IS_LOST
    source.restore(source.gpus[3])
    assert code_of(nvml.event_set_wait, waiting, 0) is codes.Return.TIMEOUT


def test_a_freed_set_is_unknown_and_a_gpu_is_no_set() -> None:
    nvml = a_client()
    waiting = registered(nvml, 0)
    nvml.event_set_free(waiting)
    assert code_of(nvml.event_set_wait, waiting, 0) is codes.Return.UNKNOWN
    gpu = nvml.device_get_handle_by_index(0)
    assert code_of(nvml.event_set_wait, gpu, 0) is codes.Return.INVALID_ARGUMENT


@pytest.mark.parametrize(("version", "newer"), [("580.105.08", 0x8000), ("550.90.07", 0)])
def test_a_type_the_driver_does_not_have_registers_nothing(version: str, newer: int) -> None:
    text = profile.text_of("hgx-h100").replace("580.105.08", version)
    nvml = a_client(source=machine.Machine(profile.parse("h100", text), "node-1"))
    gpu, waiting = nvml.device_get_handle_by_index(0), nvml.event_set_create()
    supported = nvml.device_get_supported_event_types(gpu)
    assert supported & 0x10F == 0x10F
    assert supported & events.EventType.RECOVERY_ACTION == newer
    refused = code_of(nvml.device_register_events, gpu, 0x10000 | XID, waiting)
    assert refused is codes.Return.NOT_SUPPORTED
    faults.xid(nvml.machine, nvml.machine.gpus[0], 48, WHOLE, WHOLE)
    assert code_of(nvml.event_set_wait, waiting, 0) is codes.Return.TIMEOUT
