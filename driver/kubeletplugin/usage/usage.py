"""GPU memory used by claims that share a GPU, compared to their allocated amounts (D10). Pure.

MPS limits each client process and time-slicing limits none, so a claim is measured by the sum over
its processes. A claim's own MPS daemon has limits that the claim sets for its processes, on
unshared devices: there is no share to exceed.
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
"""The claims that share a GPU, with their allocated bytes; 0 if unknown."""
Pods = Mapping[ids.ClaimUid, Collection[ids.PodUid]]
UseKey = tuple[ids.ClaimUid, ids.GpuUuid]


@dataclass(frozen=True, slots=True)
class PodProcess:
    """A process on a GPU, with its pod."""

    process: ports.GpuProcess
    pod: ids.PodUid

    @property
    def used_bytes(self) -> int:
        """Return the used bytes, at least."""
        return self.process.used_bytes or 0


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim's use of a GPU, in bytes; `processes` by size, largest first.

    A pod's processes do not tell which of its claims they use: claims that a pod has together are
    counted as one, and `others` are those. Unreported use of a process counts as 0.
    """

    claim: ports.ClaimRef
    gpu: ids.GpuUuid
    allocated_bytes: int
    used_bytes: int
    processes: tuple[PodProcess, ...] = ()
    others: tuple[ports.ClaimRef, ...] = ()

    @property
    def key(self) -> UseKey:
        """Return the claim's UID and the GPU."""
        return self.claim.uid, self.gpu

    @property
    def is_over(self) -> bool:
        """Return whether it exceeds the allocated amount."""
        return self.used_bytes > self.allocated_bytes


class UsageChange(Enum):
    """Change of a claim's use since the last observation."""

    NOTHING = "nothing"
    BEGAN = "began"
    GREW = "grew"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Episode:
    """`looks` consecutive observations above the share; what was reported last, and when."""

    looks: int = 0
    reported_bytes: int = 0
    reported_at_s: float = 0.0

    @property
    def is_overuse(self) -> bool:
        """Return whether it is overuse, and not a moment between two readings."""
        return self.looks >= LOOKS


def shared_gpus(records: Iterable[checkpoint.Record]) -> Shares:
    """Return the shared GPUs on which at least one claim has an allocated amount."""
    amounts_by_gpu: dict[ids.GpuUuid, dict[ports.ClaimRef, list[int]]] = {}
    for record in records:
        for device in record.devices:
            if device.terms is not None and not device.admin_access:
                amounts = amounts_by_gpu.setdefault(device.gpu, {}).setdefault(record.claim, [])
                amounts.append(device.terms.memory_bytes)
    totals = {
        gpu: {claim: sum(amounts) if all(amounts) else 0 for claim, amounts in by_claim.items()}
        for gpu, by_claim in amounts_by_gpu.items()
    }
    return {gpu: by_claim for gpu, by_claim in totals.items() if any(by_claim.values())}


def owning_pod(
    candidates: Sequence[ids.PodUid], claim_pods: Collection[ids.PodUid]
) -> ids.PodUid | None:
    """Return the outermost candidate pod of a process that is a known claim's."""
    return next((pod for pod in candidates if pod in claim_pods), None)


def claim_uses(
    gpu: ids.GpuUuid,
    allocated: Mapping[ports.ClaimRef, int],
    processes_on_gpu: Iterable[PodProcess],
    pods: Pods,
) -> tuple[ClaimUse, ...]:
    """Return the use of each claim on a GPU; claims with an amount of 0 cannot be judged."""
    by_size = sorted(processes_on_gpu, key=lambda item: (-item.used_bytes, item.process.pid))
    uses: list[ClaimUse] = []
    for claims, own_pods in _group_claims(allocated, pods):
        if not all(allocated[claim] for claim in claims):
            continue
        processes = tuple(item for item in by_size if item.pod in own_pods)
        uses += (
            ClaimUse(
                claim,
                gpu,
                sum(allocated[item] for item in claims),
                sum(item.used_bytes for item in processes),
                processes,
                tuple(item for item in claims if item != claim),
            )
            for claim in claims
        )
    return tuple(uses)


def next_episode(previous: Episode, use: ClaimUse, now_s: float) -> tuple[Episode, UsageChange]:
    """Return the episode after an observation at `now_s`, and the change to report."""
    if not use.is_over:
        return Episode(), UsageChange.ENDED if previous.is_overuse else UsageChange.NOTHING
    current = replace(previous, looks=previous.looks + 1)
    reported = replace(current, reported_bytes=use.used_bytes, reported_at_s=now_s)
    if current.is_overuse and not previous.is_overuse:
        return reported, UsageChange.BEGAN
    grown = use.used_bytes - previous.reported_bytes
    if (
        current.is_overuse
        and grown * _TENTH >= use.allocated_bytes
        and now_s - previous.reported_at_s >= AGAIN_S
    ):
        return reported, UsageChange.GREW
    return current, UsageChange.NOTHING


def _group_claims(
    refs: Iterable[ports.ClaimRef], pods: Pods
) -> list[tuple[tuple[ports.ClaimRef, ...], frozenset[ids.PodUid]]]:
    """Group claims such that no pod has claims of two groups, with the pods of each."""
    groups: list[tuple[tuple[ports.ClaimRef, ...], frozenset[ids.PodUid]]] = []
    for claim in refs:
        own_pods = frozenset(pods.get(claim.uid, ()))
        joined = [group for group in groups if group[1] & own_pods]
        groups = [group for group in groups if group not in joined]
        claims = tuple(member for group in joined for member in group[0])
        groups.append(((*claims, claim), own_pods.union(*(group[1] for group in joined))))
    return groups
