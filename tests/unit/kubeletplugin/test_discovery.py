import pytest

from driver import errors
from driver.kubeletplugin import discovery
from simulator import machine
from tests.fakes import nvml


def test_before_the_first_reading_there_is_nothing() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    assert discovery.Discovery(fake).current().gpus == ()
    assert fake.readings == 0


def test_a_failed_reading_keeps_the_last_inventory() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake)
    last = gpus.refresh()
    fake.absent = True
    with pytest.raises(errors.DeviceFault):
        gpus.refresh()
    assert gpus.current() is last
    assert len(last.gpus) == 8
