"""Who is to allocate a claim: the controller, kube-scheduler, or nobody as it is (D2, D23)."""

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
"""Whether devices that match are ours to allocate, and whether any is another's."""


class Ownership(Enum):
    """Who is to allocate a claim."""

    OURS = auto()
    SHARED = auto()  # untainted devices would do as well: kube-scheduler goes first
    FOREIGN = auto()
    MIXED = auto()


class OwnershipResolver:
    """Remembers, until a pool or a class changes: claims of one template have one answer."""

    def __init__(self) -> None:
        self._generation = -1
        self._by_spec: dict[dra_requests.Spec, Ownership] = {}
        self._pools: WeakKeyDictionary[pools.Pool, dict[_Matchers, _PoolMatches]] = (
            WeakKeyDictionary()
        )

    def ownership(self, view: snapshot.Snapshot, claim: claims.Claim) -> Ownership:
        """Whose the claim is: by the devices that would do, whoever holds them now.

        Where nothing at all would do, or a selector cannot be evaluated here, the words of the
        selectors decide: a class that names our driver is ours to answer for.
        """
        if view.generation != self._generation:
            self._generation = view.generation
            self._by_spec.clear()
        if claim.spec not in self._by_spec:
            kinds = [self._request_ownership(view, claim, one) for one in claim.spec.requests]
            self._by_spec[claim.spec] = _combine(kinds)
        return self._by_spec[claim.spec]

    def managed_claims(
        self, view: snapshot.Snapshot, pod: pods.Pod, open_claims: Sequence[claims.Claim]
    ) -> tuple[claims.Claim, ...] | allocator_types.Unschedulable:
        """Those of a pod's open claims that are ours to allocate now (D2, D23)."""
        found: list[claims.Claim] = []
        for claim in open_claims:
            whose = self.ownership(view, claim)
            if whose is Ownership.MIXED:
                detail = f"claim {claim.key} also asks devices of another driver"
                return allocator_types.Unschedulable(reasons.Reason.FOREIGN_DEVICES, detail)
            leave = whose is Ownership.SHARED and not pod.verdict.passed_over
            if whose is not Ownership.FOREIGN and not leave:
                found.append(claim)
        return tuple(found)

    def _request_ownership(
        self, view: snapshot.Snapshot, claim: claims.Claim, one: dra_requests.Request
    ) -> Ownership:
        """Where an alternative is ours and another kube-scheduler's, that goes first."""
        kinds = {self._subrequest_ownership(view, claim, way) for way in one.ways}
        return kinds.pop() if len(kinds) == 1 else Ownership.SHARED

    def _subrequest_ownership(
        self, view: snapshot.Snapshot, claim: claims.Claim, way: dra_requests.Request
    ) -> Ownership:
        resolved = requests.resolve_subrequest(view, claim, way)
        if isinstance(resolved, allocator_types.Unschedulable):
            return Ownership.OURS if _names_driver(view, way) else Ownership.FOREIGN
        ours = others = False
        for found in view.pools.values():
            mine, theirs = self._pool_matches(view.driver, found, resolved)
            ours, others = ours or mine, others or theirs
        if ours:
            return Ownership.SHARED if others else Ownership.OURS
        return Ownership.OURS if not others and _names_driver(view, way) else Ownership.FOREIGN

    def _pool_matches(
        self, driver: str, found: pools.Pool, way: requests.SubRequest
    ) -> _PoolMatches:
        known = self._pools.setdefault(found, {})
        if way.matchers not in known:
            mine = [
                found.driver == driver and device.tainted_for("controller")
                for one in found.slices
                for device in one.devices
                if way.matches(found.driver, device) is True
            ]
            known[way.matchers] = any(mine), not all(mine)
        return known[way.matchers]


def _combine(kinds: Sequence[Ownership]) -> Ownership:
    if not kinds or all(kind is Ownership.FOREIGN for kind in kinds):
        return Ownership.FOREIGN
    if Ownership.FOREIGN in kinds:
        return Ownership.MIXED
    return Ownership.SHARED if Ownership.SHARED in kinds else Ownership.OURS


def _names_driver(view: snapshot.Snapshot, way: dra_requests.Request) -> bool:
    device_class = view.classes.get(way.device_class)
    words = (*(device_class.selectors if device_class else ()), *way.selectors)
    return any(f'"{view.driver}"' in text or f"'{view.driver}'" in text for text in words)
