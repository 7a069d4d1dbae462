"""Next action for a pod or a claim. Pure: objects and recorded times in, an action out.

For a pod: decide, wait, or release its unbound allocation (D5, ADR 18); bound pods are in
`bound_pods`. For a claim: drop holds that have served, or clear an unused allocation. Times are
monotonic seconds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from driver import ids, names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.lifecycle import scheduler_message
from driver.scheduling.snapshot import allocation_hold, snapshot

STALE_RETRY_S = 1.0
"""Until the ownership of claims is known again."""


@dataclass(frozen=True, slots=True)
class BindTimeouts:
    """Time to wait for the binding of an allocation, in seconds.

    `refused_s` after the scheduler was seen to refuse the pod since our write, if its message does
    not say whether our node was meant; `awaiting_s` if pods that we placed elsewhere lift the
    reason once kube-scheduler has bound them; `silent_s` after our write when the message did not
    change, `unchanged_s` if that message names our node: kube-scheduler does not write the same
    message twice, and tries again within 10 s; `unreserved_s` while reservedFor is empty.
    """

    refused_s: float = 30.0
    awaiting_s: float = 5.0
    silent_s: float = 45.0
    unchanged_s: float = 12.0
    unreserved_s: float = 30.0


@dataclass(frozen=True, slots=True)
class WrittenPod:
    """Record of a pod whose claims are written: the time, and the scheduler's message then.

    `refused_at` is when the scheduler was first seen to refuse it since.
    """

    node: ids.NodeName
    written_at: float
    message: str
    refused_at: float | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """The pod is not ours to act for, or all is well."""


@dataclass(frozen=True, slots=True)
class Decide:
    """Allocate the open claims together; the others are allocated already."""

    open_claims: tuple[claims.Claim, ...]
    allocated_claims: tuple[claims.Claim, ...]


@dataclass(frozen=True, slots=True)
class Recheck:
    """Check again in `after_s` seconds: the pod is placed and not yet bound."""

    after_s: float


@dataclass(frozen=True, slots=True)
class ReleaseAllocation:
    """The scheduler refuses the pod there: free the claims and report its message."""

    claims: tuple[claims.Claim, ...]
    node: ids.NodeName
    message: str


@dataclass(frozen=True, slots=True)
class RemoveReservation:
    """Remove the pod from these claims first: a binding that saw it there would not write."""

    claims: tuple[claims.Claim, ...]


@dataclass(frozen=True, slots=True)
class Ungate:
    """Every claim of the pod is allocated: remove our scheduling gate."""


Action = Nothing | Decide | Recheck | ReleaseAllocation | RemoveReservation | Ungate


def observe(
    placed: WrittenPod | None, pod: pods.Pod, node: ids.NodeName, now: float, allocated: str = ""
) -> WrittenPod:
    """Update the record of a placed pod with the scheduler's verdict.

    A pod without record (a new leader) counts as written now; `allocated`, the time of its
    allocation in RFC 3339, shows whether the scheduler refused it since. With a record only a new
    message is a new refusal: the same message is not written twice. A nomination of our node means
    that room is being made there: that is no refusal.
    """
    if placed is None or placed.node != node:
        was_refused = "" < allocated < pod.verdict.written and pod.nominated != node
        return WrittenPod(node, now, pod.verdict.message, refused_at=now if was_refused else None)
    if pod.nominated == node:
        return replace(placed, refused_at=None, message=pod.verdict.message, written_at=now)
    refused_anew = pod.verdict.refused and pod.verdict.message != placed.message
    if refused_anew and placed.refused_at is None:
        return replace(placed, refused_at=now)
    return placed


def pod_action(
    pod: pods.Pod,
    pod_claims: tuple[claims.Claim, ...],
    placed: WrittenPod | None,
    now: float,
    patience: BindTimeouts,
) -> Action:
    """Return the action for an unbound pod with all claims; none under a foreign gate (D23)."""
    if pod.node is not None or pod.deleting or pod.finished or _has_foreign_gate(pod):
        return Nothing()
    open_claims = tuple(claim for claim in pod_claims if claim.allocation is None)
    settled = tuple(claim for claim in pod_claims if claim.allocation is not None)
    if any(claim.deleting for claim in open_claims):
        return Nothing()
    if open_claims:
        return Decide(open_claims, settled)
    if pod.gates:
        return Ungate()
    held = tuple(claim for claim in settled if allocation_hold.has_hold(claim, pod))
    if not held or placed is None:
        return Nothing()
    return _unbound_action(pod, held, placed, now, patience)


def should_ungate(pod: pods.Pod, namespace_labels: Mapping[str, str]) -> bool:
    """Return whether our scheduling gate is removed from a pod that fits nowhere now.

    kube-scheduler then marks the pod Unschedulable, which cluster autoscalers act on. A namespace
    whose label requests the gate keeps it while its pods wait.
    """
    stays = namespace_labels.get(names.GATE_LABEL) == "true"
    return names.ALLOCATION_GATE in pod.gates and not stays


def _has_foreign_gate(pod: pods.Pod) -> bool:
    return any(gate != names.ALLOCATION_GATE for gate in pod.gates)


def _unbound_action(
    pod: pods.Pod,
    held: tuple[claims.Claim, ...],
    placed: WrittenPod,
    now: float,
    patience: BindTimeouts,
) -> Action:
    if pod.nominated == placed.node:
        return Recheck(patience.refused_s)
    if placed.refused_at is not None:
        due = placed.refused_at + _refused_s(pod.verdict.message, patience)
    else:
        due = placed.written_at + _silent_s(pod.verdict.message, patience)
    if now < due:
        return Recheck(due - now)
    if not pod.verdict.refused:
        return Recheck(patience.silent_s)
    return _release_action(pod, held, placed.node)


def _silent_s(message: str, patience: BindTimeouts) -> float:
    """Return the seconds for which a message that may predate our write is left alone."""
    if not scheduler_message.definite_reasons(message):
        return patience.silent_s
    return min(patience.unchanged_s, patience.silent_s)


def _refused_s(message: str, patience: BindTimeouts) -> float:
    """Return the seconds for which a refusal is left alone: it may pass."""
    reasons = scheduler_message.definite_reasons(message)
    if not reasons:
        return patience.refused_s
    if not scheduler_message.awaits_pods(reasons):
        return 0.0
    return min(patience.awaiting_s, patience.refused_s)


def _release_action(pod: pods.Pod, held: tuple[claims.Claim, ...], node: ids.NodeName) -> Action:
    """Clear unreserved claims; a pod that another binding may count on is unreserved first."""
    if any(entry.is_pod and entry.uid != pod.uid for claim in held for entry in claim.consumers):
        return Nothing()  # another pod uses it; its end changes the claim
    if any(allocation_hold.is_reserved_for_group(claim) for claim in held):
        # kube-scheduler removes a PodGroup's entry itself, once it cannot place any of its pods.
        return Nothing()
    reserved = tuple(claim for claim in held if allocation_hold.is_reserved_by(claim, pod))
    if reserved:
        return RemoveReservation(reserved)
    return ReleaseAllocation(held, node, pod.verdict.message)


def last_allocated(pod: pods.Pod, held: Iterable[claims.Claim]) -> str:
    """Return the time of the last allocation with the pod's hold, in RFC 3339; "": unknown."""
    return max(
        (
            claim.allocation.stamped
            for claim in held
            if claim.allocation and allocation_hold.has_hold(claim, pod)
        ),
        default="",
    )


def hold_node(pod: pods.Pod, pod_claims: Iterable[claims.Claim]) -> ids.NodeName | None:
    """Return the node of claims with the pod's hold; None without one."""
    for claim in pod_claims:
        if claim.allocation is not None and allocation_hold.has_hold(claim, pod):
            return snapshot.pinned_node(claim)
    return None


@dataclass(frozen=True, slots=True)
class DropHolds:
    """Drop these holds: their pods are bound, or gone."""

    holds: tuple[claims.Consumer, ...]


@dataclass(frozen=True, slots=True)
class ClearUnused:
    """Free the devices: the allocation has no users, now or later."""


ClaimAction = Nothing | DropHolds | ClearUnused | Recheck


def claim_action(
    claim: claims.Claim,
    find: Callable[[ids.Key], pods.Pod | None],
    unreserved_since: float | None,
    now: float,
    patience: BindTimeouts,
) -> ClaimAction:
    """Return the action for a claim. `unreserved_since` is set while ours and without any pod."""
    served = tuple(
        consumer
        for consumer in claim.consumers
        if consumer.is_hold
        and _is_served(claim, consumer, find(ids.Key(f"{claim.namespace}/{consumer.name}")))
    )
    if served and len(served) == len(claim.consumers):
        # kube-controller-manager frees a claim only when it empties reservedFor itself.
        return ClearUnused()
    if served:
        return DropHolds(served)
    if unreserved_since is None:
        return Nothing()
    left = unreserved_since + patience.unreserved_s - now
    return Recheck(left) if left > 0 else ClearUnused()


def _is_served(claim: claims.Claim, entry: claims.Consumer, pod: pods.Pod | None) -> bool:
    """Return whether a hold is over: for a bound pod, once the pod has reserved the claim."""
    if pod is None or not allocation_hold.is_hold_of(entry, pod) or pod.finished:
        return True
    if pod.node is None:
        return pod.deleting
    return allocation_hold.is_reserved_by(claim, pod)


def is_unused(claim: claims.Claim, view: snapshot.Snapshot) -> bool:
    """Return whether an allocation of ours has no users: reservedFor is empty.

    Ours: every result is a device of our driver that only the controller allocates, and the claim
    is not kube-scheduler's own.
    """
    if claim.allocation is None or claim.consumers or claim.for_extended_resources:
        return False
    results = claim.allocation.results
    return bool(results) and all(
        snapshot.is_managed(view, result.device) and not result.admin_access for result in results
    )
