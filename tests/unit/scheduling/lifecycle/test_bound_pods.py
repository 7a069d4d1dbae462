"""Bound pods beside where their claims are allocated."""

from typing import Any

from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.lifecycle import bound_pods
from driver.scheduling.snapshot import allocation_hold
from tests.support.builders import objects

HERE, AWAY = "node-a", "node-b"


def on_node(**status: Any) -> pods.Pod:
    return objects.pod(nodeName=HERE, status={"phase": "Pending", **status})


def held(node: str, *entries: claims.Consumer, **status: Any) -> claims.Claim:
    rendered = [claims.render_consumer(entry) for entry in entries]
    return objects.claim(status={**objects.allocated(node, "gpu-0", reserved=rendered), **status})


def test_a_pod_whose_claims_are_allocated_on_its_node_is_whole() -> None:
    assert (
        bound_pods.binding_state(on_node(), [held(HERE)], objects.node(HERE))
        == bound_pods.Consistent()
    )


def test_a_pod_that_runs_leaves_or_has_no_node_is_not_looked_at() -> None:
    away = held(AWAY)
    assert (
        bound_pods.binding_state(on_node(phase="Running"), [away], None) == bound_pods.Consistent()
    )
    assert bound_pods.binding_state(objects.pod(), [away], None) == bound_pods.Consistent()


def test_a_claim_elsewhere_that_only_the_pod_uses_is_astray() -> None:
    pod = on_node()
    for entries in (
        (),
        (allocation_hold.pod_hold(pod),),
        (allocation_hold.pod_entry(pod), allocation_hold.pod_hold(pod)),
    ):
        claim = held(AWAY, *entries)
        assert bound_pods.binding_state(pod, [claim], objects.node(HERE)) == bound_pods.Misplaced(
            (claim,)
        )


def test_a_claim_elsewhere_that_another_pod_uses_blocks() -> None:
    claim = held(AWAY, allocation_hold.pod_entry(objects.pod("other")))
    state = bound_pods.binding_state(on_node(), [claim], objects.node(HERE))
    assert state == bound_pods.Blocked(claim, "pod other has it")


def test_a_claim_that_is_prepared_elsewhere_blocks() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Prepared", "message": ""}
    device = {"driver": "gpu.ration.dev", "pool": AWAY, "device": "gpu-0", "conditions": [ready]}
    claim = held(AWAY, devices=[device])
    state = bound_pods.binding_state(on_node(), [claim], objects.node(HERE))
    assert state == bound_pods.Blocked(claim, f"it is prepared on {AWAY}")


def test_open_claims_are_to_be_allocated_on_the_pods_node() -> None:
    waiting, settled = objects.claim("waiting"), held(HERE)
    state = bound_pods.binding_state(on_node(), [waiting, settled], objects.node(HERE))
    assert state == bound_pods.Unallocated((waiting,), (settled,))
