import pytest

from simulator import faults, hanging, machine, wire

BUS_ID = "00000000:53:00.0"


@pytest.fixture
def gpu_machine() -> machine.Machine:
    built = machine.build("hgx-h100", seed="node-1")
    faults.hang(built, built.gpus[2], "*")
    return built


def hangs(source: machine.Machine, call: str, *arguments: str) -> bool:
    return hanging.hangs(source, wire.Request(frozenset(), call, arguments))


def test_a_call_hangs_with_the_gpu_that_its_handle_is_of(gpu_machine: machine.Machine) -> None:
    sick, well = gpu_machine.gpus[2], gpu_machine.gpus[3]
    for kind in ("gpu", "mig", "gi", "ci"):
        assert hangs(gpu_machine, "device_get_memory_info", f"{kind}/{sick.bus_id}/7")
        assert not hangs(gpu_machine, "device_get_memory_info", f"{kind}/{well.bus_id}/7")


def test_a_handle_is_had_of_every_other_gpu_by_index_and_address(
    gpu_machine: machine.Machine,
) -> None:
    for number, gpu in enumerate(gpu_machine.gpus):
        assert hangs(gpu_machine, "device_get_handle_by_index", str(number)) == (number == 2)
        assert hangs(gpu_machine, "device_get_handle_by_pci_bus_id", gpu.slot.pci) == (number == 2)


def test_a_search_by_uuid_touches_the_gpus_before_the_one_it_ends_at(
    gpu_machine: machine.Machine,
) -> None:
    results = [
        hangs(gpu_machine, "device_get_handle_by_uuid", gpu.uuid) for gpu in gpu_machine.gpus
    ]
    assert results == [False, False, *[True] * 6]


def test_nvidia_smi_hangs_for_the_gpu_that_it_is_to_ask(gpu_machine: machine.Machine) -> None:
    assert hangs(gpu_machine, "nvidia_smi", "compute-policy", "-i", gpu_machine.gpus[2].uuid)
    assert not hangs(gpu_machine, "nvidia_smi", "compute-policy", "-i", gpu_machine.gpus[3].uuid)
    assert not hangs(gpu_machine, "nvidia_smi", "compute-policy", "-i", "7", "--set-timeslice", "2")
    assert hangs(gpu_machine, "nvidia_smi", "-L")


def test_calls_of_no_gpu_return(gpu_machine: machine.Machine) -> None:
    for call in ("init", "device_get_count", "event_set_create", "system_get_driver_version"):
        assert not hangs(gpu_machine, call)


def test_a_single_call_can_hang_and_recover(gpu_machine: machine.Machine) -> None:
    gpu = gpu_machine.gpus[2]
    faults.hang(gpu_machine, gpu, "device_set_mig_mode")
    assert hangs(gpu_machine, "device_set_mig_mode", f"gpu/{gpu.bus_id}", "1")
    assert not hangs(gpu_machine, "device_get_memory_info", f"gpu/{gpu.bus_id}")
    faults.hang(gpu_machine, gpu, "")
    assert not hangs(gpu_machine, "device_set_mig_mode", f"gpu/{gpu.bus_id}", "1")
    with pytest.raises(faults.BadFaultError, match="no call 'nap'"):
        faults.hang(gpu_machine, gpu, "nap")
