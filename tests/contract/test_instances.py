"""The acts of MIG: by the real adapter on a simulated machine, and by the fake over its model."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from driver import errors
from driver.devices import mig, model
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import mig_instances
from simulator import control, machine, wire
from tests.fakes import gpunode, partitioning, simulated_node
from tests.fakes import nvml as fake_nvml

IN_USE, NO_RESOURCES = "19", "23"
CODE = {IN_USE: "NVML error 19", NO_RESOURCES: "NVML error 23"}
WHOLE = str(0xFFFFFFFF)


@dataclass
class World:
    """A machine, MIG already on where that takes a reset: its acts, its reader, its faults."""

    acts: ports.Partitions
    nvml: ports.Nvml
    fault: Callable[..., object]

    @property
    def gpu(self) -> model.Gpu:
        return self.nvml.inventory().gpus[0]

    @property
    def parts(self) -> mig.Mig:
        result = self.gpu.mig
        assert result is not None
        return result

    def place(self, name: str, start: int = 0) -> mig.InstanceRef:
        profile = next(profile for profile in self.parts.profiles if profile.name == name)
        placement = next(placement for placement in profile.placements if placement.start == start)
        return mig.InstanceRef(self.gpu.uuid, profile.id, placement)

    def found(self) -> list[tuple[int, int]]:
        return [
            (instance.profile_id, instance.placement.start) for instance in self.parts.instances
        ]


class Watch:
    """Does what a test wants between two acts: dies, or has something go wrong."""

    def __init__(self) -> None:
        self.then: dict[str, Callable[[], object]] = {}

    def on_point(self, point: str) -> None:
        self.then.get(point, lambda: None)()


def die() -> None:
    raise gpunode.Killed


def fake(product: str, watch: Watch) -> World:
    built = machine.build(product, "contract")
    for gpu in built.gpus:
        built.board(gpu).mig = built.board(gpu).mig_pending = not gpu.resetless
    seen, commands = fake_nvml.FakeNvml(built), control.Control(built)
    acts = partitioning.FakePartitions(seen.library, watch=watch)
    return World(acts, seen, lambda call, *w: wire.invoke(getattr(commands, call), w))


@pytest.fixture
def product() -> str:
    return "hgx-h100"


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture(params=["fake", "simulated"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, product: str, watch: Watch
) -> Iterator[World]:
    if request.param == "fake":
        yield fake(product, watch)
        return
    if os.geteuid() != 0:
        pytest.skip("MIG is root's")
    with simulated_node.running(tmp_path, product) as node:
        acts = mig_instances.MigInstances(node.library.session, node.time, watch)
        yield World(acts, node.library, node.fault)


def test_the_mode_goes_on_and_off_and_says_whether_it_changed(world: World) -> None:
    gpu = world.gpu.uuid
    assert [world.acts.enable(gpu), world.parts.enabled] == [True, True]
    assert world.acts.enable(gpu) is False
    assert [world.acts.disable(gpu, 0), world.parts.enabled] == [True, False]
    assert world.acts.disable(gpu, 0) is False


def test_a_gpu_that_is_in_use_for_a_moment_is_waited_for(world: World) -> None:
    gpu = world.gpu.uuid
    world.fault("refuse", "0", IN_USE, "5")
    assert [world.acts.enable(gpu, 10.0), world.parts.enabled] == [True, True]


def test_a_gpu_that_stays_in_use_keeps_its_mode(world: World) -> None:
    gpu = world.gpu.uuid
    world.fault("refuse", "0", IN_USE, "1000")
    with pytest.raises(errors.Unchanged, match="MIG mode stays"):
        world.acts.enable(gpu, 1.0)
    assert world.parts.enabled is False


def test_created_instances_are_read_back(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("1g.10gb", 4)
    instance = world.acts.create(instance_ref)
    assert world.parts.instances == (instance,)
    assert (instance.placement, instance.compute_instance) == (mig.Placement(4, 1), 0)
    assert instance.uuid is not None
    assert instance.uuid.startswith("MIG-")
    assert world.nvml.refresh_gpu(world.gpu).mig == world.parts


def test_an_instance_is_destroyed_once_and_again(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    instance = world.acts.create(world.place("3g.40gb", 4))
    instance_ref = mig.InstanceRef(
        world.gpu.uuid, instance.profile_id, instance.placement, instance.uuid
    )
    for _ in range(2):
        world.acts.destroy(instance_ref, 0)
        assert world.found() == []
    world.acts.disable(world.gpu.uuid, 0)
    world.acts.destroy(instance_ref, 0)


@pytest.mark.parametrize(
    ("product", "name", "start"),
    [
        ("hgx-h100", "1g.20gb", 6),
        ("hgx-h100", "7g.80gb", 0),
        ("dgx-a100", "1g.5gb+me", 3),
        ("dgx-a100", "1g.10gb", 2),
        ("a30", "2g.12gb+me", 2),
        ("rtx-pro-6000", "1g.24gb+gfx", 9),
        ("rtx-pro-6000", "2g.48gb-me", 6),
    ],
)
def test_the_device_of_any_profile_is_all_of_its_instance(
    world: World, name: str, start: int
) -> None:
    world.acts.enable(world.gpu.uuid)
    instance = world.acts.create(world.place(name, start))
    assert instance.uuid is not None
    assert world.parts.instances == (instance,)


def test_a_place_that_is_taken_is_left_as_it_is(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    theirs = world.acts.create(world.place("3g.40gb", 4))
    for name in ("3g.40gb", "1g.10gb"):
        with pytest.raises(errors.Unchanged, match=CODE[NO_RESOURCES]):
            world.acts.create(world.place(name, 4))
    assert world.parts.instances == (theirs,)


@pytest.mark.parametrize("point", ["GPU instance made", "compute instance made"])
def test_a_death_in_the_middle_leaves_what_the_place_finds_again(
    world: World, watch: Watch, point: str
) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("2g.20gb", 2)
    watch.then[point] = die
    with pytest.raises(gpunode.Killed):
        world.acts.create(instance_ref)
    assert world.found() == [(instance_ref.profile_id, 2)]
    world.acts.destroy(instance_ref, 0)
    assert world.found() == []


def test_a_part_that_fails_takes_the_rest_with_it(world: World, watch: Watch) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("1g.10gb", 0)

    watch.then["GPU instance made"] = lambda: world.fault("refuse", "0", NO_RESOURCES, "1")
    with pytest.raises(errors.Unchanged, match=CODE[NO_RESOURCES]):
        world.acts.create(instance_ref)
    assert world.found() == []


def test_a_part_that_cannot_be_taken_back_is_said_to_be_there(world: World, watch: Watch) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("1g.10gb", 0)

    def refuse() -> None:
        world.fault("refuse", "0", NO_RESOURCES, "1")
        world.fault("refuse", "0", IN_USE, "1")

    watch.then["GPU instance made"] = refuse
    with pytest.raises(errors.DeviceFault) as raised:
        world.acts.create(instance_ref)
    assert not isinstance(raised.value, errors.Unchanged)
    assert world.found() == [(instance_ref.profile_id, 0)]
    world.acts.destroy(instance_ref, 0)
    assert world.found() == []


def test_processes_are_waited_for_as_long_as_patience_goes(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("3g.40gb", 0)
    world.acts.create(instance_ref)
    world.fault("refuse", "0", IN_USE, "6")
    with pytest.raises(errors.DeviceFault, match=CODE[IN_USE]):
        world.acts.destroy(instance_ref, 0.5)
    world.acts.destroy(instance_ref, 5)
    assert world.found() == []


def test_an_instance_with_a_process_stays_until_it_ends(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("3g.40gb", 0)
    instance = world.acts.create(instance_ref)
    world.fault("process", "0", "77", str(1 << 30), str(instance.gpu_instance), "0")
    with pytest.raises(errors.DeviceFault, match=CODE[IN_USE]):
        world.acts.destroy(instance_ref, 1)
    assert world.parts.instances == (instance,)
    world.fault("process", "0", "77", "0", str(instance.gpu_instance), "0")
    world.acts.destroy(instance_ref, 1)
    assert world.found() == []


def test_an_instance_with_another_uuid_is_somebody_elses(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("3g.40gb", 0)
    ours = world.acts.create(instance_ref)
    meant = mig.InstanceRef(
        instance_ref.gpu, instance_ref.profile_id, instance_ref.placement, ours.uuid
    )
    world.acts.destroy(meant, 0)
    theirs = world.acts.create(instance_ref)
    world.acts.destroy(meant, 0)
    assert world.parts.instances == (theirs,)


def test_the_mode_stays_while_an_instance_is_left(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    world.acts.create(world.place("1g.10gb", 0))
    assert world.acts.disable(world.gpu.uuid, 0) is False
    assert world.parts.enabled


@pytest.mark.parametrize("on", [True, False])
def test_a_mode_that_would_come_later_is_put_back(world: World, *, on: bool) -> None:
    gpu = world.gpu.uuid
    if not on:
        world.acts.enable(gpu)
    world.fault("refuse", "0", IN_USE, "1")
    with pytest.raises(errors.Unchanged, match=f"MIG mode stays.*{CODE[IN_USE]}"):
        world.acts.enable(gpu) if on else world.acts.disable(gpu, 0)
    world.fault("restore", "0")  # a reset would make a pending mode current
    assert world.parts.enabled is not on


@pytest.mark.parametrize("product", ["dgx-a100"])
def test_a_mode_that_takes_a_reset_is_refused_and_put_back(world: World) -> None:
    assert world.parts.enabled
    with pytest.raises(errors.Unchanged, match=r"would have to be reset.*NVML error 16"):
        world.acts.disable(world.gpu.uuid, 1)
    world.fault("restore", "0")
    assert world.parts.enabled


def test_a_gpu_that_is_lost_has_no_instance_to_destroy(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("1g.10gb", 0)
    world.acts.create(instance_ref)
    world.fault("lose", "0")
    world.acts.destroy(instance_ref, 0)
    with pytest.raises(errors.DeviceFault, match="NVML error 15"):
        world.acts.create(instance_ref)


def test_a_gpu_that_moved_with_its_mode_is_read_again(world: World) -> None:
    previous = world.gpu
    world.fault("moves", "0")
    world.acts.enable(previous.uuid)
    after = world.nvml.refresh_gpu(previous)
    assert (previous.minor, after.minor) == (0, 8)
    assert after.mig is not None
    assert after.mig.enabled


def test_a_created_instance_is_destroyed_by_its_ids_and_again(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    beside = world.acts.create(world.place("1g.10gb", 0))
    created = world.acts.create(world.place("3g.40gb", 4))
    instance_ref = mig.InstanceRef(
        world.gpu.uuid, created.profile_id, created.placement, created.uuid
    )
    for _ in range(2):
        world.acts.destroy(instance_ref, 0, created)
        assert world.parts.instances == (beside,)


def test_an_instance_with_the_same_ids_and_another_uuid_stays(world: World) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("3g.40gb", 0)
    ours = world.acts.create(instance_ref)
    meant = mig.InstanceRef(
        instance_ref.gpu, instance_ref.profile_id, instance_ref.placement, ours.uuid
    )
    world.acts.destroy(meant, 0, ours)
    theirs = world.acts.create(instance_ref)
    assert (theirs.gpu_instance, theirs.compute_instance) == (
        ours.gpu_instance,
        ours.compute_instance,
    )
    world.acts.destroy(meant, 0, ours)
    assert world.parts.instances == (theirs,)


@pytest.mark.parametrize("point", ["compute instance destroyed", "GPU instance destroyed"])
def test_a_death_in_a_destroy_by_ids_is_resumed(world: World, watch: Watch, point: str) -> None:
    world.acts.enable(world.gpu.uuid)
    instance_ref = world.place("2g.20gb", 2)
    created = world.acts.create(instance_ref)
    watch.then[point] = die
    with pytest.raises(gpunode.Killed):
        world.acts.destroy(instance_ref, 0, created)
    watch.then.clear()
    world.acts.destroy(instance_ref, 0, created)
    assert world.found() == []


def test_an_unchanged_gpu_is_current_and_an_instance_or_mode_changes_that(world: World) -> None:
    previous, profile = world.gpu, world.place("3g.40gb").profile_id
    assert world.nvml.is_current(previous, {profile})
    world.acts.enable(previous.uuid)
    assert not world.nvml.is_current(previous, {profile})
    enabled = world.gpu
    world.acts.create(world.place("3g.40gb"))
    assert not world.nvml.is_current(enabled, {profile})
    assert world.nvml.is_current(enabled, {world.place("1g.10gb").profile_id})
    assert world.nvml.is_current(world.gpu, {profile})
