"""Ownership of claims: allocated by the controller, by kube-scheduler, or by neither (D2, D23)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from weakref import WeakKeyDictionary

from driver import names, reasons
from driver.resources.core import pods
from driver.resources.dra import claims, pools, slices
from driver.resources.dra import requests as dra_requests
from driver.scheduling.allocator import requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import selector_match
from driver.scheduling.snapshot import snapshot

_Matchers = tuple[selector_match.Matcher, ...]
_PoolMatches = tuple[bool, bool]
"""Two flags: matching devices are ours to allocate, some are kube-scheduler's."""


class Ownership(Enum):
    """Allocator of a claim."""

    OURS = auto()
    SHARED = auto()  # kube-scheduler's devices match as well: it goes first
    FOREIGN = auto()
    MIXED = auto()


@dataclass(frozen=True, slots=True)
class ClaimSplit:
    """Open claims of a pod by who allocates them now.

    `scheduler` are kube-scheduler's as far as the allocator can judge them: claims with fields that
    it does not know are left out, and those that kube-scheduler makes for extended resources.
    """

    controller: tuple[claims.Claim, ...]
    scheduler: tuple[claims.Claim, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.controller)

    def workload(
        self, pod: pods.Pod, allocated_claims: tuple[claims.Claim, ...]
    ) -> allocator_types.Workload:
        """Return the pod with its claims, as the allocator decides on it."""
        return allocator_types.Workload(
            pod, self.controller, allocated_claims, scheduler_claims=self.scheduler
        )


class OwnershipResolver:
    """Caches until a pool or a class changes: claims of one template have one result.

    Devices of whatever driver are the controller's by the allocator taint, which their slices or a
    DeviceTaintRule show.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._by_spec: dict[dra_requests.ClaimSpec, Ownership] = {}
        self._pools: WeakKeyDictionary[pools.Pool, dict[_Matchers, _PoolMatches]] = (
            WeakKeyDictionary()
        )

    def ownership(self, view: snapshot.Snapshot, claim: claims.Claim) -> Ownership:
        """Return the ownership of a claim: by the devices that match, whoever holds them now.

        If no device matches, or a selector cannot be evaluated here, the text of the selectors
        decides: a class that names a managed driver is ours.
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

    def split_claims(
        self, view: snapshot.Snapshot, pod: pods.Pod, open_claims: Sequence[claims.Claim]
    ) -> ClaimSplit | allocator_types.Unschedulable:
        """Return the open claims of a pod by who allocates them now (D2, D23)."""
        managed: list[claims.Claim] = []
        others: list[claims.Claim] = []
        for claim in open_claims:
            if claim.for_extended_resources:
                continue
            ownership = self.ownership(view, claim)
            if ownership is Ownership.MIXED:
                return self._mixed_claim(view, claim)
            leave = ownership is Ownership.SHARED and not pod.verdict.was_passed_over
            if ownership is not Ownership.FOREIGN and not leave:
                managed.append(claim)
            elif not requests.unsupported_fields(claim):
                others.append(claim)
        return ClaimSplit(tuple(managed), tuple(others))

    def _mixed_claim(
        self, view: snapshot.Snapshot, claim: claims.Claim
    ) -> allocator_types.Unschedulable:
        """Return why nobody can allocate a claim: part of it is kube-scheduler's."""
        by_allocator: dict[bool, list[str]] = {}
        drivers: set[str] = set()
        for request in claim.spec.requests:
            foreign = self._request_ownership(view, claim, request) is Ownership.FOREIGN
            by_allocator.setdefault(foreign, []).append(request.name)
            if foreign:
                drivers.update(self._matching_drivers(view, claim, request))
        named = f" ({', '.join(sorted(drivers))})" if drivers else ""
        text = (
            f"kube-scheduler allocates the devices of request {', '.join(by_allocator[True])}"
            f"{named}, the controller those of {', '.join(by_allocator[False])}, and one of them "
            "has to allocate the whole claim"
        )
        return requests.unschedulable_claim(reasons.Reason.FOREIGN_DEVICES, claim, text)

    def _matching_drivers(
        self, view: snapshot.Snapshot, claim: claims.Claim, request: dra_requests.Request
    ) -> Iterator[str]:
        """Yield the drivers with a device that meets the request."""
        for subrequest in request.alternatives_or_self:
            resolved = requests.resolve_subrequest(view, claim, subrequest)
            if not isinstance(resolved, allocator_types.Unschedulable):
                yield from (
                    pool.driver
                    for pool in view.pools.values()
                    if any(self._pool_matches(view, pool, resolved))
                )

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
            managed, foreign = self._pool_matches(view, pool, resolved)
            has_managed, has_foreign = has_managed or managed, has_foreign or foreign
        if has_managed:
            return Ownership.SHARED if has_foreign else Ownership.OURS
        return (
            Ownership.OURS
            if not has_foreign and _names_driver(view, subrequest)
            else Ownership.FOREIGN
        )

    def _pool_matches(
        self, view: snapshot.Snapshot, pool: pools.Pool, subrequest: requests.SubRequest
    ) -> _PoolMatches:
        matches = self._pools.setdefault(pool, {})
        if subrequest.matchers not in matches:
            managed = [
                device.is_tainted_for("controller")
                for resource_slice in pool.slices
                for device in resource_slice.devices
                if subrequest.matches(pool.driver, device) is True
                and not (pool.driver in view.managed_drivers and _is_between(device))
            ]
            matches[subrequest.matchers] = any(managed), not all(managed)
        return matches[subrequest.matchers]


def _combine(kinds: Sequence[Ownership]) -> Ownership:
    """Return the ownership of a claim: kube-scheduler's if it can allocate the whole of it."""
    if Ownership.FOREIGN in kinds:
        return Ownership.MIXED if Ownership.OURS in kinds else Ownership.FOREIGN
    if not kinds:
        return Ownership.FOREIGN
    return Ownership.SHARED if Ownership.SHARED in kinds else Ownership.OURS


def _is_between(device: slices.Device) -> bool:
    """Return whether nobody allocates a device: it passes from one allocator to the other."""
    return not device.is_tainted_for("controller") and any(
        taint.key == names.HANDOVER_TAINT for taint in device.taints
    )


def _names_driver(view: snapshot.Snapshot, subrequest: dra_requests.Request) -> bool:
    device_class = view.classes.get(subrequest.device_class)
    texts = (*(device_class.selectors if device_class else ()), *subrequest.selectors)
    return any(
        f'"{driver}"' in text or f"'{driver}'" in text
        for driver in view.managed_drivers
        for text in texts
    )
