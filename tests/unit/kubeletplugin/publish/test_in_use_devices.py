import dataclasses

from driver import ids, names
from driver.devices import faces, model
from driver.kubeletplugin.publish import in_use_devices
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from tests.support.builders.gpus import HALF, NAME, PLAIN, a_gpu, an_instance
from tests.support.builders.published_pools import NODE, kept, pool


def device(result: slice_builder.Pool, name: str) -> slices.Device:
    return next(item for item in result.devices if item.name == name)


def test_a_device_in_use_stays_as_it_was_published() -> None:
    previous = pool(PLAIN)
    upgraded = pool(dataclasses.replace(PLAIN, driver_version="590.1"))
    result = kept(upgraded, previous, NAME)
    assert device(result, NAME) == device(previous, NAME)
    assert device(result, f"{NAME}-ts") == device(upgraded, f"{NAME}-ts")


def test_its_taints_and_its_allocator_follow_the_present() -> None:
    sick = {ids.DeviceName(NAME): (slices.Taint(names.WITHDRAWN_TAINT, "", "NoSchedule"),)}
    expected = pool(PLAIN, allocator="scheduler", taints=sick)
    result = device(kept(expected, pool(PLAIN), NAME), NAME)
    assert result.attributes["allocator"] == "scheduler"
    assert [taint.key for taint in result.taints] == [names.WITHDRAWN_TAINT]


def test_a_missing_gpus_device_in_use_is_marked_withdrawn_and_keeps_its_counters() -> None:
    previous = pool(PLAIN)
    result = kept(pool(), previous, NAME)
    (group,) = result.groups
    assert group.counters == previous.groups[0].counters
    (left,) = group.devices
    assert [taint.key for taint in left.taints] == [names.ALLOCATOR_TAINT, names.WITHDRAWN_TAINT]
    assert left.consumes == device(previous, NAME).consumes


def test_a_face_no_longer_offered_stays_until_its_claim_is_gone() -> None:
    previous, after = (
        pool(PLAIN),
        pool(PLAIN, offering=faces.Offering(frozenset({faces.Kind.WHOLE}))),
    )
    assert [item.name for item in kept(after, previous, f"{NAME}-ts").devices] == [
        NAME,
        f"{NAME}-ts",
    ]
    assert kept(after, previous) == after


def test_an_instance_made_by_hand_beside_a_device_in_use_is_shown_and_counted() -> None:
    previous = pool(a_gpu())
    after = pool(a_gpu(an_instance(HALF, 4), enabled=True))
    result = kept(after, previous, f"{NAME}-mig-3g40gb-0")
    assert device(result, f"{NAME}-mig-3g40gb-0") == device(previous, f"{NAME}-mig-3g40gb-0")
    assert device(result, f"{NAME}-mig-3g40gb-4").attributes["uuid"] == "MIG-1"
    assert result.groups[0].counters == previous.groups[0].counters


def test_devices_with_missing_counters_are_left_out() -> None:
    previous = pool(PLAIN)
    result = kept(pool(a_gpu()), previous, NAME)
    assert all("mig" not in item.name for item in result.devices)


def test_the_published_pool_is_read_back_from_its_slices() -> None:
    expected = pool(PLAIN, a_gpu_at("0000:2a:00.0"))
    written = slice_builder.render(expected, slice_builder.Owner(NODE, "uid"), 3)
    assert (
        in_use_devices.stored_pool(map(slices.parse, written), expected.driver, expected.name)
        == expected
    )


def a_gpu_at(pci: str) -> model.Gpu:
    return dataclasses.replace(a_gpu(), pci=ids.PciAddress(pci), uuid=ids.GpuUuid("GPU-2"))
