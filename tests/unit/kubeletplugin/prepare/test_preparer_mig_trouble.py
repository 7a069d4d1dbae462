"""Tests of what fails, is busy, is lost or moves while MIG devices are made and taken back."""

import pytest

from driver import errors
from driver.devices import faces, mig
from driver.kubeletplugin import ports
from simulator import faults
from tests.fakes import gpunode, partitioning
from tests.fakes.migclaims import (
    EIGHTH,
    HALF,
    OTHER_HALF,
    WHOLE,
    a_claim,
    by_hand,
    gpu_of,
    mig_of,
    prepared,
    refused,
    spec_nodes,
)


@pytest.mark.parametrize("times", [1, 2])
def test_a_failed_creation_is_rolled_back_and_retried(node: gpunode.GpuNode, times: int) -> None:
    previous = gpu_of(node)
    machine = node.nvml.machine
    faults.refuse(machine, machine.gpus[0], 23, times)
    ref = a_claim(node, EIGHTH)
    for _ in range(times):
        with pytest.raises(errors.DeviceFault, match="NVML error 23"):
            node.process().preparer.prepare(ref, gpunode.never)
        assert (gpu_of(node), node.files()) == (previous, {})
    prepared(node, ref)


def test_a_mig_mode_that_stays_pending_is_reverted_and_its_devices_are_withheld(
    node: gpunode.GpuNode,
) -> None:
    machine = node.nvml.machine
    faults.refuse(machine, machine.gpus[0], 19, 1000)
    ref = a_claim(node, EIGHTH)
    with pytest.raises(errors.DeviceFault, match="NVML error 19"):
        node.process().preparer.prepare(ref, gpunode.never)
    board = machine.board(machine.gpus[0])
    assert (board.mig, board.mig_pending, node.files()) == (False, False, {})
    kept_back = node.mode_refusals.taints(node.process().gpus.refresh())
    assert kept_back.keys() == {
        face.name for face in faces.all_faces(gpu_of(node)) if isinstance(face, faces.MigFace)
    }
    faults.refuse(machine, machine.gpus[0], 19, 0)
    prepared(node, ref)
    assert node.mode_refusals.taints(node.process().gpus.refresh()) == {}


def test_a_gpu_that_another_program_reads_for_a_moment_is_waited_for(node: gpunode.GpuNode) -> None:
    machine = node.nvml.machine
    faults.refuse(machine, machine.gpus[0], 19, 20)
    prepared(node, a_claim(node, EIGHTH))


def test_a_mode_that_stays_on_keeps_the_whole_gpu_and_its_shares_back(
    node: gpunode.GpuNode,
) -> None:
    partitioning.FakePartitions(node.nvml.library).enable(gpu_of(node).uuid)
    machine = node.nvml.machine
    faults.refuse(machine, machine.gpus[0], 19, 1000)
    with pytest.raises(errors.DeviceFault, match="NVML error 19"):
        node.process().preparer.prepare(a_claim(node, WHOLE), gpunode.never)
    kept_back = node.mode_refusals.taints(node.process().gpus.refresh())
    whole = faces.device_name(gpu_of(node).pci)
    assert kept_back.keys() == {whole, f"{whole}-mps", f"{whole}-ts"}


def test_the_first_mig_device_is_destroyed_when_the_second_fails(
    node: gpunode.GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = a_claim(node, HALF, OTHER_HALF)
    built = partitioning.FakePartitions.create

    def meanwhile(self: partitioning.FakePartitions, instance_ref: mig.InstanceRef) -> mig.Instance:
        if instance_ref.placement.start == 0:  # somebody makes one there, right before us
            built(self, instance_ref)
        return built(self, instance_ref)

    monkeypatch.setattr(partitioning.FakePartitions, "create", meanwhile)
    with pytest.raises(errors.Unchanged):
        node.process().preparer.prepare(ref, gpunode.never)
    (left,) = mig_of(node).instances
    assert (left.placement.start, node.files()) == (0, {})


def test_an_instance_that_is_busy_for_a_while_is_waited_for(node: gpunode.GpuNode) -> None:
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    machine = node.nvml.machine
    faults.refuse(machine, machine.gpus[0], 19, 30)
    node.process().preparer.unprepare(ref)
    assert (mig_of(node).instances, node.files()) == ((), {})


def test_an_instance_that_stays_busy_stays_on_record_until_it_is_not(
    node: gpunode.GpuNode,
) -> None:
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    machine = node.nvml.machine
    faults.refuse(machine, machine.gpus[0], 19, 1000)
    with pytest.raises(errors.DeviceFault, match="NVML error 19"):
        node.process().preparer.unprepare(ref)
    assert refused(node, a_claim(node, HALF, number=2)).holders == (ref,)
    faults.refuse(machine, machine.gpus[0], 19, 0)
    node.process().preparer.unprepare(ref)
    assert (mig_of(node).enabled, node.files()) == (False, {})


def test_a_mode_that_stays_on_holds_up_no_claim(node: gpunode.GpuNode) -> None:
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    machine = node.nvml.machine
    gpu = machine.gpus[0]
    machine.board(gpu).shy = True
    node.nvml.library._others = 1
    node.process().preparer.unprepare(ref)
    assert (mig_of(node).enabled, mig_of(node).instances, node.files()) == (True, (), {})
    assert machine.board(gpu).mig_pending
    node.nvml.library._others = 0
    prepared(node, a_claim(node, WHOLE, number=2))
    assert not mig_of(node).enabled


def test_an_instance_that_is_somebody_elses_by_now_is_left_to_them(node: gpunode.GpuNode) -> None:
    ref = a_claim(node, HALF)
    prepared(node, ref)
    hands = partitioning.FakePartitions(node.nvml.library, node.follow)
    gpu = gpu_of(node)
    (mine,) = mig_of(node).instances
    hands.destroy(mig.InstanceRef(gpu.uuid, mine.profile_id, mine.placement), 0)
    theirs = by_hand(node, "3g.40gb", 4)
    node.process().preparer.unprepare(ref)
    assert [instance.uuid for instance in mig_of(node).instances] == [theirs.uuid]
    assert mig_of(node).enabled


def test_a_gpu_that_is_lost_has_nothing_to_take_back(node: gpunode.GpuNode) -> None:
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    machine = node.nvml.machine
    process = node.process()
    machine.lose(machine.gpus[0])
    assert process.preparer.unprepare(ref) is None
    assert node.files() == {}


def test_a_gpu_that_moved_with_its_mode_is_given_by_its_new_minor(node: gpunode.GpuNode) -> None:
    machine = node.nvml.machine
    faults.moves(machine, machine.gpus[0])
    process = node.process()
    ref = a_claim(node, EIGHTH)
    assert isinstance(process.preparer.prepare(ref, gpunode.never), ports.Prepared)
    (node_, *_) = spec_nodes(node, ref)
    assert node_ == ("/dev/nvidia8", 195, 8)
    faults.moves(machine, machine.gpus[0])
    process.preparer.unprepare(ref)
    whole = a_claim(node, WHOLE, number=2)
    assert isinstance(process.preparer.prepare(whole, gpunode.never), ports.Prepared)
    assert spec_nodes(node, whole) == [("/dev/nvidia0", 195, 0)]
