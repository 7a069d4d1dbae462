"""Plan of writes on the controller's DeviceTaintRules. Pure.

A rule shows either the allocator taint, and the controller allocates the devices, or the handover
taint, and nobody does. The invariant: in the API's history of rules, between the last moment at
which a device was kube-scheduler's (no rule) and the first at which it is the controller's, or the
other way round, it carries the handover taint for `HANDOVER_S`. Readers of the rules are at most
25 s behind, so both allocators never give out the same device.

Each write keeps it by itself, whatever other rules select the device:

- the handover taint may be shown at any time;
- a rule that has shown it for `HANDOVER_S` may show the allocator taint, or go;
- a rule that an allocator rule covers may be created with the allocator taint, or go, at once: no
  device of the covering rule has been kube-scheduler's for `HANDOVER_S`.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

HANDOVER_S = 30.0
"""Seconds; as long as a handover of the own driver's devices (D2)."""
_DIGITS = 10


class RuleTaint(StrEnum):
    """Taint that a rule shows; OTHER: neither of the two, after an edit by another client."""

    ALLOCATOR = "allocator"
    HANDOVER = "handover"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class DeviceSelector:
    """Selector of a rule; None matches every name."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def covers(self, other: "DeviceSelector") -> bool:
        """Return whether it selects every device that the other may select."""
        return (
            self.driver in (None, other.driver)
            and self.pool in (None, other.pool)
            and self.device in (None, other.device)
        )

    def __str__(self) -> str:
        driver = "any driver" if self.driver is None else f"driver {self.driver}"
        return driver if self.pool is None else f"{driver}, pool {self.pool}"


@dataclass(frozen=True, slots=True)
class AllocatorRule:
    """A rule of the controller as stored.

    `selector` is None for a rule that selects no device. `seen_s`: seconds for which this process
    has seen it unchanged. `acknowledged`: Kubernetes is known to act on rules.
    """

    name: str
    selector: DeviceSelector | None
    taint: RuleTaint
    seen_s: float = 0.0
    acknowledged: bool = True

    @property
    def is_handed_over(self) -> bool:
        """Return whether it has shown the handover taint for `HANDOVER_S`."""
        return self.taint is RuleTaint.HANDOVER and self.seen_s >= HANDOVER_S


@dataclass(frozen=True, slots=True)
class Create:
    """Create the rule of a selector."""

    selector: DeviceSelector
    taint: RuleTaint


@dataclass(frozen=True, slots=True)
class SetTaint:
    """Replace the taint of a rule."""

    rule: AllocatorRule
    taint: RuleTaint


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a rule."""

    rule: AllocatorRule


Write = Create | SetTaint | Delete


def rule_name(selector: DeviceSelector) -> str:
    """Return the name of a selector's rule: a DNS subdomain, a different one for each selector."""
    if selector.pool is None:
        return f"ration-driver-{selector.driver}"
    digest = hashlib.sha256(selector.pool.encode()).hexdigest()[:_DIGITS]
    return f"ration-pool-{selector.driver}-{digest}"


def plan_writes(
    desired: AbstractSet[DeviceSelector], rules: Collection[AllocatorRule]
) -> tuple[Write, ...]:
    """Return the writes that are due; any of them may fail while the others succeed.

    Creations come first: a rule that takes over from another is there before that one changes.
    """
    current = {
        rule.selector: rule
        for rule in rules
        if rule.selector is not None
        and rule.selector in desired
        and rule.name == rule_name(rule.selector)
    }
    creations = tuple(_creations(desired - current.keys(), rules))
    # A selector without a rule is in the way of no removal while its name is taken.
    covering = {selector: rule.taint for selector, rule in current.items()} | {
        creation.selector: RuleTaint.HANDOVER for creation in creations
    }
    changes = (
        _write_to_keep(rule)
        if rule.selector is not None and current.get(rule.selector) is rule
        else _write_to_remove(rule, covering)
        for rule in rules
    )
    return (*creations, *(write for write in changes if write is not None))


def _creations(
    missing: Iterable[DeviceSelector], rules: Collection[AllocatorRule]
) -> Iterator[Create]:
    # A rule whose selector was edited keeps its name until its handover is over.
    taken = {rule.name for rule in rules}
    active = [rule.selector for rule in rules if rule.taint is RuleTaint.ALLOCATOR]
    for selector in sorted(missing, key=rule_name):
        if rule_name(selector) not in taken:
            covered = any(entry is not None and entry.covers(selector) for entry in active)
            yield Create(selector, RuleTaint.ALLOCATOR if covered else RuleTaint.HANDOVER)


def _write_to_keep(rule: AllocatorRule) -> Write | None:
    if rule.taint is RuleTaint.OTHER:
        return SetTaint(rule, RuleTaint.HANDOVER)
    if rule.is_handed_over and rule.acknowledged:
        return SetTaint(rule, RuleTaint.ALLOCATOR)
    return None


def _write_to_remove(
    rule: AllocatorRule, desired: Mapping[DeviceSelector, RuleTaint]
) -> Write | None:
    """Return the write towards the removal of a rule, by the rules that stay or come."""
    covering = [
        taint
        for selector, taint in desired.items()
        if rule.selector is not None and selector.covers(rule.selector)
    ]
    if RuleTaint.ALLOCATOR in covering:
        return Delete(rule)
    if covering:
        return None
    if rule.taint is not RuleTaint.HANDOVER:
        return SetTaint(rule, RuleTaint.HANDOVER)
    return Delete(rule) if rule.is_handed_over else None
