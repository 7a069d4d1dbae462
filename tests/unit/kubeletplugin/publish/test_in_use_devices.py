import dataclasses

from driver import ids, names
from driver.devices import faces, model
from driver.kubeletplugin.publish import in_use_devices
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from tests.support.builders.gpus import HALF, NAME, PLAIN, a_gpu, an_instance
from tests.support.builders.published_pools import NODE, kept, pool


def device(found: slice_builder.Pool, name: str) -> slices.Device:
    return next(one for one in found.devices if one.name == name)


def test_a_device_in_use_stays_as_it_was_published() -> None:
    before = pool(PLAIN)
    upgraded = pool(dataclasses.replace(PLAIN, driver_version="590.1"))
    found = kept(upgraded, before, NAME)
    assert device(found, NAME) == device(before, NAME)
    assert device(found, f"{NAME}-ts") == device(upgraded, f"{NAME}-ts")


def test_its_taints_and_its_allocator_follow_the_present() -> None:
    sick = {ids.DeviceName(NAME): (slices.Taint(names.WITHDRAWN_TAINT, "", "NoSchedule"),)}
    wanted = pool(PLAIN, allocator="scheduler", taints=sick)
    found = device(kept(wanted, pool(PLAIN), NAME), NAME)
    assert found.attributes["allocator"] == "scheduler"
    assert [taint.key for taint in found.taints] == [names.WITHDRAWN_TAINT]


def test_a_missing_gpus_device_in_use_is_marked_withdrawn_and_keeps_its_counters() -> None:
    before = pool(PLAIN)
    found = kept(pool(), before, NAME)
    (group,) = found.groups
    assert group.counters == before.groups[0].counters
    (left,) = group.devices
    assert [taint.key for taint in left.taints] == [names.ALLOCATOR_TAINT, names.WITHDRAWN_TAINT]
    assert left.consumes == device(before, NAME).consumes


def test_a_face_no_longer_offered_stays_until_its_claim_is_gone() -> None:
    before, after = pool(PLAIN), pool(PLAIN, offering=faces.Offering(frozenset({faces.Kind.WHOLE})))
    assert [one.name for one in kept(after, before, f"{NAME}-ts").devices] == [NAME, f"{NAME}-ts"]
    assert kept(after, before) == after


def test_an_instance_made_by_hand_beside_a_device_in_use_is_shown_and_counted() -> None:
    before = pool(a_gpu())
    after = pool(a_gpu(an_instance(HALF, 4), enabled=True))
    found = kept(after, before, f"{NAME}-mig-3g40gb-0")
    assert device(found, f"{NAME}-mig-3g40gb-0") == device(before, f"{NAME}-mig-3g40gb-0")
    assert device(found, f"{NAME}-mig-3g40gb-4").attributes["uuid"] == "MIG-1"
    assert found.groups[0].counters == before.groups[0].counters


def test_what_draws_on_counters_that_are_not_there_is_left_out() -> None:
    before = pool(PLAIN)
    found = kept(pool(a_gpu()), before, NAME)
    assert all("mig" not in one.name for one in found.devices)


def test_the_published_pool_is_read_back_from_its_slices() -> None:
    wanted = pool(PLAIN, a_gpu_at("0000:2a:00.0"))
    written = slice_builder.render(wanted, slice_builder.Owner(NODE, "uid"), 3)
    assert (
        in_use_devices.stored_pool(map(slices.parse, written), wanted.driver, wanted.name) == wanted
    )


def a_gpu_at(pci: str) -> model.Gpu:
    return dataclasses.replace(a_gpu(), pci=ids.PciAddress(pci), uuid=ids.GpuUuid("GPU-2"))
