from pathlib import Path

import pytest

from driver import clock, errors, ids
from driver.kubeletplugin.host import locks
from driver.kubeletplugin.plan import mps, steps, time_slicing
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.recovery import pending_mig, pending_settings

GPU, OTHER = ids.GpuUuid("GPU-a"), ids.GpuUuid("GPU-b")
HANGS = errors.Hung(GPU, "nvmlDeviceGetComputeMode", 8.0)


class World:
    """Two acts that take settings back, and one that makes one; `hung` hang."""

    def __init__(self, base: Path) -> None:
        self.hung: dict[ids.GpuUuid, errors.Hung] = {}
        self.done: list[tuple[str, ids.GpuUuid]] = []
        table = dict.fromkeys((mps.EXCLUSIVE, mps.SHARED_AGAIN, time_slicing.UNSLICE), self._act)
        self.owed = pending_settings.PendingSettings(
            table,
            lambda act: pending_mig.PendingGpus(base / "owed" / act, "boot-1"),
            locks.Locks(base / "locks", clock.SystemClock()),
            self.hung.get,
        )

    def _act(self, step: steps.Step) -> checkpoint.Facts:
        if step.gpu in self.hung:
            raise self.hung[step.gpu]
        self.done.append((step.act, step.gpu))
        return {}

    def undo(self, act: str, gpu: ids.GpuUuid = GPU) -> None:
        self.owed.table()[act](steps.Step(act, time_slicing.KEEP, gpu, {mps.CLAIM: "uid"}))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_end_of_a_claim_waits_for_no_gpu_that_hangs(world: World) -> None:
    world.hung[GPU] = HANGS
    world.undo(mps.SHARED_AGAIN)
    world.undo(time_slicing.UNSLICE)
    assert world.done == []
    (problem,) = world.owed.repair()
    assert "nvmlDeviceGetComputeMode hangs" in problem
    world.hung.clear()
    assert world.owed.repair() == ()
    assert world.done == [(mps.SHARED_AGAIN, GPU), (time_slicing.UNSLICE, GPU)]
    assert world.owed.repair() == ()
    assert len(world.done) == 2, "what is paid is owed no more"


def test_pending_settings_are_restored_before_the_next_prepare(world: World) -> None:
    world.hung[GPU] = HANGS
    world.undo(mps.SHARED_AGAIN)
    world.owed.restore([OTHER])
    with pytest.raises(errors.Hung):
        world.owed.restore([GPU])
    world.hung.clear()
    world.owed.restore([OTHER, GPU])
    assert world.done == [(mps.SHARED_AGAIN, GPU)], "only what was left"


def test_a_setting_that_fails_on_a_gpu_that_answers_is_no_debt(world: World) -> None:
    world.hung[GPU] = HANGS
    with pytest.raises(errors.Hung):
        world.undo(mps.EXCLUSIVE)
    world.undo(mps.SHARED_AGAIN, OTHER)
    assert world.done == [(mps.SHARED_AGAIN, OTHER)]
    assert len(world.owed.repair()) == 0
