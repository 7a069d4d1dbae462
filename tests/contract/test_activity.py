"""Tests of who is at work on a GPU: by the real adapter on a simulated machine, and by the fake."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pynvml
import pytest

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml.queries import process_utilization
from simulator import codes, control, machine, wire
from tests.fakes import nvml as fake_nvml
from tests.fakes import simulated_node, waiting
from tests.fakes import users as fake_users

WHOLE = str(codes.WHOLE_GPU)


@dataclass
class World:
    """Workers on two GPUs, and the machine's faults."""

    workers: ports.UtilizationSampler
    gpus: tuple[ids.GpuUuid, ids.GpuUuid]
    fault: Callable[..., object]
    mig_on: Callable[[], object]

    def process(self, pid: int, percent: int) -> None:
        gpu = self.gpus[0]
        self.fault("process", gpu, str(pid), str(1 << 30), WHOLE, WHOLE)
        self.fault("work", gpu, str(pid), str(percent))

    def percents(self, stamp_us: int = 0) -> dict[int, int]:
        samples = self.workers.samples_since(self.gpus[0], stamp_us)
        assert samples is not None
        return {sample.pid: sample.percent for sample in samples}


def fake() -> World:
    built = machine.build("hgx-h100", "contract")

    def mig_on() -> None:
        built.board(built.gpus[0]).mig = True

    commands, answer = control.Control(built), fake_nvml.FakeNvml(built).library
    first, second = (ids.GpuUuid(gpu.uuid) for gpu in built.gpus[:2])
    return World(
        fake_users.FakeWorkers(answer),
        (first, second),
        lambda call, *words: wire.invoke(getattr(commands, call), words),
        mig_on,
    )


def simulated(base: Path) -> Iterator[World]:
    with simulated_node.running(base, "hgx-h100") as node:
        first, second = (gpu.uuid for gpu in node.gpus()[:2])
        session = node.library.session

        def mig_on() -> None:
            with session.use():
                pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByUUID(first), 1)

        yield World(
            process_utilization.NvmlUtilization(session), (first, second), node.fault, mig_on
        )
        node.fault("restore", first)


@pytest.fixture(params=["fake", "simulated"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Yield a world below a short path, as sockets need."""
    if request.param == "fake":
        yield fake()
        return
    with tempfile.TemporaryDirectory(prefix="works-") as temporary_directory:
        yield from simulated(Path(temporary_directory) / "m")


def test_active_processes_are_reported_by_pid_and_idle_ones_are_not(world: World) -> None:
    assert world.workers.samples_since(world.gpus[0], 0) == ()
    world.process(4712, 30)
    world.process(4711, 50)
    world.process(4713, 0)
    assert world.percents() == {4711: 50, 4712: 30}
    assert world.workers.samples_since(world.gpus[1], 0) == ()
    assert world.workers.utilization_percent(world.gpus[0]) == 80
    assert world.workers.utilization_percent(world.gpus[1]) == 0


def test_an_observed_sample_is_not_repeated(world: World) -> None:
    world.process(4711, 50)
    (sample,) = world.workers.samples_since(world.gpus[0], 0) or ()
    assert world.percents(sample.stamp_us + 10_000_000) == {}
    waiting.until(lambda: world.percents(sample.stamp_us) == {4711: 50})


def test_memory_that_grows_leaves_a_process_at_work(world: World) -> None:
    world.process(4711, 50)
    world.fault("process", world.gpus[0], "4711", str(2 << 30), WHOLE, WHOLE)
    assert world.percents() == {4711: 50}


def test_with_mig_on_nothing_is_told(world: World) -> None:
    world.mig_on()
    assert world.workers.samples_since(world.gpus[0], 0) is None
    assert world.workers.utilization_percent(world.gpus[0]) is None


def test_a_lost_gpu_is_a_fault_and_the_others_go_on(world: World) -> None:
    world.fault("lose", world.gpus[0])
    with pytest.raises(errors.DeviceFault):
        world.workers.samples_since(world.gpus[0], 0)
    with pytest.raises(errors.DeviceFault):
        world.workers.utilization_percent(world.gpus[0])
    assert world.workers.samples_since(world.gpus[1], 0) == ()
