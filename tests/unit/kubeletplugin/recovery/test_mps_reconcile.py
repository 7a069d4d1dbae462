"""MPS daemons against records; and why compute modes and time slices need no such look."""

from pathlib import Path

import pytest

from driver import ids
from driver.devices import mps_files
from driver.kubeletplugin import ports
from driver.kubeletplugin.prepare import compute_modes
from driver.resources.dra import claims
from tests.fakes import gpunode
from tests.fakes.migclaims import WHOLE
from tests.support.node import claim_mps, shares


def a_daemon(key: str) -> mps_files.Desired:
    return mps_files.Desired(key=key, devices=("GPU-x",), pinned_memory=(mps_files.MIB,))


def test_a_matching_daemon_is_left_alone(node: gpunode.GpuNode) -> None:
    shares.prepare(node, shares.a_share(1))
    previous = dict(node.daemons.desired)
    assert node.process().mend() == ()
    assert node.daemons.desired == previous


def test_a_daemon_that_was_forgotten_is_asked_for_again_without_waiting(
    node: gpunode.GpuNode,
) -> None:
    for number, gib in ((1, 20), (2, 30)):
        shares.prepare(node, shares.a_share(number, gib=gib))
    previous = dict(node.daemons.desired)
    node.daemons.desired.clear()
    node.daemons.fail = "no word from the supervisor"
    assert node.process().mend() == ()
    assert node.daemons.desired == previous


def test_a_daemon_without_a_claim_goes_and_its_gpu_is_for_all_again(node: gpunode.GpuNode) -> None:
    gpu = ids.GpuUuid(shares.uuid(node))
    node.daemons.request(a_daemon(gpu))
    node.modes.write(gpu, compute_modes.EXCLUSIVE)
    assert node.process().mend() == ()
    assert not node.daemons.desired
    assert shares.board(node).compute_mode == 0


def test_a_daemon_of_another_name_is_not_ours(node: gpunode.GpuNode) -> None:
    node.daemons.request(a_daemon("somebody"))
    node.process().mend()
    assert "somebody" in node.daemons.desired


def test_a_daemon_that_does_not_end_is_named(node: gpunode.GpuNode) -> None:
    node.daemons.request(a_daemon(shares.uuid(node)))
    node.daemons.stuck = "not gone after 10 s"
    (problem,) = node.process().mend()
    assert shares.uuid(node) in problem
    assert "not gone after 10 s" in problem


def test_no_daemon_ends_under_a_claim_whose_record_is_damaged(node: gpunode.GpuNode) -> None:
    claim = shares.a_share(1)
    shares.prepare(node, claim)
    (node.records / f"{claim.uid}.json").write_bytes(b"{")
    node.nvml.absent = True  # and nobody can say which GPU its spec names
    process = node.process()
    process.mend()
    assert shares.uuid(node) in node.daemons.desired
    shares.release(node, claim)
    process.mend()
    assert not node.daemons.desired
    assert shares.board(node).compute_mode == 0


@pytest.mark.parametrize("face", ["mps", "ts"])
def test_a_death_at_any_point_of_unprepare_leaves_no_setting_without_a_record(
    tmp_path: Path, face: str
) -> None:
    calm, watch = gpunode.GpuNode(tmp_path / "count"), gpunode.DiesAt()
    claim = shares.a_share(1, face, configs=shares.interval("Long") if face == "ts" else ())
    shares.prepare(calm, claim)
    ref = ports.ClaimRef(claim.namespace, claim.name, claim.uid)
    calm.process(watch).preparer.unprepare(ref)
    assert len(watch.passed) >= 3
    for number in range(len(watch.passed)):
        node = gpunode.GpuNode(tmp_path / str(number))
        shares.prepare(node, claim)
        with pytest.raises(gpunode.Killed):
            node.process(gpunode.DiesAt(number)).preparer.unprepare(ref)
        if not node.process().executor.records.uids():
            assert (shares.board(node).compute_mode, shares.board(node).timeslice) == (0, 0)
            assert not node.daemons.desired
        process = node.process()
        process.recover()
        process.mend()
        shares.release(node, claim)
        assert (shares.board(node).compute_mode, shares.board(node).timeslice) == (0, 0)
        assert not node.daemons.desired
        assert node.files() == {}


@pytest.mark.parametrize("claim", [claim_mps.whole(WHOLE, claim_mps.OTHER), claim_mps.a_part()])
def test_a_claims_own_daemon_that_was_forgotten_is_asked_for_again(
    node: gpunode.GpuNode, claim: claims.Claim
) -> None:
    claim_mps.prepared(node, claim)
    previous = dict(node.daemons.desired)
    node.daemons.desired.clear()
    node.daemons.fail = "no word from the supervisor"
    assert node.process().mend() == ()
    assert node.daemons.desired == previous
    assert node.process().mend() == ()
    assert node.daemons.desired == previous


def test_a_daemon_whose_claim_is_gone_ends_and_its_gpus_are_for_all_again(
    node: gpunode.GpuNode,
) -> None:
    claim = claim_mps.whole(WHOLE, claim_mps.OTHER)
    claim_mps.prepared(node, claim)
    (node.records / f"{claim.uid}.json").write_bytes(b"{")
    process = node.process()
    process.mend()
    assert claim.uid in node.daemons.desired  # its containers may be the daemon's clients
    shares.release(node, claim)
    assert process.mend() == ()
    assert not node.daemons.desired
    assert set(claim_mps.modes(node)) == {0}
