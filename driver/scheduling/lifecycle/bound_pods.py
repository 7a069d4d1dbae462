"""Repair of pods that are bound to a node where their claims are not allocated (ADR 18). Pure.

Such pods were made with `spec.nodeName`, which kube-scheduler never sees, or were bound by an
attempt that had seen another allocation. Nothing that another pod uses, or that a node has
prepared, is ever cleared.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from driver import ids, names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold, snapshot

GRACE_S = 1.0
"""Watches of pods and of claims are not in step: a claim's write may be seen after the binding."""
REPAIR_BOUND_S = 15.0
"""A pod bound to another node than its claims is repaired, or the reason reported, within it."""


@dataclass(frozen=True, slots=True)
class Consistent:
    """Every claim is allocated on the pod's node, or the pod needs none any more."""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Claims that are allocated on another node, without other users."""

    claims: tuple[claims.Claim, ...]


@dataclass(frozen=True, slots=True)
class Blocked:
    """A claim is allocated on another node, and stays; `reason` names its user."""

    claim: claims.Claim
    reason: str


@dataclass(frozen=True, slots=True)
class Unallocated:
    """These claims are to be allocated on the pod's node; the others are there already."""

    open_claims: tuple[claims.Claim, ...]
    allocated_claims: tuple[claims.Claim, ...]


BindingState = Consistent | Misplaced | Blocked | Unallocated


def binding_state(
    pod: pods.Pod, every: Iterable[claims.Claim], node: nodes.Node | None
) -> BindingState:
    """Compare the node of a bound pod with those of its claims."""
    if pod.node is None or pod.deleting or pod.phase != "Pending":
        return Consistent()
    held = tuple(every)
    astray = tuple(claim for claim in held if not _reaches(claim, pod.node, node))
    for claim in astray:
        why = _other_user(claim, pod)
        if why:
            return Blocked(claim, why)
    if astray:
        return Misplaced(astray)
    waiting = tuple(claim for claim in held if claim.allocation is None)
    if not waiting or any(claim.deleting for claim in waiting):
        return Consistent()
    return Unallocated(waiting, tuple(claim for claim in held if claim.allocation is not None))


def bound_pod_message(pod: pods.Pod, words: str) -> str:
    """`The pod is bound to node-1, and its claims can only be allocated there: ...`."""
    return f"The pod is bound to {pod.node}, and its claims can only be allocated there: {words}"


def misplaced_message(state_now: Misplaced | Blocked) -> str:
    """Return the message for claims on another node, and what happens to them."""
    if isinstance(state_now, Blocked):
        claim = state_now.claim
        return (
            f"claim {claim.name} is allocated on {snapshot.pinned_node(claim)}: {state_now.reason}"
        )
    parts = (f"claim {claim.name} on {snapshot.pinned_node(claim)}" for claim in state_now.claims)
    return f"the devices of {', '.join(parts)} are freed first"


def unknown_node_message(pod: pods.Pod) -> str:
    """Return the message for a pod on a node that does not exist."""
    return f"node {pod.node} does not exist"


def _reaches(claim: claims.Claim, name: ids.NodeName, node: nodes.Node | None) -> bool:
    """Return whether the allocation of a claim, if it has one, can be used on a node."""
    selector = claim.allocation.selector if claim.allocation is not None else None
    return selector is None or selector.matches(name, node.labels if node is not None else {})


def _other_user(claim: claims.Claim, pod: pods.Pod) -> str:
    """Return another user of a claim; "" if only the pod has reserved it, or has its hold."""
    for entry in claim.consumers:
        if entry.uid != pod.uid and not allocation_hold.is_hold_of(entry, pod):
            return f"{entry.resource.removesuffix('s')} {entry.name} has it"
    for device in claim.device_statuses:
        ready = device.condition(names.CONDITION_READY)
        if ready is not None and ready.status == "True":
            return f"it is prepared on {snapshot.pinned_node(claim)}"
    return ""
