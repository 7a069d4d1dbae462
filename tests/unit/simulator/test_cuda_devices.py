import pytest

from simulator import cuda_devices, geometry, library, machine, partition


def names(
    source: machine.Machine, visible: str | None, minors: set[int] | None = None
) -> list[str]:
    """The minors of the GPUs a process enumerates, or the profile of its MIG device."""
    nvml = library.Library(source, visible=minors)
    enumerated = cuda_devices.enumerated(cuda_devices.reachable(nvml), visible)
    return [str(device.gpu.slot.minor) for device in enumerated]


@pytest.fixture
def gpu_machine() -> machine.Machine:
    return machine.build("hgx-h100", seed="node-1")


def uuid(source: machine.Machine, minor: int) -> str:
    return source.find(str(minor)).uuid


def test_without_a_list_all_gpus_that_can_be_opened_are_there(gpu_machine: machine.Machine) -> None:
    assert names(gpu_machine, None) == list("01234567")
    assert names(gpu_machine, None, {5, 2}) == ["2", "5"]


def test_a_list_chooses_and_orders(gpu_machine: machine.Machine) -> None:
    assert names(gpu_machine, "3,1") == ["3", "1"]
    assert names(gpu_machine, f"{uuid(gpu_machine, 6)}, 0") == ["6", "0"]
    assert names(gpu_machine, uuid(gpu_machine, 6)[:14]) == ["6"]


def test_ordinals_count_what_can_be_opened(gpu_machine: machine.Machine) -> None:
    assert names(gpu_machine, "1", {5, 7}) == ["7"]


@pytest.mark.parametrize(
    ("visible", "left"),
    [("", []), ("-1", []), ("9,0", []), ("0,9,1", ["0"]), ("2,2,3", ["2"]), ("GPU-", [])],
)
def test_a_list_ends_before_what_names_nothing_one_thing(
    gpu_machine: machine.Machine, visible: str, left: list[str]
) -> None:
    assert names(gpu_machine, visible) == left


def test_a_lost_gpu_is_not_there(gpu_machine: machine.Machine) -> None:
    gpu_machine.lose(gpu_machine.gpus[0])
    assert names(gpu_machine, None, {0, 1}) == ["1"]


def two_mig_devices(source: machine.Machine, minor: int) -> list[str]:
    mig = partition.Partition(source, source.find(str(minor)))
    mig.set_mode(enabled=True)
    gpu_instances = [mig.create(mig.profile(9), geometry.Placement(start, 4)) for start in (0, 4)]
    return [mig.create_compute(instance, 2, None).uuid for instance in gpu_instances]


def devices(
    source: machine.Machine, visible: str | None, caps: set[int] | None = None
) -> list[str]:
    nvml = library.Library(source, caps=caps, root=caps is None)
    enumerated = cuda_devices.enumerated(cuda_devices.reachable(nvml), visible)
    return [device.uuid for device in enumerated]


def test_a_process_sees_one_mig_device(gpu_machine: machine.Machine) -> None:
    first, second = two_mig_devices(gpu_machine, 3)
    assert devices(gpu_machine, None) == [first]
    assert devices(gpu_machine, second) == [second]
    assert devices(gpu_machine, f"{second},{first},0") == [second]
    assert devices(gpu_machine, uuid(gpu_machine, 3)) == [first]


def test_a_mig_device_takes_its_capabilities_to_be_there(gpu_machine: machine.Machine) -> None:
    two_mig_devices(gpu_machine, 3)
    nvml = library.Library(gpu_machine, visible={3}, caps=set(), root=False)
    assert cuda_devices.reachable(nvml) == []
