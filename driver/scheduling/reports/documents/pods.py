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
_Problem = tuple[str, str]
"""A reason and a message; ("", "") without a problem."""
_RECOMPUTED = frozenset({reasons.Reason.NO_FIT.value, reasons.Reason.NOT_EVALUATED.value})
_NO_PROBLEM: _Problem = ("", "")


def device_pods(cluster: read_model.ClusterModel, namespace: str = "") -> Iterator[pods.Pod]:
    """Yield the pods of our devices, by key; of one namespace, or of all."""
    for _, pod in sorted(cluster.objects.pods.items()):
        if namespace in {"", pod.namespace} and requests_devices(cluster, pod):
            yield pod


def requests_devices(cluster: read_model.ClusterModel, pod: pods.Pod) -> bool:
    """Return whether a pod requests our devices, or may: a claim of it is missing."""
    if len(cluster.pod_claims(pod)) < len({entry.claim for entry in pod.claims} - {""}):
        return True
    return any(cluster.requests_managed(claim) for claim in cluster.pod_claims(pod))


def waiting_pods(cluster: read_model.ClusterModel, namespace: str = "") -> Iterator[pods.Pod]:
    """Yield the pods without their devices."""
    return (pod for pod in device_pods(cluster, namespace) if pod_state(cluster, pod) == "waiting")


def pod_state(cluster: read_model.ClusterModel, pod: pods.Pod) -> _State:
    """Return the state of a pod."""
    if pod.finished:
        return "finished"
    if pod.deleting:
        return "leaving"
    if pod.node is not None and not _is_misplaced(cluster, pod):
        return "running" if pod.phase == "Running" else "placed"
    if pod.node is not None:
        return "waiting"
    return "placed" if _missing_devices(cluster, pod) is None else "waiting"


def pod_document(
    cluster: read_model.ClusterModel, subject: pods.Pod, explained: model.Explanation | None = None
) -> model.Pod:
    """Return one pod, with an explanation if there is one."""
    reason, message = pod_problem(cluster, subject)
    if explained is not None and explained.message and reason in _RECOMPUTED:
        # The pod's condition may be some seconds older.
        reason, message = reasons.Reason.NO_FIT.value, explained.message
    elif explained is not None and reason == reasons.Reason.POD_BOUND_TO_OTHER_NODE.value:
        reason, message = explained.reason or reason, explained.message or message
        explained = None if explained.why else explained  # it explains a placement on another node
    known_reason = reasons.KNOWN.get(reason)
    pod_claims = cluster.pod_claims(subject)
    stamped = [claim.allocation.stamped for claim in pod_claims if claim.allocation]
    return model.Pod(
        namespace=subject.namespace,
        name=subject.name,
        uid=subject.uid,
        state=pod_state(cluster, subject),
        phase=subject.phase,
        node=subject.node or _allocated_node(pod_claims),
        created=subject.created,
        since=max(stamped, default="")
        if subject.node or not _missing_devices(cluster, subject)
        else subject.created,
        priority=subject.priority,
        queue=cluster.pod_queue(subject),
        gang=subject.gang,
        owner=f"{subject.owner.kind}/{subject.owner.name}" if subject.owner else "",
        claims=tuple(claim.key for claim in pod_claims),
        reason=reason,
        message=message,
        advice=remediation.remedy(known_reason) if known_reason else "",
        explanation=explained,
    )


def _allocated_node(pod_claims: tuple[claims.Claim, ...]) -> str:
    """Return the node of its claims' allocations; "" without one."""
    pinned = (snapshot.pinned_node(claim) for claim in pod_claims)
    return next((node for node in pinned if node is not None), "")


def pod_problem(cluster: read_model.ClusterModel, subject: pods.Pod) -> _Problem:
    """Return what a pod waits for; for a running pod, what is wrong with its devices."""
    state = pod_state(cluster, subject)
    if state in {"finished", "leaving"}:
        return _NO_PROBLEM
    if state == "waiting":
        return (
            _bound_problem(cluster, subject)
            if subject.node is not None
            else _waiting_problem(cluster, subject)
        )
    if subject.node is not None:
        return _device_problem(cluster, subject)
    if subject.pending is not None:
        return reasons.current_name(subject.pending.reason), subject.pending.message
    if subject.verdict.was_passed_over:
        return reasons.Reason.REJECTED_BY_SCHEDULER.value, subject.verdict.message
    return _device_problem(cluster, subject)


def _is_misplaced(cluster_now: read_model.ClusterModel, subject: pods.Pod) -> bool:
    return subject.phase == "Pending" and not isinstance(
        _binding_state(cluster_now, subject), bound_pods.Consistent
    )


def _binding_state(
    cluster_now: read_model.ClusterModel, subject: pods.Pod
) -> bound_pods.BindingState:
    """Return the state of a bound pod; without its node only whether claims are unallocated."""
    node = cluster_now.objects.nodes.get(ids.Key(subject.node or ""))
    ours = (
        claim for claim in cluster_now.pod_claims(subject) if cluster_now.requests_managed(claim)
    )
    due = bound_pods.binding_state(subject, ours, node)
    return (
        due
        if node is not None or isinstance(due, bound_pods.Unallocated)
        else bound_pods.Consistent()
    )


def _bound_problem(cluster_now: read_model.ClusterModel, subject: pods.Pod) -> _Problem:
    """Return the message for a pod bound to another node than its claims'."""
    due = _binding_state(cluster_now, subject)
    if isinstance(due, bound_pods.Misplaced | bound_pods.Blocked):
        text = bound_pods.misplaced_message(due)
    else:
        lacking = (
            claim.name for claim in cluster_now.pod_claims(subject) if claim.allocation is None
        )
        text = f"without devices: {', '.join(lacking)}"
    return reasons.Reason.POD_BOUND_TO_OTHER_NODE.value, bound_pods.bound_pod_message(subject, text)


def _waiting_problem(cluster: read_model.ClusterModel, subject: pods.Pod) -> _Problem:
    others = [gate for gate in subject.gates if gate != names.ALLOCATION_GATE]
    if others:
        message = (
            f"the pod has the scheduling gate {', '.join(others)}, "
            "which the controller that set it has to remove"
        )
        return reasons.Reason.SCHEDULING_GATED.value, message
    lacking = _missing_devices(cluster, subject)
    if isinstance(lacking, str):
        return reasons.Reason.CLAIM_NOT_FOUND.value, lacking
    if subject.pending is not None:
        return reasons.current_name(subject.pending.reason), subject.pending.message
    return _unreported_problem(cluster, subject, lacking)


def _unreported_problem(
    cluster: read_model.ClusterModel, subject: pods.Pod, lacking: claims.Claim | None
) -> _Problem:
    """Return the message for a pod without a report of the controller."""
    if lacking is not None and lacking.deleting:
        message = f"claim {lacking.key} is being deleted; the pod needs another one"
        return reasons.Reason.CLAIM_NOT_FOUND.value, message
    unknown = _unknown_class(cluster, lacking) if lacking is not None else ""
    if unknown:
        return reasons.Reason.DEVICE_CLASS_NOT_FOUND.value, unknown
    verdict = subject.verdict.message if subject.verdict.refused else ""
    silent = "neither the controller nor kube-scheduler has reported on it yet"
    message = f"kube-scheduler says: {verdict}" if verdict else silent
    return reasons.Reason.NOT_EVALUATED.value, message


def _unknown_class(cluster: read_model.ClusterModel, claim: claims.Claim) -> str:
    """Return the missing DeviceClass of a claim; "" if all exist."""
    for request in claim.spec.requests:
        for subrequest in request.alternatives_or_self:
            name = subrequest.device_class
            if ids.Key(name) not in cluster.objects.classes:
                return f"claim {claim.key} asks {name}: there is no such DeviceClass"
    return ""


def _missing_devices(
    cluster: read_model.ClusterModel, subject: pods.Pod
) -> claims.Claim | str | None:
    """Return the first claim without devices; a message if it is missing; None: it has all."""
    for entry in subject.claims:
        if entry.claim == "":
            continue
        if entry.claim is None:
            return f"no claim was created for resourceClaims[{entry.name}] yet: check its template"
        claim = cluster.objects.claims.get(ids.Key(f"{subject.namespace}/{entry.claim}"))
        if claim is None:
            return f"there is no ResourceClaim {subject.namespace}/{entry.claim}"
        if claim.allocation is None:
            return claim
    return None


def _device_problem(cluster: read_model.ClusterModel, subject: pods.Pod) -> _Problem:
    """Return what the plugin reports on its devices, if anything is wrong."""
    for claim in cluster.pod_claims(subject):
        for device_status in claim.device_statuses:
            ready = device_status.condition(names.CONDITION_READY)
            if ready is not None and ready.status == "False":
                return reasons.current_name(ready.reason), ready.message
            within = device_status.condition(names.CONDITION_WITHIN_SHARE)
            if within is not None and within.status == "False":
                return reasons.current_name(within.reason), within.message
    return _NO_PROBLEM
