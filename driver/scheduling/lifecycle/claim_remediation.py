"""What is done for the pods of a claim that its node refused, or that uses too much (D8). Pure.

The plugin says in `status.devices` how the claim is; what follows is decided from that and the
pods alone, so that every leader decides the same. A refusal that has passed: the kubelet is asked
to try again. One that never will, or a share that is exceeded: the pod is evicted where its owner
makes another, and stays as it is where nobody would.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driver import ids, names, reasons
from driver.resources.core import pods
from driver.resources.dra import claims, device_status

GRACE_S = 60.0
"""How long a share may be exceeded before the pods go."""
_SAME_NODE_OWNERS = frozenset({"DaemonSet"})
"""Owners whose next pod is for the same node and of the same template: refused again, for ever."""
_NO_REPLACEMENT_OWNERS = frozenset({"Node"})
"""Owners that make no other pod through the API: of a static pod there is only a mirror."""


@dataclass(frozen=True, slots=True)
class RemediationRules:
    """Whose devices are looked at, and whether pods go that use more than their share."""

    driver: str
    evict_over_share: bool = False
    grace_s: float = GRACE_S


@dataclass(frozen=True, slots=True)
class RetryPrepare:
    """Have the kubelet try again at once: a refusal was cleared at `stamp` (RFC 3339)."""

    pod: pods.Pod
    cleared_at: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Have the pod leave; `owner` makes another."""

    pod: pods.Pod
    owner: pods.Owner
    message: str


@dataclass(frozen=True, slots=True)
class ReportKept:
    """The pod should leave, but nobody would make another: say so. `since` tells it apart."""

    pod: pods.Pod
    since: str
    message: str


@dataclass(frozen=True, slots=True)
class Recheck:
    """Look again in `after_s` seconds."""

    after_s: float


Action = RetryPrepare | Evict | ReportKept | Recheck


def actions_for(
    claim: claims.Claim,
    known: Mapping[ids.Key, pods.Pod],
    now: dt.datetime,
    rules: RemediationRules,
) -> tuple[Action, ...]:
    """What is due for each pod that has reserved the claim and is on its node."""
    said = [one for one in claim.said if one.device.driver == rules.driver]
    if claim.allocation is None or not said:
        return ()
    on_node = [pod for pod in _users(claim, known) if pod.node and not _is_leaving(pod)]
    waiting = [pod for pod in on_node if pod.phase == "Pending"]
    acts: list[Action] = []
    if (never := _permanent_refusal(said)) is not None:
        acts += _evictions(claim, never, waiting)
    elif cleared := _refusal_cleared_at(said):
        acts += [RetryPrepare(pod, cleared) for pod in waiting if pod.asked_again < cleared]
    if rules.evict_over_share and (
        over := _find_condition(said, names.CONDITION_WITHIN_SHARE, "False")
    ):
        acts += _over_share(claim, over, on_node, _age_s(over, now), rules.grace_s)
    return tuple(acts)


def _users(claim: claims.Claim, known: Mapping[ids.Key, pods.Pod]) -> Iterable[pods.Pod]:
    for one in claim.consumers:
        pod = known.get(ids.Key(f"{claim.namespace}/{one.name}")) if one.is_pod else None
        if pod is not None and pod.uid == one.uid:
            yield pod


def _is_leaving(pod: pods.Pod) -> bool:
    return pod.deleting or pod.finished


def _permanent_refusal(
    said: Iterable[device_status.DeviceStatus],
) -> device_status.Condition | None:
    """Why the claim will never be prepared as it is, where the plugin says so."""
    for entry in said:
        ready = entry.condition(names.CONDITION_READY)
        stalled = entry.condition(names.CONDITION_STALLED)
        if ready and stalled and (ready.status, stalled.status) == ("False", "True"):
            return ready
    return None


def _refusal_cleared_at(said: Iterable[device_status.DeviceStatus]) -> str:
    """When the last refusal was cleared; "" while there is another, or none was."""
    ready = [found for one in said if (found := one.condition(names.CONDITION_READY))]
    if any(one.status == "False" for one in ready):
        return ""
    cleared = reasons.Reason.REFUSAL_CLEARED.value
    return max((one.since for one in ready if one.reason == cleared), default="")


def _find_condition(
    said: Iterable[device_status.DeviceStatus], kind: str, status: str
) -> device_status.Condition | None:
    found = (one.condition(kind) for one in said)
    return next((one for one in found if one is not None and one.status == status), None)


def _evictions(
    claim: claims.Claim, why: device_status.Condition, found: Iterable[pods.Pod]
) -> Iterable[Evict]:
    for pod in found:
        if (
            pod.owner is not None
            and pod.owner.kind not in _SAME_NODE_OWNERS | _NO_REPLACEMENT_OWNERS
        ):
            yield Evict(pod, pod.owner, _message(claim, why))


def _over_share(
    claim: claims.Claim,
    why: device_status.Condition,
    found: Iterable[pods.Pod],
    age_s: float,
    grace_s: float,
) -> Iterable[Action]:
    if age_s < grace_s:
        yield Recheck(min(grace_s - age_s, grace_s))
        return
    for pod in found:
        if pod.owner is not None and pod.owner.kind not in _NO_REPLACEMENT_OWNERS:
            yield Evict(pod, pod.owner, _message(claim, why))
        else:
            yield ReportKept(pod, why.since, _message(claim, why))


def _message(claim: claims.Claim, why: device_status.Condition) -> str:
    return f"claim {claim.name}: {why.reason}: {why.message}"


def _age_s(condition: device_status.Condition, now: dt.datetime) -> float:
    """How long it has been so; 0 where its time cannot be read."""
    try:
        return (now - dt.datetime.fromisoformat(condition.since)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
