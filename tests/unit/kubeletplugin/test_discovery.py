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


def test_what_a_failed_reading_left_is_not_trusted_until_it_is_read_again() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake)
    assert gpus.refresh() == gpus.trusted()
    readings = fake.readings
    fake.absent = True
    for _ in range(2):
        with pytest.raises(errors.DeviceFault):
            gpus.refresh() if fake.readings == readings else gpus.trusted()
    fake.absent = False
    assert len(gpus.trusted().gpus) == 8
    assert fake.readings == readings + 3


def test_a_gpu_that_is_lost_is_remembered_and_one_taken_out_is_not() -> None:
    made = machine.build("hgx-h100", seed="node-1")
    gpus = discovery.Discovery(nvml.FakeNvml(made))
    third, fourth = gpus.refresh().gpus[2:4]
    made.lose(made.find(third.uuid))
    found = gpus.refresh()
    assert len(found.gpus) == 7
    assert [gpu.uuid for gpu in found.lost] == [third.uuid]
    assert [gpu.pci for gpu in found.known] == sorted(gpu.pci for gpu in found.known)
    made.restore(made.find(third.uuid))
    made.remove(made.find(fourth.uuid))
    found = gpus.refresh()
    assert (len(found.gpus), found.lost) == (7, ())
