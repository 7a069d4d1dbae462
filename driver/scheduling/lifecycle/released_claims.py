"""Delay after claims lost their allocation, before they are allocated elsewhere. Pure.

kube-scheduler's PreBind that met a conflict reads the claim again and writes the pod into
reservedFor, without checking that the allocation is still the one it filtered by (bindClaim,
dynamicresources.go). So an allocation elsewhere is written only when such an attempt is over.
"""

from collections.abc import Iterable

from driver import ids
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold

SETTLE_S = 5.0
"""PreBind tries at most five times, 10 ms apart, with two API calls each."""


class ReleasedClaims:
    """Fed with every change of a claim; times are seconds since the epoch.

    Its state may be lost: see `set_claim`.
    """

    def __init__(self) -> None:
        self._held: dict[ids.Key, bool] = {}
        self._released: dict[ids.Key, float] = {}
        self._reserved: set[ids.Key] = set()
        self._unreserved: dict[ids.Key, float] = {}

    def set_claim(self, key: ids.Key, claim: claims.Claim | None, now: float) -> None:
        """Set or delete a claim.

        A claim first seen without an allocation, but with the mark that precedes every release, may
        have been released a moment ago, by another leader.
        """
        if claim is None:
            self._held.pop(key, None)
            self._released.pop(key, None)
            self._reserved.discard(key)
            self._unreserved.pop(key, None)
            return
        self._record_reserved(key, claim, now)
        held = claim.allocation is not None
        held_before = self._held.get(key, claim.released)
        self._held[key] = held
        if held:
            self._released.pop(key, None)
        elif held_before:
            self._released[key] = now

    def _record_reserved(self, key: ids.Key, claim: claims.Claim, now: float) -> None:
        if claim.allocation is None or allocation_hold.is_reserved(claim):
            self._unreserved.pop(key, None)
        elif key in self._reserved:
            self._unreserved[key] = now
        if allocation_hold.is_reserved(claim):
            self._reserved.add(key)
        else:
            self._reserved.discard(key)

    def clear_delay_s(self, held: Iterable[claims.Claim], now: float) -> float:
        """Return the seconds until unreserved allocations may be cleared; 0 or less: now.

        An attempt that saw the pod's entry binds without a write.
        """
        moments = (self._unreserved.get(claim.key) for claim in held)
        return max((then + SETTLE_S - now for then in moments if then is not None), default=0.0)

    def allocate_delay_s(
        self, open_claims: Iterable[claims.Claim], created: float, now: float
    ) -> float:
        """Return the seconds until these claims may be allocated for a pod; 0 or less: now.

        `created` is when the pod was made: no attempt for it can have begun before.
        """
        moments = (self._released.get(claim.key) for claim in open_claims)
        waits = (then + SETTLE_S - now for then in moments if then is not None and created <= then)
        return max(waits, default=0.0)
