import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from driver import names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.lifecycle import claim_remediation
from tests.support.builders import objects

NOW = dt.datetime(2026, 11, 21, 9, 10, tzinfo=dt.UTC)
SINCE = "2026-11-21T09:09:00Z"
RULES = claim_remediation.RemediationRules(names.DRIVER)
STRICT = claim_remediation.RemediationRules(names.DRIVER, evict_over_share=True)
OVER = ("WithinShare", "False", "OverShare")
CLEARED = ("Ready", "Unknown", "RefusalCleared")
NEVER = (("Ready", "False", "ConfigInvalid"), ("Stalled", "True", "ConfigInvalid"))


def a_claim(
    *conditions: tuple[str, str, str], since: str = SINCE, driver: str = names.DRIVER
) -> claims.Claim:
    """A claim of the pod `pod`, on node-a, of which this is said."""
    entry = {"resource": "pods", "name": "pod", "uid": objects.uid_of("pod")}
    status = objects.allocated("node-a", "gpu-0", reserved=[entry])
    statement = [
        {"type": kind, "status": is_so, "reason": reason, "lastTransitionTime": since,
         "message": "in words"}
        for kind, is_so, reason in conditions
    ]  # fmt: skip
    device = {"driver": driver, "pool": "node-a", "device": "gpu-0"}
    return objects.claim(status={**status, "devices": [{**device, "conditions": statement}]})


def a_pod(
    owner: str = "ReplicaSet", *, phase: str = "Pending", node: str = "node-a", **meta: Any
) -> pods.Pod:
    raw = objects.a_pod(status={"phase": phase}, **({"nodeName": node} if node else {}))
    if owner:
        reference = {"kind": owner, "name": "made-it", "uid": "owner-uid", "controller": True}
        raw["metadata"]["ownerReferences"] = [reference]
    raw["metadata"] |= meta
    return pods.parse(raw)


def due(
    claim: claims.Claim, pod: pods.Pod, rules: claim_remediation.RemediationRules = RULES
) -> tuple[claim_remediation.Action, ...]:
    return claim_remediation.actions_for(claim, [pod], NOW, rules)


def test_the_kubelet_is_asked_again_once_a_refusal_is_cleared() -> None:
    pod = a_pod("")
    assert due(a_claim(CLEARED), pod) == (claim_remediation.RetryPrepare(pod, SINCE),)


def test_it_is_asked_once_a_clearing() -> None:
    pod = a_pod(annotations={names.PREPARE_AGAIN: SINCE})
    assert due(a_claim(CLEARED), pod) == ()
    (again,) = due(a_claim(CLEARED, since="2026-11-21T09:09:30Z"), pod)
    assert isinstance(again, claim_remediation.RetryPrepare)


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_a_pod_that_runs_or_has_ended_is_neither_asked_for_nor_evicted(phase: str) -> None:
    pod = a_pod(phase=phase)
    assert due(a_claim(CLEARED), pod) == ()
    assert due(a_claim(*NEVER), pod) == ()


@pytest.mark.parametrize(
    "pod",
    [a_pod(node=""), a_pod(deletionTimestamp=SINCE), a_pod(uid="another")],
    ids=["not on a node", "leaving", "another pod of the name"],
)
def test_a_pod_that_does_not_wait_there_is_left_alone(pod: pods.Pod) -> None:
    assert due(a_claim(CLEARED), pod) == ()
    assert due(a_claim(*NEVER), pod) == ()
    assert due(a_claim(OVER), pod, STRICT) == ()


def test_while_one_device_is_refused_another_that_is_cleared_asks_nothing() -> None:
    raw = objects.allocated("node-a", "gpu-0", "gpu-1")
    entry = {"resource": "pods", "name": "pod", "uid": objects.uid_of("pod")}
    statement = [
        {"driver": names.DRIVER, "pool": "node-a", "device": device, "conditions": [
            {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": SINCE}
        ]}
        for device, status, reason in (
            ("gpu-0", "Unknown", "RefusalCleared"), ("gpu-1", "False", "DeviceOverlap")
        )
    ]  # fmt: skip
    claim = objects.claim(status={**raw, "reservedFor": [entry], "devices": statement})
    assert due(claim, a_pod()) == ()


@pytest.mark.parametrize("owner", ["ReplicaSet", "Job", "StatefulSet", "Workflow"])
def test_a_pod_that_will_never_be_prepared_is_evicted_where_its_owner_makes_another(
    owner: str,
) -> None:
    pod = a_pod(owner)
    (act,) = due(a_claim(*NEVER), pod)
    assert isinstance(act, claim_remediation.Evict)
    assert (act.pod, act.owner.kind, act.owner.uid) == (pod, owner, "owner-uid")
    assert act.message == "claim claim: ConfigInvalid: in words"


@pytest.mark.parametrize("owner", ["", "DaemonSet", "Node"])
def test_bare_pods_and_pods_tied_to_their_node_keep_their_condition(
    owner: str,
) -> None:
    assert due(a_claim(*NEVER), a_pod(owner)) == ()


def test_a_refusal_that_may_pass_evicts_nobody() -> None:
    assert due(a_claim(("Ready", "False", "DeviceOverlap")), a_pod()) == ()


def test_a_stalled_condition_that_was_left_behind_evicts_nobody() -> None:
    left = a_claim(("Ready", "True", "Prepared"), ("Stalled", "True", "ConfigInvalid"))
    assert due(left, a_pod()) == ()


def test_conditions_of_another_driver_are_ignored() -> None:
    claim = a_claim(*NEVER, driver="nic.example.com")
    assert due(claim, a_pod()) == ()


def test_a_share_that_is_exceeded_is_left_alone_unless_asked_for() -> None:
    assert due(a_claim(OVER), a_pod(phase="Running")) == ()


def test_a_share_that_is_exceeded_for_a_minute_costs_the_pod_its_place() -> None:
    early = a_claim(OVER, since="2026-11-21T09:09:15Z")
    assert due(early, a_pod(phase="Running"), STRICT) == (claim_remediation.Recheck(15.0),)
    for owner in ("ReplicaSet", "DaemonSet"):
        (act,) = due(a_claim(OVER), a_pod(owner, phase="Running"), STRICT)
        assert isinstance(act, claim_remediation.Evict)
    assert due(a_claim(("WithinShare", "True", "Fine")), a_pod(phase="Running"), STRICT) == ()


@pytest.mark.parametrize("owner", ["", "Node"])
def test_a_bare_pod_that_exceeds_its_share_stays_and_is_told(owner: str) -> None:
    pod = a_pod(owner, phase="Running")
    words = "claim claim: OverShare: in words"
    assert due(a_claim(OVER), pod, STRICT) == (claim_remediation.ReportKept(pod, SINCE, words),)


@pytest.mark.parametrize("since", ["", "soon", "2026-11-21T10:00:00Z"])
def test_a_time_that_makes_no_sense_is_given_the_whole_grace(since: str) -> None:
    (act,) = due(a_claim(OVER, since=since), a_pod(phase="Running"), STRICT)
    assert act == claim_remediation.Recheck(claim_remediation.GRACE_S)


def test_pods_of_a_group_that_shares_a_refused_claim_are_kept_and_told_why() -> None:
    entry = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")
    claim = replace(a_claim(*NEVER), consumers=(entry,))
    pod = replace(a_pod(), pod_group="train")
    (act,) = due(claim, pod)
    assert isinstance(act, claim_remediation.ReportKept)
    assert "new pods of PodGroup train would get the same claim" in act.message
    assert due(claim, replace(pod, pod_group="other")) == ()


def test_the_kubelet_is_asked_again_for_a_pod_of_a_group() -> None:
    entry = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")
    pod = replace(a_pod(), pod_group="train")
    claim = replace(a_claim(CLEARED), consumers=(entry,))
    assert due(claim, pod) == (claim_remediation.RetryPrepare(pod, SINCE),)
