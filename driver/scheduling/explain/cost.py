"""What it costs that pods go. Pure."""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from driver.scheduling.allocator.capacity import node_capacity, pool_layout
from driver.scheduling.explain import holders
from driver.scheduling.snapshot import snapshot

Cost = tuple[Any, ...]
"""Lower is better; of one price all costs can be compared."""


class CostFunction(Protocol):
    """A pure function of who goes; one more pod never makes it less."""

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> Cost:
        """What it costs that these go; names apart, which decide between equals anyway."""
        ...

    def signature(self, tenant: holders.DeviceHolder) -> Hashable:
        """All that `of` sees of a tenant: nodes whose tenants look alike cost the same."""
        ...


class FewestPods:
    """Few pods, then little GPU memory taken away: `(pods, bytes)`."""

    def __init__(self, view: snapshot.Snapshot) -> None:
        self._view = view
        self._by_claim: dict[str, int] = {}

    def cost(self, leaving: Sequence[holders.DeviceHolder]) -> Cost:
        """How many they are, and the bytes of GPU memory that nobody has once they are gone."""
        free = holders.freed_claims(leaving)
        found = {one.claim: one for tenant in leaving for one in tenant.claims if one.claim in free}
        return len(leaving), sum(self._memory(one) for one in found.values())

    def signature(self, tenant: holders.DeviceHolder) -> Hashable:
        """The bytes of each of its claims, and how many pods have it."""
        return tuple(sorted((self._memory(one), len(one.users)) for one in tenant.claims))

    def _memory(self, lease: holders.HeldClaim) -> int:
        known = self._by_claim.get(lease.claim)
        if known is None:
            known = self._by_claim[lease.claim] = claim_memory(self._view, lease)
        return known


def claim_memory(view: snapshot.Snapshot, lease: holders.HeldClaim) -> int:
    """The bytes of GPU memory that a claim has; of another driver's devices none is known."""
    total = 0
    for result in lease.results:
        of = view.pools.get((result.device.driver, result.device.pool))
        face = pool_layout.get_layout(of).faces.get(result.device.device) if of else None
        if face is not None and not result.admin_access:
            total += node_capacity.device_usage(face, result.consumed, gpu=0).memory
    return total
