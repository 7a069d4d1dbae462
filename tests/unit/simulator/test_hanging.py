import pytest

from simulator import faults, hanging, machine, wire

BUS_ID = "00000000:53:00.0"


@pytest.fixture
def of() -> machine.Machine:
    made = machine.build("hgx-h100", seed="node-1")
    faults.hang(made, made.gpus[2], "*")
    return made


def hangs(of: machine.Machine, call: str, *arguments: str) -> bool:
    return hanging.hangs(of, wire.Request(frozenset(), call, arguments))


def test_a_call_hangs_with_the_gpu_that_its_handle_is_of(of: machine.Machine) -> None:
    sick, well = of.gpus[2], of.gpus[3]
    for kind in ("gpu", "mig", "gi", "ci"):
        assert hangs(of, "device_get_memory_info", f"{kind}/{sick.bus_id}/7")
        assert not hangs(of, "device_get_memory_info", f"{kind}/{well.bus_id}/7")


def test_a_handle_is_had_of_every_other_gpu_by_index_and_address(of: machine.Machine) -> None:
    for number, gpu in enumerate(of.gpus):
        assert hangs(of, "device_get_handle_by_index", str(number)) == (number == 2)
        assert hangs(of, "device_get_handle_by_pci_bus_id", gpu.slot.pci) == (number == 2)


def test_a_search_by_uuid_touches_the_gpus_before_the_one_it_ends_at(of: machine.Machine) -> None:
    found = [hangs(of, "device_get_handle_by_uuid", gpu.uuid) for gpu in of.gpus]
    assert found == [False, False, *[True] * 6]


def test_nvidia_smi_hangs_for_the_gpu_that_it_is_to_ask(of: machine.Machine) -> None:
    assert hangs(of, "nvidia_smi", "compute-policy", "-i", of.gpus[2].uuid)
    assert not hangs(of, "nvidia_smi", "compute-policy", "-i", of.gpus[3].uuid)
    assert not hangs(of, "nvidia_smi", "compute-policy", "-i", "7", "--set-timeslice", "2")
    assert hangs(of, "nvidia_smi", "-L")


def test_calls_of_no_gpu_return(of: machine.Machine) -> None:
    for call in ("init", "device_get_count", "event_set_create", "system_get_driver_version"):
        assert not hangs(of, call)


def test_one_call_alone_can_hang_and_an_end_is_an_end(of: machine.Machine) -> None:
    gpu = of.gpus[2]
    faults.hang(of, gpu, "device_set_mig_mode")
    assert hangs(of, "device_set_mig_mode", f"gpu/{gpu.bus_id}", "1")
    assert not hangs(of, "device_get_memory_info", f"gpu/{gpu.bus_id}")
    faults.hang(of, gpu, "")
    assert not hangs(of, "device_set_mig_mode", f"gpu/{gpu.bus_id}", "1")
    with pytest.raises(faults.BadFaultError, match="no call 'nap'"):
        faults.hang(of, gpu, "nap")
