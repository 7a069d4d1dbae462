"""Allocators of devices, against the DeviceTaintRules of that moment. Pure.

The API server numbers the versions of all objects in one order. So for each allocation it is known
which rules there were: whose device it was, or that nobody was to allocate it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from driver import names
from driver.resources.dra import claims, slices
from driver.scheduling.device_ownership import rule_plan
from tests.fakes import history

Raw = Mapping[str, Any]
CONTROLLER, SCHEDULER, NOBODY, OTHER = "controller", "scheduler", "nobody", "other"
_SCHEDULER = "kube-scheduler"
_CONTROLLER = "ration-controller"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule from a version on; without a taint it is gone. `at_s` is when that was seen."""

    version: int
    name: str
    selector: rule_plan.DeviceSelector
    taint: str | None
    at_s: float


@dataclass(frozen=True, slots=True)
class Allocation:
    """Devices that `allocator` gave a claim, at a version."""

    version: int
    claim: str
    allocator: str
    devices: tuple[claims.DeviceId, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class Late:
    """An allocation in a handover, `after_s` after it began, by the allocator before it."""

    claim: str
    allocator: str
    after_s: float


class AllocatorHistory(history.History):
    """History of claims that also knows who allocated; feed it `see_rule` too."""

    def __init__(self, results: Iterable[slices.Slice]) -> None:
        super().__init__(results)
        self.allocations: list[Allocation] = []
        self._rules: list[Rule] = []
        self._allocated: set[str] = set()
        self.now_s = 0.0
        """The time of what is shown next, in seconds."""

    def see_rule(self, version: int, raw: Raw, at_s: float, *, deleted: bool = False) -> None:
        """Take one version of a DeviceTaintRule."""
        spec = raw["spec"]
        chosen = spec.get("deviceSelector") or {}
        selector = rule_plan.DeviceSelector(
            chosen.get("driver"), chosen.get("pool"), chosen.get("device")
        )
        taint = None if deleted else str(spec["taint"]["key"])
        self._rules.append(Rule(version, raw["metadata"]["name"], selector, taint, at_s))

    def see(self, version: int, raw: Raw, *, deleted: bool = False) -> None:
        """Take one version of a claim, in order."""
        super().see(version, raw, deleted=deleted)
        claim = claims.parse(dict(raw))
        if deleted or claim.allocation is None:
            self._allocated.discard(claim.uid)
        elif claim.uid not in self._allocated:
            self._allocated.add(claim.uid)
            devices = tuple(result.device for result in claim.allocation.results)
            self.allocations.append(
                Allocation(version, claim.key, allocator_of(raw), devices, self.now_s)
            )

    def by(self, allocator: str) -> int:
        """Return the number of allocations of an allocator."""
        return sum(entry.allocator == allocator for entry in self.allocations)

    def wrong(self) -> list[str]:
        """Return the allocations of devices that were the other allocator's, or its before that."""
        return [
            f"{entry.claim} version {entry.version}: {device.pool}/{device.device} by "
            f"{entry.allocator}, {owner}'s"
            for entry in self.allocations
            for device in entry.devices
            for owner in [self._owner(device, entry.version)[0]]
            if owner != entry.allocator
        ]

    def late(self) -> list[Late]:
        """Return the allocations by an allocator whose handover to the other had begun."""
        result = []
        for entry in self.allocations:
            for device in entry.devices:
                owner, since_s = self._owner(device, entry.version)
                if since_s is not None and owner == entry.allocator:
                    result.append(Late(entry.claim, entry.allocator, entry.at_s - since_s))
        return result

    def _owner(self, device: claims.DeviceId, version: int) -> tuple[str, float | None]:
        """Return the allocator of a device at a version; in a handover the last one, since when."""
        identity = rule_plan.DeviceSelector(device.driver, device.pool, device.device)
        taints: dict[str, str] = {}
        last, since_s = SCHEDULER, None
        for rule in sorted(self._rules, key=lambda rule: rule.version):
            if rule.version > version:
                break
            if not rule.selector.covers(identity):
                continue
            taints.pop(rule.name, None)
            if rule.taint is not None:
                taints[rule.name] = rule.taint
            owner = _owner(taints.values())
            if owner != NOBODY:
                last, since_s = owner, None
            elif since_s is None:
                since_s = rule.at_s
        return last, since_s


def _owner(taints: Iterable[str]) -> str:
    keys = set(taints)
    if names.HANDOVER_TAINT in keys:
        return NOBODY
    return CONTROLLER if names.ALLOCATOR_TAINT in keys else SCHEDULER


def allocator_of(raw: Raw) -> str:
    """Return who wrote the allocation, by the API server's record of field managers."""
    for entry in raw["metadata"].get("managedFields", ()):
        if "f:allocation" in entry.get("fieldsV1", {}).get("f:status", {}):
            manager = str(entry["manager"])
            if manager.startswith(_CONTROLLER):
                return CONTROLLER
            return SCHEDULER if manager == _SCHEDULER else OTHER
    return OTHER
