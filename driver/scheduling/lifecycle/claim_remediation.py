"""Remediation for pods of a claim that its node refused, or that exceeds its share (D8). Pure.

The plugin reports claims in `status.devices`; actions follow from that and the pods alone, so that
every leader decides the same. A refusal that was cleared: the kubelet retries. A permanent one, or
an exceeded share: the pod is evicted if its owner would replace it, and stays otherwise.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from driver import names, reasons
from driver.resources.core import pods
from driver.resources.dra import claims, device_status
from driver.scheduling.snapshot import allocation_hold

GRACE_S = 60.0
"""Time for which a share may be exceeded before the eviction."""
_SAME_NODE_OWNERS = frozenset({"DaemonSet"})
"""Owners that recreate the pod on the same node from the same template: refused again, forever."""
_NO_REPLACEMENT_OWNERS = frozenset({"Node"})
"""Owners that create no other pod through the API: a static pod has only a mirror."""


@dataclass(frozen=True, slots=True)
class RemediationRules:
    """The driver whose devices count, and whether pods that exceed their share are evicted."""

    driver: str
    evict_over_share: bool = False
    grace_s: float = GRACE_S


@dataclass(frozen=True, slots=True)
class RetryPrepare:
    """Make the kubelet retry at once: a refusal was cleared at `cleared_at` (RFC 3339)."""

    pod: pods.Pod
    cleared_at: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict the pod; `owner` creates another."""

    pod: pods.Pod
    owner: pods.Owner
    message: str


@dataclass(frozen=True, slots=True)
class ReportKept:
    """Report a pod to be evicted that stays: no controller would replace it, or to no avail.

    `since` identifies the report.
    """

    pod: pods.Pod
    since: str
    message: str


@dataclass(frozen=True, slots=True)
class Recheck:
    """Check again in `after_s` seconds."""

    after_s: float


Action = RetryPrepare | Evict | ReportKept | Recheck


def actions_for(
    claim: claims.Claim,
    users: Iterable[pods.Pod],
    now: dt.datetime,
    rules: RemediationRules,
) -> tuple[Action, ...]:
    """Return the actions for each pod of a claim that has reserved it and is on its node."""
    device_statuses = [
        device_status
        for device_status in claim.device_statuses
        if device_status.device.driver == rules.driver
    ]
    if claim.allocation is None or not device_statuses:
        return ()
    on_node = [
        pod
        for pod in users
        if pod.node and not _is_leaving(pod) and allocation_hold.is_reserved_by(claim, pod)
    ]
    waiting = [pod for pod in on_node if pod.phase == "Pending"]
    acts: list[Action] = []
    if (permanent := _permanent_refusal(device_statuses)) is not None:
        acts += _evictions(claim, permanent, waiting)
    elif cleared := _refusal_cleared_at(device_statuses):
        acts += [RetryPrepare(pod, cleared) for pod in waiting if pod.asked_again < cleared]
    if rules.evict_over_share and (
        exceeded := _find_condition(device_statuses, names.CONDITION_WITHIN_SHARE, "False")
    ):
        acts += _over_share(claim, exceeded, on_node, _age_s(exceeded, now), rules.grace_s)
    return tuple(acts)


def _is_leaving(pod: pods.Pod) -> bool:
    return pod.deleting or pod.finished


def _permanent_refusal(
    device_statuses: Iterable[device_status.DeviceStatus],
) -> device_status.Condition | None:
    """Return why the claim will never be prepared, if the plugin says so."""
    for entry in device_statuses:
        ready = entry.condition(names.CONDITION_READY)
        stalled = entry.condition(names.CONDITION_STALLED)
        if ready and stalled and (ready.status, stalled.status) == ("False", "True"):
            return ready
    return None


def _refusal_cleared_at(device_statuses: Iterable[device_status.DeviceStatus]) -> str:
    """Return when the last refusal was cleared; "" while there is another, or without one."""
    ready = [
        condition
        for entry in device_statuses
        if (condition := entry.condition(names.CONDITION_READY))
    ]
    if any(entry.status == "False" for entry in ready):
        return ""
    cleared = reasons.Reason.REFUSAL_CLEARED.value
    return max((entry.since for entry in ready if entry.reason == cleared), default="")


def _find_condition(
    device_statuses: Iterable[device_status.DeviceStatus], kind: str, status: str
) -> device_status.Condition | None:
    conditions = (entry.condition(kind) for entry in device_statuses)
    return next(
        (entry for entry in conditions if entry is not None and entry.status == status), None
    )


def _evictions(
    claim: claims.Claim, why: device_status.Condition, victims: Iterable[pods.Pod]
) -> Iterable[Evict | ReportKept]:
    for pod in victims:
        if allocation_hold.is_reserved_for_group(claim):
            shared = f"new pods of PodGroup {pod.pod_group} would get the same claim"
            yield ReportKept(pod, why.since, f"{_message(claim, why)}; {shared}")
        elif (
            pod.owner is not None
            and pod.owner.kind not in _SAME_NODE_OWNERS | _NO_REPLACEMENT_OWNERS
        ):
            yield Evict(pod, pod.owner, _message(claim, why))


def _over_share(
    claim: claims.Claim,
    why: device_status.Condition,
    victims: Iterable[pods.Pod],
    age_s: float,
    grace_s: float,
) -> Iterable[Action]:
    if age_s < grace_s:
        yield Recheck(min(grace_s - age_s, grace_s))
        return
    for pod in victims:
        if pod.owner is not None and pod.owner.kind not in _NO_REPLACEMENT_OWNERS:
            yield Evict(pod, pod.owner, _message(claim, why))
        else:
            yield ReportKept(pod, why.since, _message(claim, why))


def _message(claim: claims.Claim, why: device_status.Condition) -> str:
    return f"claim {claim.name}: {why.reason}: {why.message}"


def _age_s(condition: device_status.Condition, now: dt.datetime) -> float:
    """Return the age of a condition in seconds; 0 if its time cannot be read."""
    try:
        return (now - dt.datetime.fromisoformat(condition.since)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
