"""Holders of a node's or a GPU's devices, and which of them can be evicted. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from driver import ids
from driver.cli.cordon import targets
from driver.resources.core import pods
from driver.resources.dra import claims

_STATIC = "Node"
"""The kind that owns the mirror of a static pod: evicting that one does nothing."""


class HolderFate(StrEnum):
    """Outcome for a holder."""

    EVICT = "evict"
    BARE = "stays: it has no controller; --force evicts it"
    STATIC = "stays: a static pod of the node"
    LEAVING = "is leaving"
    UNUSED = "stays: no pod; delete the claim, or its next pod starts here"
    RESERVED = "stays: reserved for another object"


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim with devices there, and one consumer of it. `pod` None: no pod that is known."""

    claim: ids.Key
    devices: tuple[str, ...]
    consumer: str
    pod: pods.Pod | None
    fate: HolderFate

    @property
    def owner(self) -> str:
        """`ReplicaSet/web`, "" for a bare pod."""
        owner = self.pod.owner if self.pod else None
        return f"{owner.kind}/{owner.name}" if owner else ""


def holders(
    target_devices: targets.TargetDevices,
    claimed: Iterable[claims.Claim],
    running: Iterable[pods.Pod],
) -> tuple[Holder, ...]:
    """Return the holders of the target's devices, by claim. Admin access holds nothing."""
    pod_list = {pod.uid: pod for pod in running}
    return tuple(
        holder
        for claim in sorted(claimed, key=lambda pod: pod.key)
        if (devices := _devices(claim, target_devices))
        for holder in _of(claim, devices, pod_list)
    )


def evictable_holders(result: Iterable[Holder], *, force: bool) -> Mapping[ids.Key, pods.Pod]:
    """The pods to evict, each once."""
    holder_fates = {HolderFate.EVICT, HolderFate.BARE} if force else {HolderFate.EVICT}
    return {
        holder.pod.key: holder.pod
        for holder in result
        if holder.pod and holder.fate in holder_fates
    }


def _devices(claim: claims.Claim, target_devices: targets.TargetDevices) -> tuple[str, ...]:
    results = claim.allocation.results if claim.allocation else ()
    return tuple(
        result.device.device
        for result in results
        if target_devices.includes(result.device) and not result.admin_access
    )


def _of(
    claim: claims.Claim, devices: tuple[str, ...], pod_list: Mapping[ids.PodUid, pods.Pod]
) -> Iterator[Holder]:
    if not claim.consumers:
        yield Holder(claim.key, devices, "", None, HolderFate.UNUSED)
    for consumer in claim.consumers:
        pod = pod_list.get(ids.PodUid(consumer.uid)) if consumer.is_pod else None
        kind = "pod" if consumer.is_pod else consumer.resource.removesuffix("s")
        fate = _fate(pod) if pod else HolderFate.LEAVING if consumer.is_pod else HolderFate.RESERVED
        yield Holder(claim.key, devices, f"{kind}/{consumer.name}", pod, fate)


def _fate(pod: pods.Pod) -> HolderFate:
    if pod.deleting or pod.finished:
        return HolderFate.LEAVING
    if pod.owner is None:
        return HolderFate.BARE
    return HolderFate.STATIC if pod.owner.kind == _STATIC else HolderFate.EVICT
