"""The process dies after every single act on a MIG claim; a new one ends in the same state."""

import pytest

from driver import errors
from driver.devices import mig
from driver.kubeletplugin import ports
from simulator import faults, machine
from tests.fakes import gpunode, partitioning
from tests.support.builders import allocated_claims

DEVICES = ("gpu-0000-53-00-0-mig-3g40gb-0", "gpu-0000-53-00-0-mig-1g10gb-4")
WRITTEN = ["temporary written", "file written"]
PREPARE = [
    "temporary written",
    "file written",
    "MIG mode asked for",
    "step done: mig-on",
    "GPU instance made",
    "compute instance made",
    "step done: mig-make",
    "step done: mig-on",
    "GPU instance made",
    "compute instance made",
    "step done: mig-make",
    *WRITTEN * 4,  # what is told of each request, the spec, the record
]
UNPREPARE = [
    *WRITTEN,  # the record: what is taken back from now on is no longer done
    "compute instance destroyed",
    "GPU instance destroyed",
    "step done: mig-destroy",
    "step done: mig-off-again",
    "compute instance destroyed",
    "GPU instance destroyed",
    "step done: mig-destroy",
    "MIG mode asked for",
    "step done: mig-off-again",
    *["file removed"] * 4,  # the spec, what was told of each request, the record
]


def a_claim(node: gpunode.GpuNode) -> ports.ClaimRef:
    results = [allocated_claims.a_result(device, request=device[-1]) for device in DEVICES]
    return node.allocate(allocated_claims.an_allocated_claim(*results))


def hardware(node: gpunode.GpuNode) -> mig.Mig:
    """The GPU's MIG."""
    result = node.nvml.inventory().gpus[0].mig
    assert result is not None
    return result


def places(node: gpunode.GpuNode) -> list[tuple[int, int]]:
    return [
        (instance.placement.start, instance.placement.size) for instance in hardware(node).instances
    ]


def kinds(points: list[str]) -> list[str]:
    return [point if "step done" in point else point.partition(":")[0] for point in points]


def test_every_act_is_a_point(node: gpunode.GpuNode) -> None:
    ref, watch = a_claim(node), gpunode.DiesAt()
    node.process(watch).preparer.prepare(ref, gpunode.never)
    assert kinds(watch.passed) == PREPARE
    watch = gpunode.DiesAt()
    node.process(watch).preparer.unprepare(ref)
    assert kinds(watch.passed) == UNPREPARE


@pytest.mark.parametrize("number", range(len(PREPARE)))
def test_a_death_while_preparing_is_taken_back_by_the_next_start(
    node: gpunode.GpuNode, number: int
) -> None:
    previous, ref = hardware(node), a_claim(node)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(number)).preparer.prepare(ref, gpunode.never)
    process = node.process()
    report = process.recover()
    assert report.is_complete
    if number == len(PREPARE) - 1:  # the record was complete
        assert report.unchanged == [ref.uid]
        return
    assert (hardware(node), node.files()) == (previous, {})
    assert isinstance(process.preparer.prepare(ref, gpunode.never), ports.Prepared)
    assert sorted(places(node)) == [(0, 4), (4, 1)]


@pytest.mark.parametrize("number", range(len(PREPARE)))
def test_a_death_while_preparing_is_mended_by_the_next_prepare(
    node: gpunode.GpuNode, number: int
) -> None:
    ref = a_claim(node)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(number)).preparer.prepare(ref, gpunode.never)
    process = node.process()
    assert isinstance(process.preparer.prepare(ref, gpunode.never), ports.Prepared)
    assert sorted(places(node)) == [(0, 4), (4, 1)]
    record = process.executor.records.read(ref.uid)
    assert record is not None
    assert {fact["uuid"] for fact in record.facts if fact} == {
        instance.uuid for instance in hardware(node).instances
    }
    assert process.recover().unchanged == [ref.uid]


@pytest.mark.parametrize("number", range(len(PREPARE)))
def test_a_death_while_preparing_leaves_nothing_after_unprepare(
    node: gpunode.GpuNode, number: int
) -> None:
    previous, ref = hardware(node), a_claim(node)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(number)).preparer.prepare(ref, gpunode.never)
    assert node.process().preparer.unprepare(ref) is None
    assert (hardware(node), node.files()) == (previous, {})


@pytest.mark.parametrize("number", range(len(UNPREPARE)))
@pytest.mark.parametrize("recovers", [False, True])
def test_a_death_while_unpreparing_ends_with_nothing(
    node: gpunode.GpuNode, number: int, *, recovers: bool
) -> None:
    previous, ref = hardware(node), a_claim(node)
    node.process().preparer.prepare(ref, gpunode.never)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(number)).preparer.unprepare(ref)
    process = node.process()
    if recovers:
        assert process.recover().is_complete
    assert process.preparer.unprepare(ref) is None
    assert (hardware(node), node.files()) == (previous, {})


@pytest.mark.parametrize("number", range(len(UNPREPARE)))
def test_a_half_unprepared_claim_is_prepared_anew_after_a_start(
    node: gpunode.GpuNode, number: int
) -> None:
    ref = a_claim(node)
    node.process().preparer.prepare(ref, gpunode.never)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(number)).preparer.unprepare(ref)
    process = node.process()
    report = process.recover()
    assert report.is_complete
    assert isinstance(process.preparer.prepare(ref, gpunode.never), ports.Prepared)
    assert sorted(places(node)) == [(0, 4), (4, 1)]
    assert process.recover().unchanged == [ref.uid]


def rebooted(node: gpunode.GpuNode) -> None:
    node.nvml.machine.reboot()
    node.boot = "boot-2"
    node.follow()


def test_after_a_reboot_the_instances_are_made_again(node: gpunode.GpuNode) -> None:
    ref = a_claim(node)
    node.process().preparer.prepare(ref, gpunode.never)
    previous = {instance.uuid for instance in hardware(node).instances}
    rebooted(node)
    process = node.process()
    assert process.recover().restored == [ref.uid]
    after = {instance.uuid for instance in hardware(node).instances}
    assert len(after) == 2
    assert not previous & after
    assert process.recover().unchanged == [ref.uid]
    process.preparer.unprepare(ref)
    assert (hardware(node).enabled, node.files()) == (False, {})


@pytest.mark.parametrize("number", range(1, 17))
def test_a_death_while_making_it_again_after_a_reboot_leaks_nothing(
    node: gpunode.GpuNode, number: int
) -> None:
    previous, ref = hardware(node), a_claim(node)
    node.process().preparer.prepare(ref, gpunode.never)
    rebooted(node)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(number)).recover()
    process = node.process()
    assert process.recover().is_complete
    assert isinstance(process.preparer.prepare(ref, gpunode.never), ports.Prepared)
    assert sorted(places(node)) == [(0, 4), (4, 1)]
    process.preparer.unprepare(ref)
    assert (hardware(node), node.files()) == (previous, {})


def test_a_device_that_cannot_be_created_after_a_reboot_is_retried(node: gpunode.GpuNode) -> None:
    ref = a_claim(node)
    node.process().preparer.prepare(ref, gpunode.never)
    rebooted(node)
    source = node.nvml.machine
    faults.refuse(source, source.gpus[0], 23, 1)
    report = node.process().recover()
    assert list(report.failed) == [ref.uid]
    assert (places(node), node.spec_path().exists()) == ([], False)
    assert node.process().recover().restored == [ref.uid]
    assert sorted(places(node)) == [(0, 4), (4, 1)]


def test_instances_created_by_hand_after_a_reboot_are_left_alone(
    node: gpunode.GpuNode,
) -> None:
    ref = a_claim(node)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(5)).preparer.prepare(ref, gpunode.never)
    rebooted(node)
    theirs = by_hand(node)
    assert node.process().recover().rolled_back == [ref.uid]
    assert [instance.uuid for instance in hardware(node).instances] == [theirs.uuid]
    assert hardware(node).enabled


def by_hand(node: gpunode.GpuNode) -> mig.Instance:
    gpu = node.nvml.inventory().gpus[0]
    hands = partitioning.FakePartitions(node.nvml.library, node.follow)
    hands.enable(gpu.uuid)
    return hands.create(mig.InstanceRef(gpu.uuid, 9, mig.Placement(0, 4)))


def test_instances_that_a_reset_took_are_made_again(node: gpunode.GpuNode) -> None:
    ref = a_claim(node)
    node.process().preparer.prepare(ref, gpunode.never)
    source: machine.Machine = node.nvml.machine
    source.restore(source.gpus[0])
    node.follow()
    process = node.process()
    assert process.recover().restored == [ref.uid]
    assert sorted(places(node)) == [(0, 4), (4, 1)]


def test_an_instance_that_cannot_be_seen_is_believed(node: gpunode.GpuNode) -> None:
    ref = a_claim(node)
    node.process().preparer.prepare(ref, gpunode.never)
    process = node.process()
    source = node.nvml.machine
    source.lose(source.gpus[0])
    assert process.recover().unchanged == [ref.uid]


def test_an_adopted_instance_that_went_is_told_and_nothing_is_made(node: gpunode.GpuNode) -> None:
    by_hand(node)
    ref = node.allocate(allocated_claims.an_allocated_claim(allocated_claims.a_result(DEVICES[0])))
    node.process().preparer.prepare(ref, gpunode.never)
    source = node.nvml.machine
    source.restore(source.gpus[0])
    node.follow()
    report = node.process().recover()
    assert "it is not there any more" in report.failed[ref.uid]
    assert places(node) == []
    assert node.process().preparer.unprepare(ref) is None


def test_a_step_that_left_a_part_behind_is_taken_back_by_its_place(
    node: gpunode.GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = a_claim(node)

    def half(self: partitioning.FakePartitions, instance_ref: mig.InstanceRef) -> mig.Instance:
        built(self, instance_ref)
        raise errors.DeviceFault(instance_ref.gpu, "nvmlComputeInstanceDestroy", 999, "Unknown")

    built = partitioning.FakePartitions.create
    monkeypatch.setattr(partitioning.FakePartitions, "create", half)
    with pytest.raises(errors.DeviceFault, match="Unknown"):
        node.process().preparer.prepare(ref, gpunode.never)
    assert (places(node), hardware(node).enabled, node.files()) == ([], False, {})
