"""Costs of evictions. Pure."""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from driver.scheduling.allocator.capacity import node_capacity, pool_layout
from driver.scheduling.explain import holders
from driver.scheduling.snapshot import snapshot

Cost = tuple[Any, ...]
"""Lower is better; costs of one function are comparable."""


class CostFunction(Protocol):
    """Pure function of the evicted pods; one more pod never makes it less."""

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> Cost:
        """Return the cost of an eviction, without names, which break ties anyway."""
        ...

    def signature(self, holder: holders.DeviceHolder) -> Hashable:
        """Return all that `cost` reads of a holder: nodes with equal signatures cost the same."""
        ...


class FewestPods:
    """Few pods, then little GPU memory freed: `(pods, bytes)`."""

    def __init__(self, view: snapshot.Snapshot) -> None:
        self._view = view
        self._by_claim: dict[str, int] = {}

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> Cost:
        """Return the number of pods, and the bytes of GPU memory that their eviction frees."""
        free = holders.freed_claims(leaving)
        freed_claims = {
            held_claim.claim: held_claim
            for holder in leaving
            for held_claim in holder.claims
            if held_claim.claim in free
        }
        return len(leaving), sum(self._memory(held_claim) for held_claim in freed_claims.values())

    def signature(self, holder: holders.DeviceHolder) -> Hashable:
        """Return the bytes of each of its claims, and how many pods have it."""
        return tuple(
            sorted(
                (self._memory(held_claim), len(held_claim.users)) for held_claim in holder.claims
            )
        )

    def _memory(self, held_claim: holders.HeldClaim) -> int:
        memory = self._by_claim.get(held_claim.claim)
        if memory is None:
            memory = self._by_claim[held_claim.claim] = claim_memory(self._view, held_claim)
        return memory


def claim_memory(view: snapshot.Snapshot, held_claim: holders.HeldClaim) -> int:
    """Return the bytes of GPU memory that a claim has; 0 for other drivers' devices."""
    total = 0
    for result in held_claim.results:
        pool = view.pools.get((result.device.driver, result.device.pool))
        face = pool_layout.get_layout(pool).faces.get(result.device.device) if pool else None
        if face is not None and not result.admin_access:
            total += node_capacity.device_usage(face, result.consumed, gpu=0).memory
    return total
