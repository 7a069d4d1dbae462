"""How much memory of a GPU the claims that share it use, and how much they were given (D10). Pure.

MPS binds each client process and time-slicing binds nobody, so a claim is measured by the sum over
its processes. A claim's own MPS daemon has limits that the claim sets itself for its processes, on
devices that are its alone: there is no share to exceed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint

LOOKS = 2
"""In a row: memory may pass from one claim to the next while it is read."""
AGAIN_S = 300.0
_TENTH = 10

Shares = Mapping[ids.GpuUuid, Mapping[ports.ClaimRef, int]]
"""The claims that share a GPU, with the bytes that each was given; 0 where nothing says them."""
Pods = Mapping[ids.ClaimUid, Collection[ids.PodUid]]
UseKey = tuple[ids.ClaimUid, ids.GpuUuid]


@dataclass(frozen=True, slots=True)
class PodProcess:
    """A process on a GPU, and the pod that it is of."""

    process: ports.GpuProcess
    pod: ids.PodUid

    @property
    def used_bytes(self) -> int:
        """At least so much."""
        return self.process.used_bytes or 0


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """What a claim uses of a GPU, in bytes; `processes` the largest first.

    A pod's processes do not say which of its claims they draw on: claims that a pod has together
    are counted as one, and `others` are those. What GPUs do not tell of a process counts as 0.
    """

    claim: ports.ClaimRef
    gpu: ids.GpuUuid
    allocated_bytes: int
    used_bytes: int
    processes: tuple[PodProcess, ...] = ()
    others: tuple[ports.ClaimRef, ...] = ()

    @property
    def key(self) -> UseKey:
        """Whose use of what it is."""
        return self.claim.uid, self.gpu

    @property
    def is_over(self) -> bool:
        """Whether it is more than was given."""
        return self.used_bytes > self.allocated_bytes


class UsageChange(Enum):
    """What a look at a claim's use brought."""

    NOTHING = "nothing"
    BEGAN = "began"
    GREW = "grew"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Episode:
    """`looks` in a row that found a claim over its share; what was told last, and when."""

    looks: int = 0
    reported_bytes: int = 0
    reported_at_s: float = 0.0

    @property
    def is_overuse(self) -> bool:
        """Whether it is over-use, and not a moment between two readings."""
        return self.looks >= LOOKS


def shared_gpus(records: Iterable[checkpoint.Record]) -> Shares:
    """The GPUs that are shared, as far as anybody there was given an amount."""
    found: dict[ids.GpuUuid, dict[ports.ClaimRef, list[int]]] = {}
    for record in records:
        for device in record.devices:
            if device.terms is not None and not device.admin_access:
                amounts = found.setdefault(device.gpu, {}).setdefault(record.claim, [])
                amounts.append(device.terms.memory_bytes)
    known = {
        gpu: {claim: sum(amounts) if all(amounts) else 0 for claim, amounts in on.items()}
        for gpu, on in found.items()
    }
    return {gpu: on for gpu, on in known.items() if any(on.values())}


def owning_pod(
    candidates: Sequence[ids.PodUid], known: Collection[ids.PodUid]
) -> ids.PodUid | None:
    """The outermost of the pods that a process may be of which a claim is known to be of."""
    return next((pod for pod in candidates if pod in known), None)


def claim_uses(
    gpu: ids.GpuUuid, given: Mapping[ports.ClaimRef, int], held: Iterable[PodProcess], pods: Pods
) -> tuple[ClaimUse, ...]:
    """The use of each claim on a GPU that can be judged: who was given 0 cannot."""
    there = sorted(held, key=lambda one: (-one.used_bytes, one.process.pid))
    found: list[ClaimUse] = []
    for claims, theirs in _group_claims(given, pods):
        if not all(given[claim] for claim in claims):
            continue
        processes = tuple(one for one in there if one.pod in theirs)
        found += (
            ClaimUse(
                claim,
                gpu,
                sum(given[one] for one in claims),
                sum(one.used_bytes for one in processes),
                processes,
                tuple(one for one in claims if one != claim),
            )
            for claim in claims
        )
    return tuple(found)


def next_episode(before: Episode, use: ClaimUse, now_s: float) -> tuple[Episode, UsageChange]:
    """The episode after a look at `now_s`, and what is to be told of it."""
    if not use.is_over:
        return Episode(), UsageChange.ENDED if before.is_overuse else UsageChange.NOTHING
    now = replace(before, looks=before.looks + 1)
    told = replace(now, reported_bytes=use.used_bytes, reported_at_s=now_s)
    if now.is_overuse and not before.is_overuse:
        return told, UsageChange.BEGAN
    grown = use.used_bytes - before.reported_bytes
    if (
        now.is_overuse
        and grown * _TENTH >= use.allocated_bytes
        and now_s - before.reported_at_s >= AGAIN_S
    ):
        return told, UsageChange.GREW
    return now, UsageChange.NOTHING


def _group_claims(
    given: Iterable[ports.ClaimRef], pods: Pods
) -> list[tuple[tuple[ports.ClaimRef, ...], frozenset[ids.PodUid]]]:
    """The claims in groups that no pod reaches out of, with the pods of each."""
    groups: list[tuple[tuple[ports.ClaimRef, ...], frozenset[ids.PodUid]]] = []
    for claim in given:
        theirs = frozenset(pods.get(claim.uid, ()))
        joined = [group for group in groups if group[1] & theirs]
        groups = [group for group in groups if group not in joined]
        claims = tuple(one for group in joined for one in group[0])
        groups.append(((*claims, claim), theirs.union(*(group[1] for group in joined))))
    return groups
