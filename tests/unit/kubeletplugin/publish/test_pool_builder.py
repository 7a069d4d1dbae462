import dataclasses

import pytest

from driver import errors, ids, reasons
from driver.devices import faces, model
from driver.kube import backoff
from driver.kubeletplugin.publish import handover, pool_builder
from tests.fakes import clock as fake_clock
from tests.fakes import plugin_shell

NODE = ids.NodeName("node-a")


@pytest.fixture
def gpus() -> plugin_shell.Gpus:
    return plugin_shell.Gpus(plugin_shell.inventory(2))


@pytest.fixture
def time() -> fake_clock.FakeClock:
    return fake_clock.FakeClock()


@pytest.fixture
def devices(gpus: plugin_shell.Gpus, time: fake_clock.FakeClock) -> pool_builder.PoolBuilder:
    looking = backoff.Backoff(backoff.Pace(2.0, 20.0), lambda: 0.0)
    return pool_builder.PoolBuilder(pool_builder.Sources(gpus.look), 60.0, looking, time)


def offer(devices: pool_builder.PoolBuilder) -> pool_builder.PoolUpdate:
    shown = handover.AllocatorState("controller")
    return devices.build(pool_builder.PublishOptions("gpu.ration.dev", NODE, shown), ())


def told(pool_update: pool_builder.PoolUpdate) -> list[reasons.Reason]:
    return [problem.reason for problem in pool_update.problems]


def test_before_the_first_look_there_is_nothing_to_publish(
    devices: pool_builder.PoolBuilder,
) -> None:
    assert offer(devices) == pool_builder.PoolUpdate(None)
    assert devices.due_in_s() == 0


def test_the_gpus_are_looked_at_now_and_then(
    devices: pool_builder.PoolBuilder, gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
) -> None:
    devices.refresh()
    time.advance(59)
    devices.refresh()
    assert (gpus.looks, devices.due_in_s()) == (1, 1)
    time.advance(1)
    devices.refresh()
    assert gpus.looks == 2


@pytest.mark.parametrize("code", [9, 12])
def test_an_absent_driver_is_an_empty_pool_with_its_reason_and_looked_for_soon(
    devices: pool_builder.PoolBuilder,
    gpus: plugin_shell.Gpus,
    time: fake_clock.FakeClock,
    code: int,
) -> None:
    present, gpus.found = gpus.found, errors.DeviceFault("", "nvmlInit", code, "no driver")
    waits = []
    for _ in range(5):
        devices.refresh()
        waits.append(devices.due_in_s())
        time.advance(waits[-1])
    assert waits == [2, 4, 8, 16, 20]
    pool_update = offer(devices)
    assert pool_update.pool is not None
    assert not pool_update.pool.devices
    assert told(pool_update) == [reasons.Reason.DRIVER_NOT_READY]
    gpus.found = present
    devices.refresh()
    assert not offer(devices).problems
    assert devices.due_in_s() == 60


def test_another_fault_keeps_what_was_seen_last(
    devices: pool_builder.PoolBuilder, gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
) -> None:
    devices.refresh()
    gpus.found = errors.DeviceFault("", "nvmlDeviceGetCount", 999, "Unknown error")
    time.advance(60)
    devices.refresh()
    pool_update = offer(devices)
    assert pool_update.pool is not None
    assert len(pool_update.pool.groups) == 2
    assert told(pool_update) == [reasons.Reason.DRIVER_NOT_READY]


def test_a_gpu_that_breaks_a_limit_is_left_out_and_hides_no_other(
    devices: pool_builder.PoolBuilder, gpus: plugin_shell.Gpus
) -> None:
    good, bad = plugin_shell.inventory(2).gpus
    odd = dataclasses.replace(bad, brand="B" * 65)
    gpus.found = model.Inventory((good, odd))
    devices.refresh()
    pool_update = offer(devices)
    assert pool_update.pool is not None
    assert [group.name for group in pool_update.pool.groups] == [faces.device_name(good.pci)]
    assert told(pool_update) == [reasons.Reason.SLICES_INVALID]
    assert "attribute brand: has 65 bytes; expected at most 64" in pool_update.problems[0].message


def test_a_gpu_that_cannot_be_read_is_told_and_looked_at_again_soon(
    devices: pool_builder.PoolBuilder, gpus: plugin_shell.Gpus
) -> None:
    two = plugin_shell.inventory(2)
    gpus.found = dataclasses.replace(two, broken=(model.BrokenGpu("GPU at index 2", "lost"),))
    devices.refresh()
    assert told(offer(devices)) == [reasons.Reason.GPU_UNREADABLE]
    assert devices.due_in_s() == 2
    gpus.found = two
    devices.request_refresh()
    devices.refresh()
    assert not offer(devices).problems


def test_the_pool_is_the_same_until_the_gpus_or_the_allocator_change(
    devices: pool_builder.PoolBuilder, gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
) -> None:
    devices.refresh()
    first = offer(devices).pool
    assert offer(devices).pool is first
    other = handover.AllocatorState("scheduler")
    options = pool_builder.PublishOptions("gpu.ration.dev", NODE, other)
    assert devices.build(options, ()).pool != first
    assert offer(devices).pool == first
    gpus.found = plugin_shell.inventory(1)
    time.advance(60)
    devices.refresh()
    assert offer(devices).pool != first


def test_kube_scheduler_gets_shared_faces_only_where_that_was_asked_for(
    devices: pool_builder.PoolBuilder,
) -> None:
    devices.refresh()

    def sharing(allocator: str, *, shares: bool) -> bool:
        shown = handover.AllocatorState(allocator)
        publish_options = pool_builder.PublishOptions("gpu.ration.dev", NODE, shown, shares=shares)
        pool = devices.build(publish_options, ()).pool
        assert pool is not None
        return any(device.allow_multiple for device in pool.devices)

    assert sharing("controller", shares=False)
    assert not sharing("scheduler", shares=False)
    assert sharing("scheduler", shares=True)


def test_changes_of_mig_are_checked_together_and_soon(
    gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
) -> None:
    checked: list[frozenset[ids.GpuUuid]] = []

    def check(changed: frozenset[ids.GpuUuid]) -> model.Inventory:
        checked.append(changed)
        return plugin_shell.inventory(1)

    sources = pool_builder.Sources(gpus.look, check_gpus=check)
    looking = backoff.Backoff(backoff.Pace(2.0, 20.0), lambda: 0.0)
    devices = pool_builder.PoolBuilder(sources, 60.0, looking, time)
    devices.refresh()
    first, second = ids.GpuUuid("GPU-1"), ids.GpuUuid("GPU-2")
    assert [devices.request_check(gpu) for gpu in (first, second, first)] == [True, False, False]
    assert devices.due_in_s() == pool_builder.CHECK_S
    devices.refresh()
    assert checked == []
    time.advance(pool_builder.CHECK_S)
    devices.refresh()
    assert (checked, gpus.looks) == ([frozenset({first, second})], 1)
    assert devices.due_in_s() == 60.0 - pool_builder.CHECK_S
    assert len(devices.last_published()[1]) == 1
    assert devices.request_check(first)


def test_a_gpu_that_a_check_cannot_read_is_reported_and_read_again_soon(
    gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
) -> None:
    two = plugin_shell.inventory(2)
    lost = dataclasses.replace(two, broken=(model.BrokenGpu("GPU at index 2", "lost"),))
    sources = pool_builder.Sources(gpus.look, check_gpus=lambda _changed: lost)
    looking = backoff.Backoff(backoff.Pace(2.0, 20.0), lambda: 0.0)
    devices = pool_builder.PoolBuilder(sources, 60.0, looking, time)
    devices.refresh()
    devices.request_check(two.gpus[0].uuid)
    time.advance(pool_builder.CHECK_S)
    devices.refresh()
    assert told(offer(devices)) == [reasons.Reason.GPU_UNREADABLE]
    assert (gpus.looks, devices.due_in_s()) == (1, 2)
    time.advance(2)
    devices.refresh()
    assert not offer(devices).problems
    assert (gpus.looks, devices.due_in_s()) == (2, 60)


def test_a_check_without_a_reader_of_its_own_reads_all_gpus(
    devices: pool_builder.PoolBuilder, gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
) -> None:
    devices.refresh()
    devices.request_check(ids.GpuUuid("GPU-1"))
    time.advance(pool_builder.CHECK_S)
    devices.refresh()
    assert gpus.looks == 2
