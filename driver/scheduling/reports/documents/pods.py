"""Pods as documents: state, what each waits for, and advice. Pure."""

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


def every(cluster: read_model.Seen, namespace: str = "") -> Iterator[pods.Pod]:
    """Yield the pods of our devices, by key; of one namespace, or of all."""
    for _, pod in sorted(cluster.objects.pods.items()):
        if namespace in {"", pod.namespace} and concerns(cluster, pod):
            yield pod


def concerns(cluster: read_model.Seen, pod: pods.Pod) -> bool:
    """Return whether a pod requests our devices, or may: a claim of it is missing."""
    if len(cluster.claims_of(pod)) < sum(entry.claim != "" for entry in pod.claims):
        return True
    return any(cluster.asks_ours(claim) for claim in cluster.claims_of(pod))


def waiting(cluster: read_model.Seen, namespace: str = "") -> Iterator[pods.Pod]:
    """Yield the pods without their devices."""
    return (pod for pod in every(cluster, namespace) if state(cluster, pod) == "waiting")


def state(cluster: read_model.Seen, pod: pods.Pod) -> _State:
    """Return the state of a pod."""
    if pod.finished:
        return "finished"
    if pod.deleting:
        return "leaving"
    if pod.node is not None and not _is_astray(cluster, pod):
        return "running" if pod.phase == "Running" else "placed"
    if pod.node is not None:
        return "waiting"
    return "placed" if _lacks(cluster, pod) is None else "waiting"


def pod(
    cluster: read_model.Seen, subject: pods.Pod, explained: model.Explanation | None = None
) -> model.Pod:
    """Return one pod, with an explanation if there is one."""
    reason, message = why(cluster, subject)
    if explained is not None and explained.message and reason in _RENEWED:
        # What was written on the pod may be some seconds older.
        reason, message = reasons.Reason.NO_FIT.value, explained.message
    elif explained is not None and reason == reasons.Reason.BOUND_AWAY.value:
        reason, message = explained.reason or reason, explained.message or message
        explained = None if explained.why else explained  # why it was placed where it is not
    known_reason = reasons.KNOWN.get(reason)
    pod_claims = cluster.claims_of(subject)
    stamped = [claim.allocation.stamped for claim in pod_claims if claim.allocation]
    return model.Pod(
        namespace=subject.namespace,
        name=subject.name,
        uid=subject.uid,
        state=state(cluster, subject),
        phase=subject.phase,
        node=subject.node or _node(pod_claims),
        created=subject.created,
        since=max(stamped, default="")
        if subject.node or not _lacks(cluster, subject)
        else subject.created,
        priority=subject.priority,
        queue=cluster.queue_of(subject),
        gang=subject.gang,
        owner=f"{subject.owner.kind}/{subject.owner.name}" if subject.owner else "",
        claims=tuple(claim.key for claim in pod_claims),
        reason=reason,
        message=message,
        advice=remediation.remedy(known_reason) if known_reason else "",
        explanation=explained,
    )


def _node(pod_claims: tuple[claims.Claim, ...]) -> str:
    """Return the node of its claims' allocations; "" without one."""
    pinned = (snapshot.pinned_node(claim) for claim in pod_claims)
    return next((node for node in pinned if node is not None), "")


def why(cluster: read_model.Seen, subject: pods.Pod) -> _Word:
    """Return what a pod waits for; for a running pod, what is wrong with its devices."""
    pod_state = state(cluster, subject)
    if pod_state in {"finished", "leaving"}:
        return _NOTHING
    if pod_state == "waiting":
        return (
            _why_bound(cluster, subject)
            if subject.node is not None
            else _why_waiting(cluster, subject)
        )
    if subject.node is not None:
        return _of_devices(cluster, subject)
    if subject.waits is not None:
        return subject.waits.reason, subject.waits.message
    if subject.verdict.passed_over:
        return reasons.Reason.SCHEDULER_REFUSES.value, subject.verdict.message
    return _of_devices(cluster, subject)


def _is_astray(cluster_now: read_model.Seen, subject: pods.Pod) -> bool:
    return subject.phase == "Pending" and not isinstance(
        _of_bound(cluster_now, subject), bound_pods.Consistent
    )


def _of_bound(cluster_now: read_model.Seen, subject: pods.Pod) -> bound_pods.BindingState:
    """Return the state of a bound pod; without its node only whether claims are unallocated."""
    node = cluster_now.objects.nodes.get(ids.Key(subject.node or ""))
    ours = (claim for claim in cluster_now.claims_of(subject) if cluster_now.asks_ours(claim))
    due = bound_pods.binding_state(subject, ours, node)
    return (
        due
        if node is not None or isinstance(due, bound_pods.Unallocated)
        else bound_pods.Consistent()
    )


def _why_bound(cluster_now: read_model.Seen, subject: pods.Pod) -> _Word:
    """Return the message for a pod bound to another node than its claims'."""
    due = _of_bound(cluster_now, subject)
    if isinstance(due, bound_pods.Misplaced | bound_pods.Blocked):
        text = bound_pods.misplaced_message(due)
    else:
        lacking = (
            claim.name for claim in cluster_now.claims_of(subject) if claim.allocation is None
        )
        text = f"without devices: {', '.join(lacking)}"
    return reasons.Reason.BOUND_AWAY.value, bound_pods.bound_pod_message(subject, text)


def _why_waiting(cluster: read_model.Seen, subject: pods.Pod) -> _Word:
    others = [gate for gate in subject.gates if gate != names.ALLOCATION_GATE]
    if others:
        message = (
            f"the pod has the scheduling gate {', '.join(others)}: whoever set it has yet to act"
        )
        return reasons.Reason.SCHEDULING_GATED.value, message
    lacking = _lacks(cluster, subject)
    if isinstance(lacking, str):
        return reasons.Reason.CLAIM_MISSING.value, lacking
    if subject.waits is not None:
        return subject.waits.reason, subject.waits.message
    return _unanswered(cluster, subject, lacking)


def _unanswered(cluster: read_model.Seen, subject: pods.Pod, lacking: claims.Claim | None) -> _Word:
    """Return the message for a pod without a report of the controller."""
    if lacking is not None and lacking.deleting:
        message = f"claim {lacking.key} is being deleted; the pod needs another one"
        return reasons.Reason.CLAIM_MISSING.value, message
    unknown = _unknown_class(cluster, lacking) if lacking is not None else ""
    if unknown:
        return reasons.Reason.CLASS_MISSING.value, unknown
    verdict = subject.verdict.message if subject.verdict.refused else ""
    silent = "neither the controller nor kube-scheduler has said anything yet"
    message = f"kube-scheduler says: {verdict}" if verdict else silent
    return reasons.Reason.NOT_ANSWERED.value, message


def _unknown_class(cluster: read_model.Seen, claim: claims.Claim) -> str:
    """Return the missing DeviceClass of a claim; "" if all exist."""
    for request in claim.spec.requests:
        for subrequest in request.ways:
            name = subrequest.device_class
            if ids.Key(name) not in cluster.objects.classes:
                return f"claim {claim.key} asks {name}: there is no such DeviceClass"
    return ""


def _lacks(cluster: read_model.Seen, subject: pods.Pod) -> claims.Claim | str | None:
    """Return the first claim without devices; a message if it is missing; None: it has all."""
    for entry in subject.claims:
        if entry.claim == "":
            continue
        if entry.claim is None:
            return f"no claim was made for resourceClaims[{entry.name}] yet: is its template there?"
        claim = cluster.objects.claims.get(ids.Key(f"{subject.namespace}/{entry.claim}"))
        if claim is None:
            return f"there is no ResourceClaim {subject.namespace}/{entry.claim}"
        if claim.allocation is None:
            return claim
    return None


def _of_devices(cluster: read_model.Seen, subject: pods.Pod) -> _Word:
    """Return what the plugin reports on its devices, if anything is wrong."""
    for claim in cluster.claims_of(subject):
        for device_status in claim.said:
            ready = device_status.condition(names.CONDITION_READY)
            if ready is not None and ready.status == "False":
                return ready.reason, ready.message
            within = device_status.condition(names.CONDITION_WITHIN_SHARE)
            if within is not None and within.status == "False":
                return within.reason, within.message
    return _NOTHING
