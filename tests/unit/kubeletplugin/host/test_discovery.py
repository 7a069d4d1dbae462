import dataclasses
import functools

import pytest

from driver import errors, ids
from driver.devices import mig, model
from driver.kubeletplugin.host import discovery
from simulator import machine
from tests.fakes import nvml, partitioning


def test_before_the_first_reading_there_is_nothing() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    assert discovery.Discovery(fake).current().gpus == ()
    assert fake.readings == 0


def test_a_reading_without_a_change_returns_the_same_inventory() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    gpus = discovery.Discovery(nvml.FakeNvml(built))
    first = gpus.refresh()
    assert gpus.refresh() is first
    built.remove(built.find(first.gpus[7].uuid))
    assert len(gpus.refresh().gpus) == 7


def test_a_failed_reading_keeps_the_last_inventory() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake)
    last = gpus.refresh()
    fake.absent = True
    with pytest.raises(errors.DeviceFault):
        gpus.refresh()
    assert gpus.current() is last
    assert len(last.gpus) == 8


def test_an_inventory_after_a_failed_read_is_not_trusted() -> None:
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
    built = machine.build("hgx-h100", seed="node-1")
    gpus = discovery.Discovery(nvml.FakeNvml(built))
    third, fourth = gpus.refresh().gpus[2:4]
    built.lose(built.find(third.uuid))
    inventory = gpus.refresh()
    assert len(inventory.gpus) == 7
    assert [gpu.uuid for gpu in inventory.lost] == [third.uuid]
    assert [gpu.pci for gpu in inventory.all_gpus] == sorted(gpu.pci for gpu in inventory.all_gpus)
    built.restore(built.find(third.uuid))
    built.remove(built.find(fourth.uuid))
    inventory = gpus.refresh()
    assert (len(inventory.gpus), inventory.lost) == (7, ())


def a_place(gpu: model.Gpu, start: int = 0) -> mig.InstanceRef:
    return mig.InstanceRef(gpu.uuid, 9, mig.Placement(start, 4))


def test_our_instances_are_told_apart_from_everybody_elses() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpu = fake.inventory().gpus[0]
    acts = partitioning.FakePartitions(fake.library)
    acts.enable(gpu.uuid)
    for start in (0, 4):
        acts.create(a_place(gpu, start))
    gpus = discovery.Discovery(fake, lambda: frozenset({a_place(gpu, 4)}))
    for result in (gpus.refresh().gpus[0], gpus.refresh_gpu(gpu.uuid)):
        assert result.mig is not None
        assert [(instance.placement.start, instance.ours) for instance in result.mig.instances] == [
            (0, False),
            (4, True),
        ]


def test_an_instance_whose_record_comes_or_goes_while_it_is_read_is_ours() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpu = fake.inventory().gpus[0]
    acts = partitioning.FakePartitions(fake.library)
    acts.enable(gpu.uuid)
    acts.create(a_place(gpu))
    ours, nothing = frozenset({a_place(gpu)}), frozenset[mig.InstanceRef]()
    for answers in ([ours, nothing], [nothing, ours]):
        gpus = discovery.Discovery(fake, functools.partial(next, iter(answers)))
        result = gpus.refresh().gpus[0].mig
        assert result is not None
        assert not result.foreign


def test_a_gpu_that_was_read_again_meanwhile_is_not_overwritten_by_what_was_before() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake)
    uuid = gpus.refresh().gpus[0].uuid

    class Slow(nvml.FakeNvml):
        def inventory(self) -> model.Inventory:
            inventory = super().inventory()
            partitioning.FakePartitions(self.library).enable(uuid)
            gpus.refresh_gpu(uuid)
            return inventory

    gpus._nvml = Slow(fake.machine)
    result = gpus.refresh().gpus[0].mig
    assert result is not None
    assert result.enabled


def test_after_a_gpu_could_not_be_read_again_all_are_before_they_are_trusted() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    fake = nvml.FakeNvml(built)
    gpus = discovery.Discovery(fake)
    uuid = gpus.refresh().gpus[0].uuid
    built.lose(built.gpus[0])
    with pytest.raises(errors.DeviceFault):
        gpus.refresh_gpu(uuid)
    readings = fake.readings
    built.restore(built.gpus[0])
    assert gpus.trusted().by_uuid(uuid) is not None
    assert fake.readings == readings + 1
    gpus.trusted()
    assert fake.readings == readings + 1


def test_a_gpu_that_is_not_here_cannot_be_read_again() -> None:
    gpus = discovery.Discovery(nvml.FakeNvml(machine.build("hgx-h100", seed="node-1")))
    with pytest.raises(errors.DeviceFault, match="not, or no longer, on this node"):
        gpus.refresh_gpu(ids.GpuUuid("GPU-0"))


def a_hang(gpu: ids.GpuUuid) -> errors.Hung:
    return errors.Hung(gpu, "nvmlDeviceGetMigMode", 8.0)


def test_a_gpu_that_hangs_during_a_reread_is_lost_without_affecting_others() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake)
    previous = gpus.refresh()
    sick = previous.gpus[2]
    fake.hangs[sick.uuid] = a_hang(sick.uuid)
    with pytest.raises(errors.Hung):
        gpus.refresh_gpu(sick.uuid)
    assert gpus.current().lost == (sick,)
    assert len(gpus.trusted().gpus) == 7
    assert fake.readings == 1, "the others are not read again for it"
    assert gpus.refresh().lost == (sick,)
    fake.hangs.clear()
    assert gpus.refresh_gpu(sick.uuid) == sick
    assert gpus.current() == previous


def test_a_gpu_that_hangs_from_the_start_is_known_by_what_was_remembered() -> None:
    class Memory(discovery.NoInventoryStore):
        def read(self) -> model.Inventory:
            return model.Inventory(lost=previous.gpus)

    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    previous = fake.inventory()
    sick = previous.gpus[2]
    fake.hangs[sick.uuid] = a_hang(sick.uuid)
    gpus = discovery.Discovery(fake, store=Memory())
    assert gpus.current().gpus == ()
    assert gpus.refresh().lost == (sick,)
    assert discovery.Discovery(fake).refresh().lost == (), "never known, it is withheld"
    fake.hangs.clear()
    assert gpus.refresh().gpus == previous.gpus


def test_changes_of_ours_are_known_without_reading_the_gpu_again() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake)
    gpu, acts = gpus.refresh().gpus[0], partitioning.FakePartitions(fake.library)
    acts.enable(gpu.uuid)
    gpus.set_mig_mode(gpu.uuid, enabled=True)
    created = acts.create(a_place(gpu, 4))
    gpus.add_instance(gpu.uuid, created)
    current = gpus.current().gpus[0].mig
    assert current is not None
    assert (current.enabled, current.instances) == (
        True,
        (dataclasses.replace(created, ours=True),),
    )
    assert gpus.refresh_changed([gpu.uuid]).gpus[0].mig == current
    acts.destroy(a_place(gpu, 4), 0)
    gpus.remove_instance(a_place(gpu, 4))
    acts.disable(gpu.uuid, 0)
    gpus.set_mig_mode(gpu.uuid, enabled=False)
    assert gpus.current().gpus == gpus.refresh_changed([gpu.uuid]).gpus
    assert (fake.readings, gpus.current().gpus[0]) == (1, gpu)


def test_a_change_by_another_hand_has_all_gpus_read_again() -> None:
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake)
    gpu = gpus.refresh().gpus[0]
    assert gpus.refresh_changed([gpu.uuid]) is gpus.current()
    partitioning.FakePartitions(fake.library).enable(gpu.uuid)
    partitioning.FakePartitions(fake.library).create(a_place(gpu))
    result = gpus.refresh_changed([gpu.uuid]).gpus[0].mig
    assert result is not None
    assert len(result.foreign) == 1
    assert fake.readings == 2


def test_a_gpu_that_cannot_be_read_is_not_current() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    gpus = discovery.Discovery(nvml.FakeNvml(built))
    gpu = gpus.refresh().gpus[0]
    assert gpus.is_current(gpu, {9})
    built.lose(built.gpus[0])
    assert not gpus.is_current(gpu, {9})
