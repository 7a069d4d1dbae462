"""How a node's devices pass from one allocator to the other (D2). Pure.

Either allocator may act on what it read seconds ago. So between the two nobody gives out the
devices for a while: every one of them carries a taint that nobody disregards. A handover that has
begun lasts its whole time, whatever is wanted meanwhile, and begins anew in a new process: how
long the taint has stood is known for sure only to who saw it, and no clock of another machine
is trusted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from driver import names
from driver.resources import fields
from driver.resources.dra import slices
from driver.resources.publish import slice_builder

HANDOVER_S = 30.0
"""Caches of kube-scheduler are seconds behind, those of our controller 25 s at most."""
ALLOCATORS = ("controller", "scheduler")
_TAINT = slices.Taint(names.HANDOVER_TAINT, "", "NoSchedule")
_CHANGING = frozenset({names.ALLOCATOR_TAINT, names.HANDOVER_TAINT})
_Device: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredAllocators:
    """Whose the stored devices are: of those that are given out, and of those that are not now.

    Monitor faces are nobody's to give and do not count.
    """

    active: frozenset[str] = frozenset()
    in_handover: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HandoverHistory:
    """What the slices do not tell.

    `last`: who was published last, outside a handover; empty where that is not known. `waited_s`:
    for how long this process has known every device to be under handover; None outside one.
    """

    last_allocator: str = ""
    waited_s: float | None = None


@dataclass(frozen=True, slots=True)
class AllocatorState:
    """What the slices are to show. `handing`: under handover, still as that allocator's."""

    allocator: str
    in_handover: bool = False


def stored_allocators(stored: Iterable[fields.Raw]) -> StoredAllocators:
    """What slices of this node show."""
    given: set[str] = set()
    handed: set[str] = set()
    for device in _allocatable_devices(stored):
        taints = {taint["key"]: taint for taint in device.get("taints") or ()}
        allocator = taints.get(names.ALLOCATOR_TAINT, {}).get("value", "scheduler")
        (handed if names.HANDOVER_TAINT in taints else given).add(allocator)
    return StoredAllocators(frozenset(given), frozenset(handed))


def _allocatable_devices(stored: Iterable[fields.Raw]) -> Iterable[_Device]:
    for one in stored:
        spec: Mapping[str, Any] = fields.mapping(one, "spec")
        for device in spec.get("devices") or ():
            kind = (device.get("attributes") or {}).get(names.ATTR_TYPE, {})
            if kind.get("string") != names.TYPE_MONITOR:
                yield device


def decide(found: StoredAllocators, wanted: str, past: HandoverHistory) -> AllocatorState:
    """What to show, of what is stored and who is to allocate.

    A node of whose devices nothing is stored or remembered begins as it is wanted.
    """
    given = found.active
    underway = bool(found.in_handover) or past.waited_s is not None
    if not given and not underway and past.last_allocator:
        # The kubelet wipes slices: who was seen to give the devices out a moment ago still counts.
        given = frozenset({past.last_allocator})
    over = past.waited_s is not None and past.waited_s >= HANDOVER_S
    if given <= {wanted} and (over or not underway):
        return AllocatorState(wanted)
    before = (past.last_allocator, *sorted(given - {wanted}), *sorted(found.in_handover), wanted)
    return AllocatorState(next(one for one in before if one in ALLOCATORS), in_handover=True)


def is_settled(found: StoredAllocators, wanted: str) -> bool:
    """Whether nobody but `wanted` gives out a device: only then may a handover's time run."""
    return found.active <= {wanted}


def with_allocator(pool: slice_builder.Pool, shown: AllocatorState) -> slice_builder.Pool:
    """The pool as that allocator's; of the devices nothing else changes (D24)."""
    groups = (
        replace(group, devices=tuple(_device_with_allocator(one, shown) for one in group.devices))
        for group in pool.groups
    )
    return replace(pool, groups=tuple(groups))


def _device_with_allocator(device: slices.Device, shown: AllocatorState) -> slices.Device:
    if names.ATTR_ALLOCATOR not in device.attributes:
        return device  # a monitor face
    taints = (
        *slice_builder.allocator_taints(shown.allocator),
        *((_TAINT,) if shown.in_handover else ()),
        *(taint for taint in device.taints if taint.key not in _CHANGING),
    )
    attributes = {**device.attributes, names.ATTR_ALLOCATOR: shown.allocator}
    return replace(device, attributes=attributes, taints=taints)
