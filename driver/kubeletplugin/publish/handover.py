"""Handover of a node's devices between allocators (D2). Pure.

Either allocator may act on what it read seconds ago. So during a handover no allocator gives out
the devices: each carries a taint that neither disregards. A handover lasts its full time, whatever
is requested meanwhile, and restarts in a new process: only the process that saw the taint knows how
long it has stood, and no other machine's clock is trusted.
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
    """Allocators in the stored slices: of devices that are given out, and of those in handover.

    Monitor faces belong to no allocator and do not count.
    """

    active: frozenset[str] = frozenset()
    in_handover: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HandoverHistory:
    """State that is not in the slices.

    `last_allocator`: published last, outside a handover; empty if unknown. `waited_s`: how long
    this process has known every device to be in handover; None outside one.
    """

    last_allocator: str = ""
    waited_s: float | None = None


@dataclass(frozen=True, slots=True)
class AllocatorState:
    """Allocator to publish. `in_handover`: under handover, still as that allocator's."""

    allocator: str
    in_handover: bool = False


def stored_allocators(stored: Iterable[fields.Raw]) -> StoredAllocators:
    """Return the allocators in the slices of this node."""
    active: set[str] = set()
    in_handover: set[str] = set()
    for device in _allocatable_devices(stored):
        taints = {taint["key"]: taint for taint in device.get("taints") or ()}
        allocator = taints.get(names.ALLOCATOR_TAINT, {}).get("value", "scheduler")
        (in_handover if names.HANDOVER_TAINT in taints else active).add(allocator)
    return StoredAllocators(frozenset(active), frozenset(in_handover))


def _allocatable_devices(stored: Iterable[fields.Raw]) -> Iterable[_Device]:
    for slice_ in stored:
        spec: Mapping[str, Any] = fields.mapping(slice_, "spec")
        for device in spec.get("devices") or ():
            device_type = (device.get("attributes") or {}).get(names.ATTR_TYPE, {})
            if device_type.get("string") != names.TYPE_MONITOR:
                yield device


def decide(stored: StoredAllocators, desired: str, history: HandoverHistory) -> AllocatorState:
    """Return the state to publish, from the stored slices and the desired allocator.

    A node without stored slices or history starts with the desired allocator.
    """
    active = stored.active
    underway = bool(stored.in_handover) or history.waited_s is not None
    if not active and not underway and history.last_allocator:
        # The kubelet wipes slices: the allocator seen a moment ago still counts.
        active = frozenset({history.last_allocator})
    is_over = history.waited_s is not None and history.waited_s >= HANDOVER_S
    if active <= {desired} and (is_over or not underway):
        return AllocatorState(desired)
    candidates = (
        history.last_allocator,
        *sorted(active - {desired}),
        *sorted(stored.in_handover),
        desired,
    )
    return AllocatorState(next(name for name in candidates if name in ALLOCATORS), in_handover=True)


def is_settled(stored: StoredAllocators, desired: str) -> bool:
    """Return whether only `desired` gives out devices: then a handover's time may run."""
    return stored.active <= {desired}


def with_allocator(pool: slice_builder.Pool, state: AllocatorState) -> slice_builder.Pool:
    """Return the pool as that allocator's; nothing else of the devices changes (D24)."""
    groups = (
        replace(
            group, devices=tuple(_device_with_allocator(device, state) for device in group.devices)
        )
        for group in pool.groups
    )
    return replace(pool, groups=tuple(groups))


def _device_with_allocator(device: slices.Device, state: AllocatorState) -> slices.Device:
    if names.ATTR_ALLOCATOR not in device.attributes:
        return device  # a monitor face
    taints = (
        *slice_builder.allocator_taints(state.allocator),
        *((_TAINT,) if state.in_handover else ()),
        *(taint for taint in device.taints if taint.key not in _CHANGING),
    )
    attributes = {**device.attributes, names.ATTR_ALLOCATOR: state.allocator}
    return replace(device, attributes=attributes, taints=taints)
