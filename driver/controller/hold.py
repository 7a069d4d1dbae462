"""The hold: a second reservedFor entry that keeps our allocation in place (D5). Pure.

While it stands beside the pod's own entry, kube-scheduler clears nothing (it does so only for an
empty list or exactly this pod) and kube-controller-manager keeps the entry it does not know.
"""

import functools
import uuid

from driver import names
from driver.resources import claims, pods

_MOST = 1024
"""Pods whose holds are remembered: each is compared many times while its pod is placed."""


def of_pod(pod: pods.Pod) -> claims.Consumer:
    """The hold of a pod. Its uid derives from the pod's, so every leader finds the same."""
    return claims.Consumer(names.GROUP, names.HOLD_RESOURCE, pod.name, _uid(pod.uid))


def pod_entry(pod: pods.Pod) -> claims.Consumer:
    """The reservedFor entry of the pod itself."""
    return claims.Consumer("", "pods", pod.name, pod.uid)


def is_of(hold: claims.Consumer, pod: pods.Pod) -> bool:
    """Whether the hold was written for this very pod, not for an older one of its name."""
    return hold.is_hold and hold.name == pod.name and hold.uid == _uid(pod.uid)


def stands(claim: claims.Claim, pod: pods.Pod) -> bool:
    """Whether the claim carries the pod's hold: the allocation is ours and not yet bound."""
    return any(is_of(one, pod) for one in claim.consumers)


@functools.lru_cache(maxsize=_MOST)
def _uid(pod_uid: str) -> str:
    try:
        space = uuid.UUID(pod_uid)
    except ValueError:  # whoever made the pod chose its UID
        space = uuid.uuid5(uuid.NAMESPACE_OID, pod_uid)
    return str(uuid.uuid5(space, "hold"))
