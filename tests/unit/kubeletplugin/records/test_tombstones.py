import dataclasses

import pytest

from driver import ids, names, reasons
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import tombstones
from driver.resources.dra import claims
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode
from tests.support.builders import allocated_claims

POD = claims.Consumer("", "pods", "pod-1", "pod-uid")
HOLD = claims.Consumer(names.GROUP, names.HOLD_RESOURCE, "pod-1", "pod-uid")
GROUP = claims.Consumer("scheduling.k8s.io", "podgroups", "group-1", "group-uid")


def reserved(*consumers: claims.Consumer) -> claims.Claim:
    return dataclasses.replace(allocated_claims.an_allocated_claim(), consumers=consumers)


def test_a_prepare_that_comes_after_unprepare_is_refused(node: gpunode.GpuNode) -> None:
    ref = node.allocate(reserved(HOLD))
    preparer = node.process().preparer
    preparer.unprepare(ref)
    answer = preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Refused)
    assert (answer.reason, answer.permanent) == (reasons.Reason.CLAIM_LET_GO, False)
    assert node.files() == {}


@pytest.mark.parametrize("consumer", [POD, GROUP])
def test_the_next_pod_of_the_same_claim_is_served_after_a_moment(
    node: gpunode.GpuNode, consumer: claims.Consumer
) -> None:
    ref = node.allocate(reserved(HOLD, consumer))
    preparer = node.process().preparer
    preparer.unprepare(ref)
    assert isinstance(preparer.prepare(ref, gpunode.never), ports.Prepared)
    assert sum(node.time.waits) == pytest.approx(tombstones.SETTLE_S, abs=0.2)


def test_the_state_of_the_api_at_the_end_of_the_wait_counts(node: gpunode.GpuNode) -> None:
    ref = node.allocate(reserved(POD))
    preparer = node.process().preparer
    preparer.unprepare(ref)

    def cancelled() -> bool:  # asked while it waits
        node.allocate(reserved())
        return False

    assert isinstance(preparer.prepare(ref, cancelled), ports.Refused)


def test_departed_holders_are_not_awaited(node: gpunode.GpuNode) -> None:
    ref = node.allocate(reserved(POD))
    preparer = node.process().preparer
    preparer.unprepare(ref)
    assert isinstance(preparer.prepare(ref, lambda: True), ports.Refused)
    assert not node.time.waits
    assert node.files() == {}


def test_unprepare_of_what_was_prepared_leaves_no_mark(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    preparer = node.process().preparer
    for _ in range(2):
        assert isinstance(preparer.prepare(ref, gpunode.never), ports.Prepared)
        preparer.unprepare(ref)
    assert not node.time.waits


def test_a_mark_is_forgotten_after_a_minute(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    preparer = node.process().preparer
    preparer.unprepare(ref)
    node.time.advance(tombstones.LIFETIME_S)
    assert isinstance(preparer.prepare(ref, gpunode.never), ports.Prepared)


def test_marks_are_bounded_and_the_oldest_goes_first() -> None:
    marks = tombstones.Tombstones(fake_clock.FakeClock())
    uids = [ids.ClaimUid(f"uid-{number}") for number in range(tombstones.MAX_TOMBSTONES + 1)]
    for uid in uids:
        marks.add(uid)
    assert not marks.is_marked(uids[0])
    assert all(marks.is_marked(uid) for uid in uids[1:])
    marks.add(uids[1])
    marks.add(ids.ClaimUid("newest"))
    assert marks.is_marked(uids[1])
    assert not marks.is_marked(uids[2])
