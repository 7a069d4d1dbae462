"""MIG that could not be turned off when its last claim ended is turned off later, and only then."""

from pathlib import Path

import pytest

from driver import errors
from tests.fakes import gpunode
from tests.fakes.migclaims import EIGHTH, HALF, WHOLE, a_claim, mig_of, prepared


def lose(node: gpunode.GpuNode) -> None:
    node.nvml.machine.lose(node.nvml.machine.gpus[0])


def find(node: gpunode.GpuNode) -> None:
    node.nvml.machine.restore(node.nvml.machine.gpus[0])


def ended_while_lost(node: gpunode.GpuNode) -> gpunode.Process:
    """A plugin whose only MIG claim ended while its GPU was off the bus, which it is no more."""
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    process = node.process()
    lose(node)
    assert process.preparer.unprepare(ref) is None
    find(node)
    assert mig_of(node).enabled
    return process


def owed(node: gpunode.GpuNode) -> list[Path]:
    return list((node.base / "state/mig-owed").glob("*"))


def test_a_lost_gpus_mig_is_disabled_on_return_if_its_claim_ended(
    node: gpunode.GpuNode,
) -> None:
    process = ended_while_lost(node)
    assert process.mend() == ()
    assert not mig_of(node).enabled
    assert owed(node) == []


def test_a_new_process_knows_what_the_last_one_left_on(node: gpunode.GpuNode) -> None:
    ended_while_lost(node)
    assert node.process().mend() == ()
    assert not mig_of(node).enabled


def test_a_gpu_that_is_still_lost_is_named_and_tried_again(node: gpunode.GpuNode) -> None:
    process = ended_while_lost(node)
    lose(node)
    (problem,) = process.mend()
    assert problem.startswith(f"MIG of {node.nvml.machine.gpus[0].uuid}, on since its last claim")
    find(node)
    assert process.mend() == ()
    assert not mig_of(node).enabled


def test_mig_stays_on_while_another_claim_has_the_gpu_and_goes_with_it(
    node: gpunode.GpuNode,
) -> None:
    process = ended_while_lost(node)
    later = a_claim(node, HALF, number=2)
    prepared(node, later)
    assert process.mend() == ()
    assert mig_of(node).enabled
    process.preparer.unprepare(later)
    process.mend()
    assert not mig_of(node).enabled


def test_a_whole_gpu_given_meanwhile_does_not_bring_mig_back_for_good(
    node: gpunode.GpuNode,
) -> None:
    process = ended_while_lost(node)
    whole = a_claim(node, WHOLE, number=2)
    prepared(node, whole)
    assert not mig_of(node).enabled
    assert process.mend() == ()
    process.preparer.unprepare(whole)
    process.mend()
    assert not mig_of(node).enabled


def test_pending_mig_disables_end_with_a_reboot(node: gpunode.GpuNode) -> None:
    ended_while_lost(node)
    node.boot = "boot-2"
    node.process().mend()
    assert mig_of(node).enabled


def test_mig_that_an_administrator_turned_on_is_never_owed(node: gpunode.GpuNode) -> None:
    process = node.process()
    board = node.nvml.machine.board(node.nvml.machine.gpus[0])
    board.mig = board.mig_pending = True
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    lose(node)
    process.preparer.unprepare(ref)
    find(node)
    assert process.mend() == ()
    assert mig_of(node).enabled


def test_a_claim_whose_gpu_is_lost_stays_where_nothing_can_be_written(
    node: gpunode.GpuNode,
) -> None:
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    process = node.process()
    lose(node)
    (node.base / "state/mig-owed").write_text("a file where the folder should be")
    with pytest.raises(errors.NodeFault, match="mig-owed"):
        process.preparer.unprepare(ref)
    assert node.files()
    (node.base / "state/mig-owed").unlink()
    assert process.preparer.unprepare(ref) is None
    assert node.files() == {}
