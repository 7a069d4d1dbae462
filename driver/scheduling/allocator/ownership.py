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
_Says = tuple[bool, bool]
"""Whether devices that match are ours to allocate, and whether any is another's."""


class Ownership(Enum):
    """Who is to allocate a claim."""

    OURS = auto()
    SHARED = auto()  # untainted devices would do as well: kube-scheduler goes first
    FOREIGN = auto()
    MIXED = auto()


class Owners:
    """Remembers, until a pool or a class changes: claims of one template have one answer."""

    def __init__(self) -> None:
        self._world = -1
        self._known: dict[dra_requests.Spec, Ownership] = {}
        self._pools: WeakKeyDictionary[pools.Pool, dict[_Matchers, _Says]] = WeakKeyDictionary()

    def of(self, view: snapshot.Snapshot, claim: claims.Claim) -> Ownership:
        """Whose the claim is: by the devices that would do, whoever holds them now.

        Where nothing at all would do, or a selector cannot be evaluated here, the words of the
        selectors decide: a class that names our driver is ours to answer for.
        """
        if view.generation != self._world:
            self._world = view.generation
            self._known.clear()
        if claim.spec not in self._known:
            kinds = [self._of_request(view, claim, one) for one in claim.spec.requests]
            self._known[claim.spec] = _together(kinds)
        return self._known[claim.spec]

    def mine(
        self, view: snapshot.Snapshot, pod: pods.Pod, open_claims: Sequence[claims.Claim]
    ) -> tuple[claims.Claim, ...] | allocator_types.NoFit:
        """Those of a pod's open claims that are ours to allocate now (D2, D23)."""
        found: list[claims.Claim] = []
        for claim in open_claims:
            whose = self.of(view, claim)
            if whose is Ownership.MIXED:
                detail = f"claim {claim.key} also asks devices of another driver"
                return allocator_types.NoFit(reasons.Reason.FOREIGN_DEVICES, detail)
            leave = whose is Ownership.SHARED and not pod.verdict.passed_over
            if whose is not Ownership.FOREIGN and not leave:
                found.append(claim)
        return tuple(found)

    def _of_request(
        self, view: snapshot.Snapshot, claim: claims.Claim, one: dra_requests.Request
    ) -> Ownership:
        """Where an alternative is ours and another kube-scheduler's, that goes first."""
        kinds = {self._of_way(view, claim, way) for way in one.ways}
        return kinds.pop() if len(kinds) == 1 else Ownership.SHARED

    def _of_way(
        self, view: snapshot.Snapshot, claim: claims.Claim, way: dra_requests.Request
    ) -> Ownership:
        resolved = requests.resolve(view, claim, way)
        if isinstance(resolved, allocator_types.NoFit):
            return Ownership.OURS if _names_us(view, way) else Ownership.FOREIGN
        ours = others = False
        for found in view.pools.values():
            mine, theirs = self._in_pool(view.driver, found, resolved)
            ours, others = ours or mine, others or theirs
        if ours:
            return Ownership.SHARED if others else Ownership.OURS
        return Ownership.OURS if not others and _names_us(view, way) else Ownership.FOREIGN

    def _in_pool(self, driver: str, found: pools.Pool, way: requests.Way) -> _Says:
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


def _together(kinds: Sequence[Ownership]) -> Ownership:
    if not kinds or all(kind is Ownership.FOREIGN for kind in kinds):
        return Ownership.FOREIGN
    if Ownership.FOREIGN in kinds:
        return Ownership.MIXED
    return Ownership.SHARED if Ownership.SHARED in kinds else Ownership.OURS


def _names_us(view: snapshot.Snapshot, way: dra_requests.Request) -> bool:
    device_class = view.classes.get(way.device_class)
    words = (*(device_class.selectors if device_class else ()), *way.selectors)
    return any(f'"{view.driver}"' in text or f"'{view.driver}'" in text for text in words)
