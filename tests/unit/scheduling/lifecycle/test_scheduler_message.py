"""kube-scheduler's messages, as 1.37 writes them, read for the node that we chose."""

import pytest

from driver.scheduling.lifecycle import scheduler_message

ELSEWHERE = "2 resourceclaim not available on the node"
TAIL = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful."
)


@pytest.mark.parametrize(
    "reason",
    [
        "node(s) didn't match pod topology spread constraints",
        "node(s) had untolerated taint {team: red, blue}",
        "Insufficient nvidia.com/gpu",
    ],
)
def test_the_reason_beside_the_nodes_without_the_claim_is_our_nodes(reason: str) -> None:
    message = f"0/3 nodes are available: 1 {reason}, {ELSEWHERE}. {TAIL}"
    assert scheduler_message.definite_reasons(message) == reason


def test_other_nodes_may_fail_an_earlier_filter() -> None:
    message = (
        f"0/4 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, {ELSEWHERE}."
    )
    assert (
        scheduler_message.definite_reasons(message)
        == "Insufficient cpu, node(s) were unschedulable"
    )


@pytest.mark.parametrize(
    "message",
    [
        "",
        "mystery",
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        f"0/3 nodes are available: 1 cannot allocate all claims, {ELSEWHERE}. {TAIL}",
        "0/2 nodes are available: 2 resourceclaim not available on the node.",
        "0/2 nodes are available: resource claim a/b is in the process of being allocated.",
    ],
)
def test_messages_that_do_not_speak_of_our_node_are_not_definite(message: str) -> None:
    assert scheduler_message.definite_reasons(message) == ""


def test_spread_and_affinity_depend_on_the_pods_of_other_nodes() -> None:
    assert scheduler_message.spans_nodes("node(s) didn't match pod topology spread constraints")
    assert scheduler_message.spans_nodes("node(s) didn't match pod anti-affinity rules")
    assert not scheduler_message.spans_nodes("Insufficient cpu")
