import pytest

from simulator import cuda_devices, geometry, library, machine, partition


def names(of: machine.Machine, visible: str | None, minors: set[int] | None = None) -> list[str]:
    """The minors of the GPUs a process enumerates, or the profile of its MIG device."""
    nvml = library.Library(of, visible=minors)
    found = cuda_devices.enumerated(cuda_devices.reachable(nvml), visible)
    return [str(device.gpu.slot.minor) for device in found]


@pytest.fixture
def of() -> machine.Machine:
    return machine.build("hgx-h100", seed="node-1")


def uuid(of: machine.Machine, minor: int) -> str:
    return of.find(str(minor)).uuid


def test_without_a_list_all_gpus_that_can_be_opened_are_there(of: machine.Machine) -> None:
    assert names(of, None) == list("01234567")
    assert names(of, None, {5, 2}) == ["2", "5"]


def test_a_list_chooses_and_orders(of: machine.Machine) -> None:
    assert names(of, "3,1") == ["3", "1"]
    assert names(of, f"{uuid(of, 6)}, 0") == ["6", "0"]
    assert names(of, uuid(of, 6)[:14]) == ["6"]


def test_ordinals_count_what_can_be_opened(of: machine.Machine) -> None:
    assert names(of, "1", {5, 7}) == ["7"]


@pytest.mark.parametrize(
    ("visible", "left"),
    [("", []), ("-1", []), ("9,0", []), ("0,9,1", ["0"]), ("2,2,3", ["2"]), ("GPU-", [])],
)
def test_a_list_ends_before_what_names_nothing_one_thing(
    of: machine.Machine, visible: str, left: list[str]
) -> None:
    assert names(of, visible) == left


def test_a_lost_gpu_is_not_there(of: machine.Machine) -> None:
    of.lose(of.gpus[0])
    assert names(of, None, {0, 1}) == ["1"]


def two_mig_devices(of: machine.Machine, minor: int) -> list[str]:
    mig = partition.Partition(of, of.find(str(minor)))
    mig.set_mode(enabled=True)
    made = [mig.create(mig.profile(9), geometry.Placement(start, 4)) for start in (0, 4)]
    return [mig.create_compute(instance, 2, None).uuid for instance in made]


def devices(of: machine.Machine, visible: str | None, caps: set[int] | None = None) -> list[str]:
    nvml = library.Library(of, caps=caps, root=caps is None)
    found = cuda_devices.enumerated(cuda_devices.reachable(nvml), visible)
    return [device.uuid for device in found]


def test_of_mig_devices_a_process_has_one(of: machine.Machine) -> None:
    first, second = two_mig_devices(of, 3)
    assert devices(of, None) == [first]
    assert devices(of, second) == [second]
    assert devices(of, f"{second},{first},0") == [second]
    assert devices(of, uuid(of, 3)) == [first]


def test_a_mig_device_takes_its_capabilities_to_be_there(of: machine.Machine) -> None:
    two_mig_devices(of, 3)
    nvml = library.Library(of, visible={3}, caps=set(), root=False)
    assert cuda_devices.reachable(nvml) == []
