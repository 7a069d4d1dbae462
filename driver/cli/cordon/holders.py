"""Who still has something of a node or a GPU, and who of them can be made to leave. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from driver import ids
from driver.cli.cordon import targets
from driver.devices import faces
from driver.resources.core import pods
from driver.resources.dra import claims

_STATIC = "Node"
"""The kind that owns the mirror of a static pod: evicting that one does nothing."""


class Fate(StrEnum):
    """What becomes of a holder."""

    EVICT = "evict"
    BARE = "stays: nothing would make it again; --force evicts it"
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
    fate: Fate

    @property
    def owner(self) -> str:
        """`ReplicaSet/web`, "" for a bare pod."""
        owner = self.pod.owner if self.pod else None
        return f"{owner.kind}/{owner.name}" if owner else ""


def holders(
    target: targets.Target,
    driver: str,
    claimed: Iterable[claims.Claim],
    running: Iterable[pods.Pod],
) -> tuple[Holder, ...]:
    """Who has devices of the target, by claim. Administrators' access holds nothing."""
    known = {one.uid: one for one in running}
    return tuple(
        holder
        for claim in sorted(claimed, key=lambda one: one.key)
        if (devices := _devices(claim, target, driver))
        for holder in _of(claim, devices, known)
    )


def evictable(found: Iterable[Holder], *, force: bool) -> Mapping[ids.Key, pods.Pod]:
    """The pods to evict, each once."""
    wanted = {Fate.EVICT, Fate.BARE} if force else {Fate.EVICT}
    return {one.pod.key: one.pod for one in found if one.pod and one.fate in wanted}


def _devices(claim: claims.Claim, target: targets.Target, driver: str) -> tuple[str, ...]:
    results = claim.allocation.results if claim.allocation else ()
    return tuple(
        one.device.device
        for one in results
        if (one.device.driver, one.device.pool) == (driver, target.node)
        and not one.admin_access
        and target.gpu in {"", faces.gpu_name(one.device.device)}
    )


def _of(
    claim: claims.Claim, devices: tuple[str, ...], known: Mapping[ids.PodUid, pods.Pod]
) -> Iterator[Holder]:
    if not claim.consumers:
        yield Holder(claim.key, devices, "", None, Fate.UNUSED)
    for one in claim.consumers:
        pod = known.get(ids.PodUid(one.uid)) if one.is_pod else None
        kind = "pod" if one.is_pod else one.resource.removesuffix("s")
        fate = _fate(pod) if pod else Fate.LEAVING if one.is_pod else Fate.RESERVED
        yield Holder(claim.key, devices, f"{kind}/{one.name}", pod, fate)


def _fate(pod: pods.Pod) -> Fate:
    if pod.deleting or pod.finished:
        return Fate.LEAVING
    if pod.owner is None:
        return Fate.BARE
    return Fate.STATIC if pod.owner.kind == _STATIC else Fate.EVICT
