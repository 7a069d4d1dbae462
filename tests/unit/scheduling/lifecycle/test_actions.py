"""Tests of the due actions for a pod or claim: the hold and its clearing (D5), by the second."""

from typing import Any

import pytest

from driver import ids, names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.lifecycle import actions
from driver.scheduling.snapshot import allocation_hold
from tests.support import snapshots
from tests.support.builders import objects

PATIENCE = actions.BindTimeouts(refused_s=30, silent_s=45, unreserved_s=30)
NODE = ids.NodeName("node-a")


def held_by(pod: pods.Pod, name: str = "claim") -> claims.Claim:
    return reserved_by(name, allocation_hold.pod_hold(pod))


def reserved_by(name: str, *entries: claims.Consumer) -> claims.Claim:
    rendered = [claims.render_consumer(entry) for entry in entries]
    return objects.claim(name, status=objects.allocated("node-a", "gpu-0", reserved=rendered))


def due(
    pod: pods.Pod, placed: actions.WrittenPod | None, now: float, *results: claims.Claim
) -> actions.Action:
    return actions.pod_action(pod, results or (held_by(pod),), placed, now, PATIENCE)


def test_an_open_claim_is_decided_and_a_settled_one_comes_along() -> None:
    pod = objects.pod("pod", "one", "two")
    open_claim, settled = objects.claim("one"), held_by(pod, "two")
    assert due(pod, None, 0, open_claim, settled) == actions.Decide((open_claim,), (settled,))


def test_nothing_is_due_for_a_pod_that_is_bound_leaving_finished_or_gated() -> None:
    settled: list[dict[str, Any]] = [
        {"nodeName": "node-a"},
        {"schedulingGates": [{"name": "example.com/wait"}]},
        {"status": {"phase": "Failed"}},
    ]
    for spec in settled:
        assert due(objects.pod(**spec), None, 0, objects.claim()) == actions.Nothing()
    raw = objects.a_pod()
    raw["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    assert due(pods.parse(raw), None, 0, objects.claim()) == actions.Nothing()


def gated(*gates: str, **spec: Any) -> pods.Pod:
    return objects.pod(schedulingGates=[{"name": gate} for gate in gates], **spec)


def test_a_pod_under_our_gate_is_decided_for_and_then_ungated() -> None:
    pod = gated(names.ALLOCATION_GATE)
    assert due(pod, None, 0, objects.claim()) == actions.Decide((objects.claim(),), ())
    assert due(pod, actions.WrittenPod(NODE, 0, ""), 1000, held_by(pod)) == actions.Ungate()
    foreign = objects.claim(status=objects.allocated("node-a", "gpu-0"))
    assert due(pod, None, 0, foreign) == actions.Ungate()
    assert actions.pod_action(pod, (), None, 0, PATIENCE) == actions.Ungate()


def test_under_anothers_gate_our_own_stays_and_nothing_is_decided() -> None:
    pod = gated(names.ALLOCATION_GATE, "kueue.x-k8s.io/admission")
    for claim in (objects.claim(), held_by(pod)):
        assert due(pod, None, 0, claim) == actions.Nothing()
    assert actions.pod_action(pod, (), None, 0, PATIENCE) == actions.Nothing()


def test_a_gate_says_nothing_to_a_pod_that_is_leaving() -> None:
    raw = objects.a_pod(schedulingGates=[{"name": names.ALLOCATION_GATE}])
    raw["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    assert due(pods.parse(raw), None, 0, held_by(pods.parse(raw))) == actions.Nothing()


def test_a_pod_that_fits_nowhere_loses_our_gate_unless_its_namespace_asks_for_it() -> None:
    pod = gated(names.ALLOCATION_GATE)
    assert actions.should_ungate(pod, {})
    assert actions.should_ungate(pod, {names.GATE_LABEL: "false"})
    assert not actions.should_ungate(pod, {names.GATE_LABEL: "true"})
    assert not actions.should_ungate(gated("kueue.x-k8s.io/admission"), {})
    assert not actions.should_ungate(objects.pod(), {})


def test_a_claim_that_is_being_deleted_is_not_allocated() -> None:
    raw = objects.a_claim()
    raw["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    assert due(objects.pod(), None, 0, claims.parse(raw)) == actions.Nothing()


def test_an_allocation_without_our_hold_is_not_ours_to_take_back() -> None:
    foreign = objects.claim(status=objects.allocated("node-a", "gpu-0"))
    pod = objects.pod(status=objects.refused())
    assert due(pod, actions.WrittenPod(NODE, 0, ""), 1000, foreign) == actions.Nothing()


def test_a_pod_met_without_memory_counts_as_written_now() -> None:
    pod = objects.pod(status=objects.refused("words"))
    assert actions.observe(None, pod, NODE, 7.0) == actions.WrittenPod(NODE, 7.0, "words")


def test_new_words_of_the_scheduler_are_a_refusal_since_our_write() -> None:
    placed = actions.WrittenPod(NODE, 0.0, "cannot allocate all claims")
    pod = objects.pod(status=objects.refused("1 node(s) were unschedulable"))
    seen = actions.observe(placed, pod, NODE, 3.0)
    assert seen.refused_at == 3.0
    assert due(pod, seen, 32.9) == actions.Recheck(30.0 + 3.0 - 32.9)
    back = due(pod, seen, 33.0)
    assert back == actions.ReleaseAllocation((held_by(pod),), NODE, "1 node(s) were unschedulable")


def test_a_definite_refusal_of_our_node_is_acted_on_at_once() -> None:
    placed = actions.WrittenPod(NODE, 0.0, "cannot allocate all claims")
    message = (
        "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, "
        "2 resourceclaim not available on the node. no new claims to deallocate"
    )
    pod = objects.pod(status=objects.refused(message))
    seen = actions.observe(placed, pod, NODE, 3.0)
    assert due(pod, seen, 3.0) == actions.ReleaseAllocation((held_by(pod),), NODE, message)


@pytest.mark.parametrize("reason", ["pod topology spread constraints", "pod affinity rules"])
def test_a_refusal_that_pods_in_flight_may_lift_is_left_alone_for_a_while(reason: str) -> None:
    message = (
        f"0/3 nodes are available: 1 node(s) didn't match {reason}, "
        "2 resourceclaim not available on the node. no new claims to deallocate"
    )
    pod = objects.pod(status=objects.refused(message))
    seen = actions.observe(actions.WrittenPod(NODE, 0.0, "before"), pod, NODE, 3.0)
    assert due(pod, seen, 3.0) == actions.Recheck(PATIENCE.awaiting_s)
    assert due(pod, seen, 8.0) == actions.ReleaseAllocation((held_by(pod),), NODE, message)


def test_a_claim_that_its_unbound_pod_has_reserved_is_parted_from_it_first() -> None:
    pod = objects.pod(status=objects.refused("new words"))
    reserved = reserved_by("one", allocation_hold.pod_hold(pod), allocation_hold.pod_entry(pod))
    placed = actions.WrittenPod(NODE, 0.0, "before", refused_at=0.0)
    held = held_by(pod, "two")
    assert due(pod, placed, 40.0, reserved, held) == actions.RemoveReservation((reserved,))


def test_a_claim_that_another_pod_has_reserved_is_never_taken_back() -> None:
    pod = objects.pod(status=objects.refused("new words"))
    shared = reserved_by(
        "one", allocation_hold.pod_hold(pod), allocation_hold.pod_entry(objects.pod("other"))
    )
    placed = actions.WrittenPod(NODE, 0.0, "before", refused_at=0.0)
    assert due(pod, placed, 40.0, shared) == actions.Nothing()


def test_a_refusal_is_counted_from_when_it_was_first_seen() -> None:
    placed = actions.WrittenPod(NODE, 0.0, "before", refused_at=3.0)
    pod = objects.pod(status=objects.refused("other words"))
    assert actions.observe(placed, pod, NODE, 20.0).refused_at == 3.0


def test_an_old_permanent_refusal_counts_once_it_must_concern_this_attempt() -> None:
    """Observe it as a new leader does, or after the same refusal of another node."""
    message = (
        "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, "
        "2 resourceclaim not available on the node. no new claims to deallocate"
    )
    pod = objects.pod(status=objects.refused(message))
    placed = actions.observe(None, pod, NODE, 3.0)
    assert due(pod, placed, 3.0) == actions.Recheck(PATIENCE.unchanged_s)
    assert due(pod, placed, 15.0) == actions.ReleaseAllocation((held_by(pod),), NODE, message)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("2026-11-21T09:00:09Z", actions.ReleaseAllocation),
        ("2026-11-21T09:00:08Z", actions.Recheck),
        ("", actions.Recheck),
    ],
)
def test_a_new_leader_acts_at_once_on_a_definite_refusal_since_the_allocation(
    written: str, kind: type[actions.Action]
) -> None:
    message = (
        "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, "
        "2 resourceclaim not available on the node. no new claims to deallocate"
    )
    raw = objects.a_pod(status=objects.refused(message))
    raw["metadata"]["managedFields"] = [objects.scheduled_by("kube-scheduler", written)]
    pod = pods.parse(raw)
    placed = actions.observe(None, pod, NODE, 3.0, allocated="2026-11-21T09:00:08Z")
    assert type(due(pod, placed, 3.0)) is kind


def test_a_new_leader_leaves_a_pod_alone_for_which_its_node_is_nominated() -> None:
    raw = objects.a_pod(status=objects.refused("words") | {"nominatedNodeName": NODE})
    raw["metadata"]["managedFields"] = [objects.scheduled_by("s", "2026-11-21T09:00:09Z")]
    placed = actions.observe(None, pods.parse(raw), NODE, 3.0, allocated="2026-11-21T09:00:08Z")
    assert placed.refused_at is None


def test_an_allocation_is_of_the_moment_of_the_last_claim_with_the_pods_hold() -> None:
    pod = objects.pod("pod", "one", "two")
    foreign = objects.claim("three", status=objects.allocated("node-a", "gpu-0"))
    entry = [claims.render_consumer(allocation_hold.pod_hold(pod))]
    early, late = (
        objects.claim(
            name,
            status=objects.allocated("node-a", "gpu", reserved=entry, allocationTimestamp=time),
        )
        for name, time in (("one", "2026-11-21T09:00:01Z"), ("two", "2026-11-21T09:00:02Z"))
    )
    assert actions.last_allocated(pod, (early, late, foreign)) == "2026-11-21T09:00:02Z"
    assert actions.last_allocated(pod, (objects.claim(),)) == ""


def test_unchanged_words_give_the_scheduler_longer() -> None:
    pod = objects.pod(status=objects.refused("same"))
    placed = actions.observe(actions.WrittenPod(NODE, 0.0, "same"), pod, NODE, 10.0)
    assert due(pod, placed, 44.0) == actions.Recheck(1.0)
    assert isinstance(due(pod, placed, 45.0), actions.ReleaseAllocation)


def test_a_pod_the_scheduler_never_refused_is_only_looked_at_again() -> None:
    assert isinstance(
        due(objects.pod(), actions.WrittenPod(NODE, 0.0, ""), 1000.0), actions.Recheck
    )


def test_nothing_is_taken_back_while_room_is_being_made_on_our_node() -> None:
    status = {**objects.refused("preempting"), "nominatedNodeName": "node-a"}
    pod = objects.pod(status=status)
    placed = actions.WrittenPod(NODE, 0.0, "before", refused_at=1.0)
    seen = actions.observe(placed, pod, NODE, 500.0)
    assert seen.refused_at is None
    assert isinstance(due(pod, seen, 500.0), actions.Recheck)
    elsewhere = objects.pod(status={**status, "nominatedNodeName": "node-b"})
    assert actions.observe(placed, elsewhere, NODE, 500.0).refused_at == 1.0


def claim_due(
    claim: claims.Claim, *results: pods.Pod, since: float | None = None, now: float = 0.0
) -> actions.ClaimAction:
    return actions.claim_action(claim, {pod.key: pod for pod in results}.get, since, now, PATIENCE)


def test_a_hold_stays_while_its_pod_waits_to_be_bound() -> None:
    pod = objects.pod()
    assert claim_due(held_by(pod), pod) == actions.Nothing()


def test_a_hold_is_dropped_once_its_pod_runs_and_has_reserved_the_claim() -> None:
    pod = objects.pod()
    claim = reserved_by("claim", allocation_hold.pod_hold(pod), allocation_hold.pod_entry(pod))
    bound = objects.pod(nodeName="node-a")
    assert claim_due(claim, bound) == actions.DropHolds((allocation_hold.pod_hold(pod),))
    assert claim_due(held_by(pod), bound) == actions.Nothing()


def test_a_hold_alone_is_cleared_once_its_pod_is_finished_or_gone() -> None:
    pod = objects.pod()
    finished = objects.pod(status={"phase": "Failed"})
    assert claim_due(held_by(pod), finished) == actions.ClearUnused()
    assert claim_due(held_by(pod)) == actions.ClearUnused()


def test_the_last_entry_is_not_dropped_but_the_allocation_cleared() -> None:
    """kube-controller-manager removed the pod's entry first; it frees nothing afterwards."""
    entries = [claims.render_consumer(allocation_hold.pod_hold(objects.pod()))]
    claim = objects.claim(status=objects.allocated("node-a", "gpu-0", reserved=entries))
    assert claim_due(claim) == actions.ClearUnused()


def test_a_hold_of_an_older_pod_of_the_same_name_is_dropped() -> None:
    raw = objects.a_pod()
    raw["metadata"]["uid"] = objects.uid_of("the one before")
    older = pods.parse(raw)
    claim = reserved_by(
        "claim", allocation_hold.pod_hold(older), allocation_hold.pod_hold(objects.pod())
    )
    assert claim_due(claim, objects.pod()) == actions.DropHolds((allocation_hold.pod_hold(older),))


def test_an_allocation_that_no_pod_reserves_is_cleared_after_a_while() -> None:
    claim = objects.claim(status=objects.allocated("node-a", "gpu-0"))
    assert claim_due(claim, since=10.0, now=20.0) == actions.Recheck(20.0)
    assert claim_due(claim, since=10.0, now=40.0) == actions.ClearUnused()


def test_only_allocations_of_devices_the_controller_allocates_count_as_unused() -> None:
    view = snapshots.fleet({"node-a": 8})
    assert actions.is_unused(objects.claim(status=objects.allocated("node-a", "gpu-0")), view)
    elsewhere = objects.claim(status=objects.allocated("node-z", "gpu-0"))
    assert not actions.is_unused(elsewhere, view)
    assert not actions.is_unused(held_by(objects.pod()), view)


def test_a_claim_of_an_extended_resource_is_kube_schedulers_to_release() -> None:
    claim = objects.extended_resource_claim(status=objects.allocated("node-a", "gpu-0"))
    assert not actions.is_unused(claim, snapshots.fleet({"node-a": 8}))


GROUP = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")


def grouped(**spec: Any) -> pods.Pod:
    return objects.pod(schedulingGroup={"podGroupName": "train"}, **spec)


def test_a_hold_is_dropped_once_its_pod_runs_and_its_group_has_reserved() -> None:
    pod = grouped(nodeName="node-a")
    claim = reserved_by("claim", allocation_hold.pod_hold(pod), GROUP)
    assert claim_due(claim, pod) == actions.DropHolds((allocation_hold.pod_hold(pod),))
    stranger = objects.pod(nodeName="node-a")
    assert claim_due(claim, stranger) == actions.Nothing()


def test_a_claim_that_a_pod_group_has_reserved_is_never_unused() -> None:
    assert claim_due(reserved_by("claim", GROUP)) == actions.Nothing()
    pod = grouped()
    gone = reserved_by("claim", allocation_hold.pod_hold(pod), GROUP)
    assert claim_due(gone) == actions.DropHolds((allocation_hold.pod_hold(pod),))


def test_a_claim_of_a_pod_group_is_cleared_after_the_scheduler_unreserved_it() -> None:
    pod = grouped(status=objects.refused("Insufficient cpu"))
    placed = actions.WrittenPod(NODE, 0, "", refused_at=0)
    reserved = reserved_by("claim", allocation_hold.pod_hold(pod), GROUP)
    assert due(pod, placed, 1000, reserved) == actions.Nothing()
    assert isinstance(due(pod, placed, 1000, held_by(pod)), actions.ReleaseAllocation)
