import pytest

from driver import errors, ids, reasons
from driver.kube import backoff
from driver.kubeletplugin import supply
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
def devices(gpus: plugin_shell.Gpus, time: fake_clock.FakeClock) -> supply.Supply:
    looking = backoff.Backoff(backoff.Pace(2.0, 20.0), lambda: 0.0)
    return supply.Supply(gpus.look, 60.0, looking, time)


def offer(devices: supply.Supply) -> supply.Offer:
    return devices.offer("gpu.ration.dev", NODE, "controller")


def test_before_the_first_look_there_is_nothing_to_publish(devices: supply.Supply) -> None:
    assert offer(devices) == supply.Offer(None, None)
    assert devices.due_in_s() == 0


def test_the_gpus_are_looked_at_now_and_then(
    devices: supply.Supply, gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
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
    devices: supply.Supply, gpus: plugin_shell.Gpus, time: fake_clock.FakeClock, code: int
) -> None:
    present, gpus.found = gpus.found, errors.DeviceFault("", "nvmlInit", code, "no driver")
    waits = []
    for _ in range(5):
        devices.refresh()
        waits.append(devices.due_in_s())
        time.advance(waits[-1])
    assert waits == [2, 4, 8, 16, 20]
    found = offer(devices)
    assert found.pool is not None
    assert not found.pool.devices
    assert found.problem is not None
    assert found.problem.reason is reasons.Reason.DRIVER_NOT_READY
    gpus.found = present
    devices.refresh()
    assert offer(devices).problem is None
    assert devices.due_in_s() == 60


def test_another_fault_keeps_what_was_seen_last(
    devices: supply.Supply, gpus: plugin_shell.Gpus, time: fake_clock.FakeClock
) -> None:
    devices.refresh()
    gpus.found = errors.DeviceFault("", "nvmlDeviceGetCount", 999, "Unknown error")
    time.advance(60)
    devices.refresh()
    found = offer(devices)
    assert found.pool is not None
    assert len(found.pool.devices) == 2
    assert found.problem is not None


def test_devices_that_break_a_limit_are_no_pool(
    devices: supply.Supply, gpus: plugin_shell.Gpus
) -> None:
    gpus.found = plugin_shell.inventory(1, brand="B" * 65)
    devices.refresh()
    found = offer(devices)
    assert found.pool is None
    assert found.problem is not None
    assert found.problem.reason is reasons.Reason.SLICES_INVALID
