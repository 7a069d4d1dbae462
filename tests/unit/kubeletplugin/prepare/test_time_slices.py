from pathlib import Path

import pytest

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.prepare import time_slices

GPU, OTHER = ids.GpuUuid("GPU-1"), ids.GpuUuid("GPU-2")
LACKING = ports.Unsupported("Not Supported")


class Slices:
    """Every run of nvidia-smi."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, str]] = []
        self.lacking = False
        self.fails = False

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        self.runs.append((gpu, interval))
        if self.fails:
            raise errors.NodeFault("run", "nvidia-smi", "it hangs")
        return LACKING if self.lacking else None


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.slices = Slices()
        self.load = "load-1"
        self.known = self.process()

    def process(self) -> time_slices.CachedTimeSlices:
        return time_slices.CachedTimeSlices(self.slices, self.folder, lambda: self.load)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "time-slices")


def test_another_slice_or_another_gpu_is_set(world: World) -> None:
    for gpu, interval in ((GPU, "Long"), (GPU, "Long"), (OTHER, "Long"), (GPU, "Default")):
        assert world.known.set_interval(gpu, interval) is None
    assert world.slices.runs == [(GPU, "Long"), (OTHER, "Long"), (GPU, "Default")]


def test_a_missing_time_slice_is_cached_too(world: World) -> None:
    world.slices.lacking = True
    assert [world.known.set_interval(GPU, "Long") for _ in range(2)] == [LACKING, LACKING]
    assert len(world.slices.runs) == 1


def test_a_failed_time_slice_is_retried_even_when_unchanged(world: World) -> None:
    world.known.set_interval(GPU, "Long")
    world.slices.fails = True
    with pytest.raises(errors.NodeFault):
        world.known.set_interval(GPU, "Short")
    world.slices.fails = False
    world.known.set_interval(GPU, "Long")
    assert len(world.slices.runs) == 3


def test_the_time_slice_is_set_again_after_a_reset_reload_or_plugin_start(world: World) -> None:
    world.known.set_interval(GPU, "Long")
    world.known.forget(GPU)
    world.known.set_interval(GPU, "Long")
    world.load = "load-2"
    world.known.set_interval(GPU, "Long")
    world.process().set_interval(GPU, "Long")
    assert len(world.slices.runs) == 4


def test_two_plugins_of_a_rolling_update_know_what_the_other_one_set(world: World) -> None:
    old, new = world.known, world.process()
    old.set_interval(GPU, "Long")
    new.set_interval(GPU, "Default")
    old.set_interval(GPU, "Long")
    new.set_interval(GPU, "Long")
    assert [interval for _, interval in world.slices.runs] == ["Long", "Default", "Long"]


def test_without_a_driver_to_tell_by_nothing_is_remembered(world: World) -> None:
    world.load = ""
    for _ in range(2):
        world.known.set_interval(GPU, "Long")
    assert len(world.slices.runs) == 2


@pytest.mark.parametrize("left", [b"{", b"[]", b"\xff"])
def test_a_file_that_cannot_be_read_says_nothing(world: World, left: bytes) -> None:
    world.known.set_interval(OTHER, "Long")
    (world.folder / GPU).write_bytes(left)
    world.known.set_interval(GPU, "Long")
    assert world.slices.runs[-1] == (GPU, "Long")


def test_a_load_of_the_driver_is_told_by_boot_module_and_version(tmp_path: Path) -> None:
    assert time_slices.driver_load(tmp_path, "boot-1") == ""
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("580.105.08")
    driver_loads = [time_slices.driver_load(tmp_path, boot) for boot in ("boot-1", "boot-2")]
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    driver_loads.append(time_slices.driver_load(tmp_path, "boot-1"))
    (tmp_path / "sys/module/nvidia").rename(tmp_path / "sys/module/old")
    (tmp_path / "sys/module/nvidia").mkdir()
    driver_loads.append(time_slices.driver_load(tmp_path, "boot-1"))
    assert len(set(driver_loads)) == 4
