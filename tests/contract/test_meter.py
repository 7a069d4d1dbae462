"""Tests of power and MIG usage: the real adapter on a simulated machine, and the fake."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from driver import clock, errors, ids
from driver.devices import mig
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import mig_instances
from driver.kubeletplugin.nvml.queries import power
from simulator import machine
from tests.fakes import nvml as fake_nvml
from tests.fakes import simulated_node
from tests.fakes import users as fake_users

GIB = 1 << 30


@pytest.fixture(scope="module")
def node() -> Iterator[simulated_node.SimulatedNode]:
    """Yield a node below a short path, as sockets need."""
    with (
        tempfile.TemporaryDirectory(prefix="meter-") as temporary_directory,
        simulated_node.running(Path(temporary_directory) / "m", "hgx-h100") as running,
    ):
        yield running


def test_the_fake_and_the_library_tell_the_same_watts(node: simulated_node.SimulatedNode) -> None:
    built = machine.build("hgx-h100", "contract")
    faked = watts(fake_users.FakeMeter(fake_nvml.FakeNvml(built).library), built.gpus[0].uuid)
    read = watts(power.NvmlMeter(node.library.session), node.gpus()[0].uuid)
    assert faked == read
    assert read is not None
    assert 10 < read < 1000


def watts(meter: ports.Meter, gpu: str) -> float | None:
    return meter.power_watts(ids.GpuUuid(gpu))


def test_a_lost_gpu_is_a_fault(node: simulated_node.SimulatedNode) -> None:
    gpu = node.gpus()[1].uuid
    node.fault("lose", gpu)
    with pytest.raises(errors.DeviceFault):
        power.NvmlMeter(node.library.session).power_watts(gpu)
    node.fault("restore", gpu)


def test_a_mig_device_reports_its_own_memory(node: simulated_node.SimulatedNode) -> None:
    gpu, session = node.gpus()[2], node.library.session
    assert gpu.mig is not None
    chosen = next(profile for profile in gpu.mig.profiles if profile.name == "3g.40gb")
    hands = mig_instances.MigInstances(session, clock.SystemClock())
    hands.enable(gpu.uuid)
    instance_ref = mig.InstanceRef(gpu.uuid, chosen.id, chosen.placements[0])
    instance = hands.create(instance_ref)
    assert instance.uuid is not None
    nvml_meter = power.NvmlMeter(session)
    assert nvml_meter.used_bytes(instance.uuid) == 0
    parts = str(instance.gpu_instance), str(instance.compute_instance)
    node.fault("process", gpu.uuid, "4711", str(2 * GIB), *parts)
    assert nvml_meter.used_bytes(instance.uuid) == 2 * GIB
    with session.use():
        assert pynvml.nvmlDeviceGetCount() == 8
