import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import prometheus_client
import pytest

from driver import errors, ids, names
from driver.devices.health import Ailment, PollResult, RecoveryAction
from driver.kubeletplugin import metrics
from driver.kubeletplugin.health import reset_watch
from driver.kubeletplugin.health.reset_policy import GpuUse
from driver.kubeletplugin.host import locks
from tests.fakes import clock as fake_clock

GPU, OTHER = ids.GpuUuid("GPU-0"), ids.GpuUuid("GPU-1")
ASKS = PollResult(recovery=RecoveryAction.GPU_RESET)
RESET = Ailment(names.TAINT_RECOVERY, "GPU_RESET", "NoSchedule", "")
HELD = GpuUse(ASKS, claims=(ids.ClaimUid("uid-1"),))


class World:
    """Two GPUs, of which the first asks for a reset; `uses` are what is found on it in turn."""

    def __init__(self, folder: Path) -> None:
        self.clock = fake_clock.FakeClock()
        self.registry = prometheus_client.CollectorRegistry()
        self.ailing: dict[ids.GpuUuid, list[Ailment]] = {GPU: [RESET], OTHER: []}
        self.uses: list[GpuUse | errors.RationError] = [GpuUse(ASKS)]
        self.asked: list[bool] = []
        self.acts: list[ids.GpuUuid] = []
        self.fault: errors.NodeFault | None = None
        self.done: list[str] = []
        self.failed: list[str] = []
        self.locks = locks.Locks(folder, self.clock, wait_s=0)
        self.watch = reset_watch.ResetWatch(
            reset_watch.ResetTarget(self.use, self.reset, self.locks),
            lambda: self.ailing,
            reset_watch.Deps(
                self.done.append, self.failed.append, metrics.Metrics(self.registry), self.clock
            ),
        )

    def use(self, gpu: ids.GpuUuid) -> GpuUse:
        assert gpu == GPU
        self.asked.append(self.is_held())
        popped = self.uses.pop(0) if len(self.uses) > 1 else self.uses[0]
        if isinstance(popped, errors.RationError):
            raise popped
        return popped

    def reset(self, gpu: ids.GpuUuid) -> None:
        assert self.is_held()
        self.clock.advance(2.5)
        self.acts.append(gpu)
        if self.fault is not None:
            raise self.fault

    def is_held(self) -> bool:
        with contextlib.suppress(errors.NodeFault), self.locks.gpus([GPU]):
            return False
        return True

    def look(self) -> None:
        self.watch.check_gpus(threading.Event())

    def resets(self, result: str) -> float | None:
        name = "dra_gpu_plugin_gpu_resets_total"
        return self.registry.get_sample_value(name, {"result": result})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    created = World(tmp_path)
    assert created.resets("done") == created.resets("failed") == 0
    yield created
    assert not created.is_held()


def test_an_unused_gpu_that_requests_a_reset_is_reset_while_reserved(world: World) -> None:
    world.look()
    assert world.acts == [GPU]
    assert world.asked == [False, True]
    assert world.done == ["GPU-0 asked for GPU_RESET and was reset in 2.5 s"]
    assert (world.failed, world.resets("done"), world.resets("failed")) == ([], 1, 0)


def test_a_refused_reset_is_reported_and_retried_after_ten_minutes(
    world: World,
) -> None:
    world.fault = errors.NodeFault("reset", GPU, "exit 255: In use by another client")
    world.look()
    assert "In use by another client" in world.failed[0]
    assert (world.done, world.resets("done"), world.resets("failed")) == ([], 0, 1)
    world.clock.advance(reset_watch.AGAIN_S - 3)
    world.look()
    assert world.acts == [GPU]
    world.clock.advance(1)
    world.fault = None
    world.look()
    assert world.acts == [GPU, GPU]
    assert len(world.done) == 1


def test_a_gpu_with_something_on_it_is_not_taken_in_hand(world: World) -> None:
    world.uses = [HELD]
    world.look()
    assert (world.acts, world.asked) == ([], [False])
    world.uses = [GpuUse(ASKS)]
    world.look()
    assert world.acts == [GPU]


def test_a_claim_prepared_before_the_reset_prevents_it(world: World) -> None:
    world.uses = [GpuUse(ASKS), HELD]
    world.look()
    assert (world.acts, world.asked) == ([], [False, True])


def test_unreadable_processes_count_as_using_the_gpu(world: World) -> None:
    world.uses = [errors.NodeFault("list", "desired", "no"), GpuUse(ASKS)]
    world.look()
    assert world.acts == []
    world.look()
    assert world.acts == [GPU]


def test_a_gpu_that_somebody_has_in_hand_is_left_for_the_next_look(world: World) -> None:
    with world.locks.gpus([GPU]):
        world.look()
    assert (world.acts, world.failed) == ([], [])
    world.look()
    assert world.acts == [GPU]


def test_it_looks_every_minute_and_at_once_when_health_has_changed(world: World) -> None:
    stop = threading.Event()
    world.ailing = {}
    looks: list[float] = []

    def ailing() -> dict[ids.GpuUuid, list[Ailment]]:
        looks.append(world.clock.elapsed_s)
        if len(looks) == 3:
            world.watch.wake()
        elif len(looks) == 4:
            stop.set()
            world.watch.wake()
        return {}

    world.watch._read_ailments = ailing
    world.watch.run(stop)
    assert looks == [0.0, 60.0, 120.0, 120.0]
