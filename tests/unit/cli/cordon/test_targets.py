"""The driver of a node's GPUs, and the devices of a target."""

import pytest

from driver import errors, ids, names
from driver.cli.cordon import targets
from driver.resources.dra import claims, slices
from tests.support.builders import objects

NVIDIA, AMD, NIC = "gpu.nvidia.com", "gpu.amd.com", "nic.example.com"
NODE = targets.Target(ids.NodeName("node-a"))


def published(*drivers: str, **attributes: str) -> list[slices.Slice]:
    device = objects.with_values(objects.a_device("gpu-0", taints=[]), **attributes)
    return [slices.parse(objects.a_slice("node-a", [device], driver)) for driver in drivers]


@pytest.mark.parametrize(
    ("drivers", "named", "chosen"),
    [
        ((names.DRIVER, NVIDIA, NIC), "", names.DRIVER),
        ((NVIDIA, NIC), "", NVIDIA),
        ((NVIDIA, NIC), NIC, NIC),
        ((NIC,), "", names.DRIVER),
        ((), "", names.DRIVER),
    ],
)
def test_the_driver_is_that_of_the_nodes_gpus_unless_it_is_named(
    drivers: tuple[str, ...], named: str, chosen: str
) -> None:
    assert targets.choose_driver(NODE, published(*drivers), named) == chosen


def test_two_drivers_of_gpus_have_to_be_told_apart_by_name() -> None:
    with pytest.raises(errors.BadInput, match=r"gpu\.amd\.com and gpu\.nvidia\.com publish GPUs"):
        targets.choose_driver(NODE, published(NVIDIA, AMD), "")


def test_our_plugin_under_another_name_is_known_by_its_attribute() -> None:
    renamed = published(NVIDIA, allocator="controller")
    assert targets.choose_driver(NODE, renamed, "") == NVIDIA
    assert targets.is_own(NVIDIA, renamed)
    assert not targets.is_own(NVIDIA, published(NVIDIA))


def test_a_target_of_another_driver_includes_its_own_devices_alone() -> None:
    whole = objects.with_values(objects.a_device("gpu-0", taints=[]), uuid="GPU-0")
    part = objects.with_values(objects.a_device("gpu-0-mig-1", taints=[]), parentUUID="GPU-0")
    other = objects.with_values(objects.a_device("gpu-1", taints=[]), uuid="GPU-1")
    slice_ = slices.parse(objects.a_slice("node-a", [whole, part, other], NVIDIA))
    target = targets.Target(ids.NodeName("node-a"), "gpu-0-mig-1")
    devices = targets.find_devices(target, NVIDIA, [slice_], frozenset())
    assert devices.target.gpu == "gpu-0"
    included = [
        name
        for name in ("gpu-0", "gpu-0-mig-1", "gpu-1")
        if devices.includes(claims.DeviceId(NVIDIA, "node-a", name))
    ]
    assert included == ["gpu-0", "gpu-0-mig-1"]
    assert not devices.includes(claims.DeviceId(NIC, "node-a", "gpu-0"))
