import dataclasses
from pathlib import Path

import pytest

from driver import errors, ids
from driver.kubeletplugin.prepare import compute_modes
from simulator import machine
from tests.fakes import sharing

DEFAULT, PROHIBITED, EXCLUSIVE = compute_modes.DEFAULT, 2, compute_modes.EXCLUSIVE


@dataclasses.dataclass
class World:
    knob: sharing.FakeModes
    gpu: ids.GpuUuid
    folder: Path
    load: str = "load-1"

    def modes(self) -> compute_modes.PersistentComputeModes:
        """Return the modes of a process that has just started."""
        return compute_modes.PersistentComputeModes(self.knob, self.folder, lambda: self.load)

    @property
    def mode(self) -> int | None:
        return self.knob.read(self.gpu)


@pytest.fixture
def world(tmp_path: Path) -> World:
    built = machine.build("hgx-h100", seed="node-1")
    return World(sharing.FakeModes(built), ids.GpuUuid(built.gpus[0].uuid), tmp_path / "modes")


@pytest.mark.parametrize("previous", [DEFAULT, PROHIBITED, EXCLUSIVE])
@pytest.mark.parametrize("shared", [DEFAULT, EXCLUSIVE])
def test_the_mode_before_is_there_again_whichever_it_was(
    world: World, previous: int, shared: int
) -> None:
    exclusive = shared == EXCLUSIVE
    world.knob.write(world.gpu, previous)
    assert world.modes().set_shared(world.gpu, exclusive=exclusive) == previous
    assert world.mode == shared
    assert world.modes().set_shared(world.gpu, exclusive=exclusive) == previous
    world.modes().restore(world.gpu, DEFAULT)
    assert world.mode == previous


def test_restored_compute_modes_are_forgotten(world: World) -> None:
    world.modes().set_shared(world.gpu, exclusive=True)
    world.modes().restore(world.gpu)
    world.knob.write(world.gpu, PROHIBITED)
    assert world.modes().set_shared(world.gpu, exclusive=False) == PROHIBITED
    world.modes().restore(world.gpu)
    assert world.mode == PROHIBITED


def test_a_change_that_hangs_and_is_made_later_is_undone_all_the_same(world: World) -> None:
    world.knob.write(world.gpu, PROHIBITED)
    setting = world.modes()
    real = world.knob.read

    def read_then_hang(device: str) -> int | None:
        mode = real(ids.GpuUuid(device))
        world.knob.hung.add(device)
        return mode

    world.knob.read = read_then_hang  # type: ignore[method-assign]
    with pytest.raises(errors.Hung):
        setting.set_shared(world.gpu, exclusive=True)
    world.knob.read = real  # type: ignore[method-assign]
    with pytest.raises(errors.Hung):
        setting.restore(world.gpu, DEFAULT)
    world.knob.end()
    assert world.mode == EXCLUSIVE, "the call came to its end"
    setting.restore(world.gpu, DEFAULT)
    assert world.mode == PROHIBITED


def test_a_mode_whose_reading_hangs_is_told_so_and_leaves_nothing_to_undo(world: World) -> None:
    world.knob.hung.add(world.gpu)
    with pytest.raises(errors.Hung, match="nvmlDeviceGetComputeMode hangs") as raised:
        world.modes().set_shared(world.gpu, exclusive=True)
    assert isinstance(raised.value, errors.Unchanged)
    assert not world.folder.exists()


def test_a_driver_that_was_loaded_again_has_lost_the_mode_and_what_was_before(
    world: World,
) -> None:
    world.knob.write(world.gpu, EXCLUSIVE)
    world.modes().set_shared(world.gpu, exclusive=False)
    world.load = "load-2"
    world.modes().restore(world.gpu)
    assert world.mode == DEFAULT


def test_claims_of_a_version_that_remembered_nothing_say_what_was_before(world: World) -> None:
    world.knob.write(world.gpu, EXCLUSIVE)
    assert world.modes().set_shared(world.gpu, exclusive=True, fallback=DEFAULT) == DEFAULT
    world.modes().restore(world.gpu)
    assert world.mode == DEFAULT
    world.knob.write(world.gpu, EXCLUSIVE)
    world.modes().restore(world.gpu, DEFAULT)
    assert world.mode == DEFAULT


@pytest.mark.parametrize("torn", [b"", b"{", b"[]", b'{"load": "load-1", "mode": "3"}'])
def test_a_file_that_is_torn_counts_as_none(world: World, torn: bytes) -> None:
    world.folder.mkdir()
    (world.folder / world.gpu).write_bytes(torn)
    world.knob.write(world.gpu, PROHIBITED)
    assert world.modes().set_shared(world.gpu, exclusive=False) == PROHIBITED
