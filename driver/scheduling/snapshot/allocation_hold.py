"""The hold: the reservedFor entry that keeps our allocation in place until it is bound (D5). Pure.

While it is there, kube-scheduler clears nothing (it does so only for an empty list or exactly
this pod) and kube-controller-manager keeps the entry it does not know. The pod's own entry is
written by kube-scheduler's PreBind: with that write both agree on the node (ADR 18). For a claim
that a PodGroup shares, that is the PodGroup's entry: of all its pods the first binding writes it.
"""

import functools
import uuid
from collections.abc import Callable

from driver import ids, names
from driver.resources.core import pods
from driver.resources.dra import claims

_MAX_CACHED = 1024
"""Cached holds: each is compared many times while its pod is placed."""


def pod_hold(pod: pods.Pod) -> claims.Consumer:
    """Return the hold of a pod. Its uid derives from the pod's, so every leader finds the same."""
    return claims.Consumer(names.GROUP, names.HOLD_RESOURCE, pod.name, _uid(pod.uid))


def pod_entry(pod: pods.Pod) -> claims.Consumer:
    """The reservedFor entry of the pod itself."""
    return claims.Consumer("", "pods", pod.name, pod.uid)


def is_hold_of(hold: claims.Consumer, pod: pods.Pod) -> bool:
    """Return whether the hold was written for this very pod, not for an older one of its name."""
    return hold.is_hold and hold.name == pod.name and hold.uid == _uid(pod.uid)


def has_hold(claim: claims.Claim, pod: pods.Pod) -> bool:
    """Return whether the claim carries the pod's hold: the allocation is ours and not yet bound."""
    return any(is_hold_of(consumer, pod) for consumer in claim.consumers)


def reserved_for_entries(pod: pods.Pod) -> tuple[claims.Consumer, ...]:
    """Return the reservedFor entries that an allocation for a pod is written with.

    For an unbound pod the hold alone, so that kube-scheduler has to write before it binds; for a
    bound pod its own entry, which the kubelet requires.
    """
    return (pod_hold(pod),) if pod.node is None else (pod_entry(pod),)


def is_reserved(claim: claims.Claim) -> bool:
    """Return whether a pod or a PodGroup has reserved the claim: it is being bound, or runs."""
    return any(entry.is_pod or entry.is_pod_group for entry in claim.consumers)


def is_reserved_for_group(claim: claims.Claim) -> bool:
    """Return whether a PodGroup has reserved the claim, for all its pods that name it."""
    return any(entry.is_pod_group for entry in claim.consumers)


def is_reserved_by(claim: claims.Claim, pod: pods.Pod) -> bool:
    """Return whether the claim is reserved for this very pod, or for its PodGroup."""
    return any(_is_entry_for(entry, pod) for entry in claim.consumers)


def _is_entry_for(entry: claims.Consumer, pod: pods.Pod) -> bool:
    """Compare as the kubelet does: a pod knows the name of its PodGroup and not the UID."""
    if entry.is_pod_group:
        return bool(pod.pod_group) and entry.name == pod.pod_group
    return entry.is_pod and entry.uid == pod.uid


def consumer_pod(
    claim: claims.Claim, entry: claims.Consumer, find: Callable[[ids.Key], pods.Pod | None]
) -> pods.Pod | None:
    """Return the pod of a reservedFor entry, its own entry or its hold; None if there is none."""
    if not (entry.is_pod or entry.is_hold):
        return None
    pod = find(ids.Key(f"{claim.namespace}/{entry.name}"))
    if pod is None:
        return None
    return pod if is_hold_of(entry, pod) or (entry.is_pod and entry.uid == pod.uid) else None


@functools.lru_cache(maxsize=_MAX_CACHED)
def _uid(pod_uid: str) -> str:
    try:
        space = uuid.UUID(pod_uid)
    except ValueError:  # the UID was chosen by the pod's creator
        space = uuid.uuid5(uuid.NAMESPACE_OID, pod_uid)
    return str(uuid.uuid5(space, "hold"))
