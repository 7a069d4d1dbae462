"""Pods as documents: what each waits for, in words, and what may be done about it. Pure."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from driver import ids, names, reasons, remediation
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.lifecycle import bound_pods
from driver.scheduling.reports import model, read_model
from driver.scheduling.snapshot import snapshot

_State: TypeAlias = Literal["waiting", "placed", "running", "finished", "leaving"]
_Word = tuple[str, str]
"""A reason and a message; ("", "") where there is nothing to say."""
_RENEWED = frozenset({reasons.Reason.NO_FIT.value, reasons.Reason.NOT_ANSWERED.value})
_NOTHING: _Word = ("", "")


def every(found: read_model.Seen, namespace: str = "") -> Iterator[pods.Pod]:
    """The pods that concern us, by key; of one namespace, or of all."""
    for _, pod in sorted(found.objects.pods.items()):
        if namespace in {"", pod.namespace} and concerns(found, pod):
            yield pod


def concerns(found: read_model.Seen, pod: pods.Pod) -> bool:
    """Whether a pod asks for devices of ours, or may: a claim of it is not there."""
    if len(found.claims_of(pod)) < sum(one.claim != "" for one in pod.claims):
        return True
    return any(found.asks_ours(claim) for claim in found.claims_of(pod))


def waiting(found: read_model.Seen, namespace: str = "") -> Iterator[pods.Pod]:
    """Those of them that have not got their devices."""
    return (pod for pod in every(found, namespace) if state(found, pod) == "waiting")


def state(found: read_model.Seen, pod: pods.Pod) -> _State:
    """Where a pod is on its way."""
    if pod.finished:
        return "finished"
    if pod.deleting:
        return "leaving"
    if pod.node is not None and not _is_astray(found, pod):
        return "running" if pod.phase == "Running" else "placed"
    if pod.node is not None:
        return "waiting"
    return "placed" if _lacks(found, pod) is None else "waiting"


def pod(
    found: read_model.Seen, one: pods.Pod, explained: model.Explanation | None = None
) -> model.Pod:
    """One pod, with an explanation where there is one."""
    reason, message = why(found, one)
    if explained is not None and explained.message and reason in _RENEWED:
        # What was written on the pod may be some seconds older.
        reason, message = reasons.Reason.NO_FIT.value, explained.message
    elif explained is not None and reason == reasons.Reason.BOUND_AWAY.value:
        reason, message = explained.reason or reason, explained.message or message
        explained = None if explained.why else explained  # why it was placed where it is not
    known = reasons.KNOWN.get(reason)
    claims_of = found.claims_of(one)
    stamped = [claim.allocation.stamped for claim in claims_of if claim.allocation]
    return model.Pod(
        namespace=one.namespace,
        name=one.name,
        uid=one.uid,
        state=state(found, one),
        phase=one.phase,
        node=one.node or _node(claims_of),
        created=one.created,
        since=max(stamped, default="") if one.node or not _lacks(found, one) else one.created,
        priority=one.priority,
        queue=found.queue_of(one),
        gang=one.gang,
        owner=f"{one.owner.kind}/{one.owner.name}" if one.owner else "",
        claims=tuple(claim.key for claim in claims_of),
        reason=reason,
        message=message,
        advice=remediation.remedy(known) if known else "",
        explanation=explained,
    )


def _node(found: tuple[claims.Claim, ...]) -> str:
    """Where its claims are allocated."""
    there = (snapshot.pinned_node(claim) for claim in found)
    return next((node for node in there if node is not None), "")


def why(found: read_model.Seen, one: pods.Pod) -> _Word:
    """What a pod waits for; of one that runs, what is wrong with its devices."""
    where = state(found, one)
    if where in {"finished", "leaving"}:
        return _NOTHING
    if where == "waiting":
        return _why_bound(found, one) if one.node is not None else _why_waiting(found, one)
    if one.node is not None:
        return _of_devices(found, one)
    if one.pending is not None:
        return one.pending.reason, one.pending.message
    if one.verdict.was_passed_over:
        return reasons.Reason.SCHEDULER_REFUSES.value, one.verdict.message
    return _of_devices(found, one)


def _is_astray(cluster_now: read_model.Seen, subject: pods.Pod) -> bool:
    return subject.phase == "Pending" and not isinstance(
        _of_bound(cluster_now, subject), bound_pods.Consistent
    )


def _of_bound(cluster_now: read_model.Seen, subject: pods.Pod) -> bound_pods.BindingState:
    """The state of a bound pod; of a node that was not read only what is allocated nowhere."""
    node = cluster_now.objects.nodes.get(ids.Key(subject.node or ""))
    ours = (claim for claim in cluster_now.claims_of(subject) if cluster_now.asks_ours(claim))
    due = bound_pods.binding_state(subject, ours, node)
    return (
        due
        if node is not None or isinstance(due, bound_pods.Unallocated)
        else bound_pods.Consistent()
    )


def _why_bound(cluster_now: read_model.Seen, subject: pods.Pod) -> _Word:
    """The words for a pod that is bound to a node where its claims are not allocated."""
    due = _of_bound(cluster_now, subject)
    if isinstance(due, bound_pods.Misplaced | bound_pods.Blocked):
        text = bound_pods.misplaced_message(due)
    else:
        lacking = (
            claim.name for claim in cluster_now.claims_of(subject) if claim.allocation is None
        )
        text = f"without devices: {', '.join(lacking)}"
    return reasons.Reason.BOUND_AWAY.value, bound_pods.bound_pod_message(subject, text)


def _why_waiting(found: read_model.Seen, one: pods.Pod) -> _Word:
    others = [gate for gate in one.gates if gate != names.ALLOCATION_GATE]
    if others:
        told = f"the pod has the scheduling gate {', '.join(others)}: whoever set it has yet to act"
        return reasons.Reason.SCHEDULING_GATED.value, told
    lacking = _lacks(found, one)
    if isinstance(lacking, str):
        return reasons.Reason.CLAIM_MISSING.value, lacking
    if one.pending is not None:
        return one.pending.reason, one.pending.message
    return _unanswered(found, one, lacking)


def _unanswered(found: read_model.Seen, one: pods.Pod, lacking: claims.Claim | None) -> _Word:
    """Of a pod of which the controller says nothing."""
    if lacking is not None and lacking.deleting:
        told = f"claim {lacking.key} is being deleted; the pod needs another one"
        return reasons.Reason.CLAIM_MISSING.value, told
    unknown = _unknown_class(found, lacking) if lacking is not None else ""
    if unknown:
        return reasons.Reason.CLASS_MISSING.value, unknown
    words = one.verdict.message if one.verdict.refused else ""
    silent = "neither the controller nor kube-scheduler has said anything yet"
    told = f"kube-scheduler says: {words}" if words else silent
    return reasons.Reason.NOT_ANSWERED.value, told


def _unknown_class(found: read_model.Seen, claim: claims.Claim) -> str:
    """Which DeviceClass of a claim is not there; "" where all are."""
    for ask in claim.spec.requests:
        for way in ask.alternatives_or_self:
            if ids.Key(way.device_class) not in found.objects.classes:
                return f"claim {claim.key} asks {way.device_class}: there is no such DeviceClass"
    return ""


def _lacks(found: read_model.Seen, one: pods.Pod) -> claims.Claim | str | None:
    """The first claim without devices; in words, one that is not there; None: it has all."""
    for entry in one.claims:
        if entry.claim == "":
            continue
        if entry.claim is None:
            return f"no claim was made for resourceClaims[{entry.name}] yet: is its template there?"
        there = found.objects.claims.get(ids.Key(f"{one.namespace}/{entry.claim}"))
        if there is None:
            return f"there is no ResourceClaim {one.namespace}/{entry.claim}"
        if there.allocation is None:
            return there
    return None


def _of_devices(found: read_model.Seen, one: pods.Pod) -> _Word:
    """What the plugin says of its devices, where that is not well."""
    for claim in found.claims_of(one):
        for said in claim.device_statuses:
            ready = said.condition(names.CONDITION_READY)
            if ready is not None and ready.status == "False":
                return ready.reason, ready.message
            within = said.condition(names.CONDITION_WITHIN_SHARE)
            if within is not None and within.status == "False":
                return within.reason, within.message
    return _NOTHING
