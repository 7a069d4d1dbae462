"""The plugin's way into NVML while a GPU of a simulated machine hangs."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import clock, errors, ids
from driver.devices import health, model
from driver.kubeletplugin.nvml import bounded_settings, lanes
from driver.kubeletplugin.nvml import health as nvml_health
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.nvml.queries import compute_mode, power
from driver.kubeletplugin.nvml.queries import processes as gpu_processes
from driver.kubeletplugin.prepare import compute_modes
from simulator import builder, control, layout, machine, node, store
from tests.fakes import loading, waiting
from tests.fakes import nvml as nvml_fakes

SICK, WELL = 2, 5


@dataclasses.dataclass
class World:
    base: Path
    library: nvml.NvmlLibrary
    found: model.Inventory

    @property
    def uuids(self) -> list[ids.GpuUuid]:
        return [gpu.uuid for gpu in self.found.gpus]

    def hang(self, call: str = "*") -> None:
        control.send(self.base, "hang", str(SICK), call)

    def end(self) -> None:
        control.send(self.base, "hang", str(SICK), "")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    builder.build(tmp_path, store.create(tmp_path, "hgx-h100", "node-1"))
    running = node.Node(tmp_path)
    running.start()
    position = layout.Layout(tmp_path)
    inside = lanes.Lanes(clock.SystemClock(), 0.5)
    library = nvml.NvmlLibrary(position.driver_root, position.host_root, inside)
    inventory = library.inventory()
    library.set_gpus(inventory)
    created = World(tmp_path, library, inventory)
    try:
        yield created
    finally:
        created.end()
        library.close()
        loading.forget()
        running.stop()


def test_seven_gpus_are_read_beside_one_that_hangs_and_all_eight_after_it(world: World) -> None:
    world.hang()
    beside = world.library.inventory()
    assert [gpu.uuid for gpu in beside.gpus] == [
        gpu for number, gpu in enumerate(world.uuids) if number != SICK
    ]
    (broken,) = beside.broken
    assert broken.location == world.uuids[SICK]
    assert "hangs: it has not returned" in broken.problem
    assert world.library.session.number == 1, "the library is not started anew for that"
    world.end()
    waiting.until(lambda: not world.library.session.lanes.has_hung())
    assert world.library.inventory() == world.found


def test_gpus_that_are_read_at_once_are_each_their_own(world: World) -> None:
    """pynvml keeps a module's number where every thread writes it."""
    for _ in range(10):
        assert world.library.inventory() == world.found
    assert [gpu.module for gpu in world.found.gpus] == [
        gpu.module
        for gpu in nvml_fakes.FakeNvml(machine.build("hgx-h100", seed="node-1")).inventory().gpus
    ]


def test_a_handle_of_a_gpu_is_had_beside_one_that_hangs_before_it(world: World) -> None:
    """Search by UUID, which would come by the sick one."""
    session = world.library.session
    session.close()
    world.hang()
    well = world.uuids[WELL]
    assert gpu_processes.NvmlProcesses(session).count(well) == 0
    assert power.NvmlMeter(session).power_watts(well)
    assert session.run_on(well, lambda _: 1) == 1
    with pytest.raises(errors.Hung):
        gpu_processes.NvmlProcesses(session).count(world.uuids[SICK])
    assert session.hung_call(world.uuids[SICK]) is not None
    assert session.hung_call(well) is None


def test_a_handle_is_looked_up_once_a_start(world: World) -> None:
    session, well = world.library.session, world.uuids[WELL]
    first = session.run_on(well, lambda handle: handle)
    assert session.run_on(well, lambda handle: handle) is first
    session.close()
    assert session.run_on(well, lambda handle: handle) is not first


def test_a_compute_mode_that_hangs_keeps_no_other_from_its_own(world: World) -> None:
    session = world.library.session
    setting = bounded_settings.BoundedComputeModes(compute_mode.NvmlComputeModes(session), session)
    world.hang("device_get_compute_mode")
    with pytest.raises(errors.Hung, match="nvmlDeviceGetComputeMode"):
        setting.read(world.uuids[SICK])
    setting.write(world.uuids[WELL], compute_modes.EXCLUSIVE)
    assert setting.read(world.uuids[WELL]) == compute_modes.EXCLUSIVE


def test_the_health_watch_names_the_hanging_call_and_still_sees_other_gpus(
    world: World,
) -> None:
    watcher = nvml_health.NvmlHealth(world.library.session, patience_s=0.05)
    present = waiting.value(watcher.readable_gpus, lambda gpus: len(gpus) == 8)
    assert {watched.problem for watched in watcher.watch(present)} == {""}
    world.hang()
    sick, well = world.uuids[SICK], world.uuids[WELL]
    signs = waiting.value(lambda: watcher.poll(sick), lambda poll_result: bool(poll_result.hung))
    assert signs == health.PollResult(hung="nvmlDeviceGetMemoryInfo")
    assert waiting.value(lambda: watcher.poll(well), bool).recovery == 0
    assert sick in watcher.readable_gpus(), "it stays watched: taking it out would call into it"
    assert watcher.watch(watcher.readable_gpus()) == ()
    control.send(world.base, "xid", well, "48", str(0xFFFFFFFF), str(0xFFFFFFFF))
    assert watcher.wait(5) == health.XidEvent(well, 48)
    world.end()
    assert (
        waiting.value(lambda: watcher.poll(sick), lambda poll_result: not poll_result.hung).recovery
        == 0
    )
    assert sick in watcher.known_gpus()
    watcher.close()


def test_a_gpu_that_hangs_from_the_start_is_left_out_until_it_answers(world: World) -> None:
    world.library.session.close()
    world.hang()
    watcher = nvml_health.NvmlHealth(world.library.session, patience_s=0.3)
    sick = world.uuids[SICK]
    present = waiting.value(watcher.readable_gpus, lambda gpus: len(gpus) == 7)
    assert sick not in present
    assert sick in watcher.known_gpus()
    assert waiting.value(lambda: watcher.poll(sick), bool).hung
    world.end()
    waiting.value(watcher.readable_gpus, lambda gpus: len(gpus) == 8)
    watcher.close()
