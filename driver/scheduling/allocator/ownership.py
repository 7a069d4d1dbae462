"""Ownership of claims: allocated by the controller, by kube-scheduler, or by neither (D2, D23)."""

from collections.abc import Sequence
from enum import Enum, auto
from weakref import WeakKeyDictionary

from driver import reasons
from driver.resources.core import pods
from driver.resources.dra import claims, pools
from driver.resources.dra import requests as dra_requests
from driver.scheduling.allocator import requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import selector_match
from driver.scheduling.snapshot import snapshot

_Matchers = tuple[selector_match.Matcher, ...]
_PoolMatches = tuple[bool, bool]
"""Two flags: matching devices are ours to allocate, some are foreign."""


class Ownership(Enum):
    """Allocator of a claim."""

    OURS = auto()
    SHARED = auto()  # untainted devices match as well: kube-scheduler goes first
    FOREIGN = auto()
    MIXED = auto()


class OwnershipResolver:
    """Caches until a pool or a class changes: claims of one template have one result."""

    def __init__(self) -> None:
        self._generation = -1
        self._by_spec: dict[dra_requests.ClaimSpec, Ownership] = {}
        self._pools: WeakKeyDictionary[pools.Pool, dict[_Matchers, _PoolMatches]] = (
            WeakKeyDictionary()
        )

    def ownership(self, view: snapshot.Snapshot, claim: claims.Claim) -> Ownership:
        """Return the ownership of a claim: by the devices that match, whoever holds them now.

        If no device matches, or a selector cannot be evaluated here, the text of the selectors
        decides: a class that names our driver is ours.
        """
        if view.generation != self._generation:
            self._generation = view.generation
            self._by_spec.clear()
        if claim.spec not in self._by_spec:
            kinds = [
                self._request_ownership(view, claim, request) for request in claim.spec.requests
            ]
            self._by_spec[claim.spec] = _combine(kinds)
        return self._by_spec[claim.spec]

    def managed_claims(
        self, view: snapshot.Snapshot, pod: pods.Pod, open_claims: Sequence[claims.Claim]
    ) -> tuple[claims.Claim, ...] | allocator_types.Unschedulable:
        """Return the open claims of a pod that the controller allocates now (D2, D23)."""
        managed: list[claims.Claim] = []
        for claim in open_claims:
            ownership = self.ownership(view, claim)
            if ownership is Ownership.MIXED:
                detail = f"claim {claim.key} also asks devices of another driver"
                return allocator_types.Unschedulable(reasons.Reason.FOREIGN_DEVICES, detail)
            leave = ownership is Ownership.SHARED and not pod.verdict.was_passed_over
            if ownership is not Ownership.FOREIGN and not leave:
                managed.append(claim)
        return tuple(managed)

    def _request_ownership(
        self, view: snapshot.Snapshot, claim: claims.Claim, request: dra_requests.Request
    ) -> Ownership:
        """Return the ownership of a request: with both kinds, kube-scheduler goes first."""
        kinds = {
            self._subrequest_ownership(view, claim, subrequest)
            for subrequest in request.alternatives_or_self
        }
        return kinds.pop() if len(kinds) == 1 else Ownership.SHARED

    def _subrequest_ownership(
        self, view: snapshot.Snapshot, claim: claims.Claim, subrequest: dra_requests.Request
    ) -> Ownership:
        resolved = requests.resolve_subrequest(view, claim, subrequest)
        if isinstance(resolved, allocator_types.Unschedulable):
            return Ownership.OURS if _names_driver(view, subrequest) else Ownership.FOREIGN
        has_managed = has_foreign = False
        for pool in view.pools.values():
            managed, foreign = self._pool_matches(view.driver, pool, resolved)
            has_managed, has_foreign = has_managed or managed, has_foreign or foreign
        if has_managed:
            return Ownership.SHARED if has_foreign else Ownership.OURS
        return (
            Ownership.OURS
            if not has_foreign and _names_driver(view, subrequest)
            else Ownership.FOREIGN
        )

    def _pool_matches(
        self, driver: str, pool: pools.Pool, subrequest: requests.SubRequest
    ) -> _PoolMatches:
        matches = self._pools.setdefault(pool, {})
        if subrequest.matchers not in matches:
            managed = [
                pool.driver == driver and device.is_tainted_for("controller")
                for resource_slice in pool.slices
                for device in resource_slice.devices
                if subrequest.matches(pool.driver, device) is True
            ]
            matches[subrequest.matchers] = any(managed), not all(managed)
        return matches[subrequest.matchers]


def _combine(kinds: Sequence[Ownership]) -> Ownership:
    if not kinds or all(kind is Ownership.FOREIGN for kind in kinds):
        return Ownership.FOREIGN
    if Ownership.FOREIGN in kinds:
        return Ownership.MIXED
    return Ownership.SHARED if Ownership.SHARED in kinds else Ownership.OURS


def _names_driver(view: snapshot.Snapshot, subrequest: dra_requests.Request) -> bool:
    device_class = view.classes.get(subrequest.device_class)
    texts = (*(device_class.selectors if device_class else ()), *subrequest.selectors)
    return any(f'"{view.driver}"' in text or f"'{view.driver}'" in text for text in texts)
