"""Devices in use stay as published (D1). Pure: pools in, a pool out.

Allocators count a device in use by the current slices: if withdrawn or altered, it would be counted
wrongly or not at all. So such a device keeps its published form, except its taints and its
allocator, until the last claim is gone, and its GPU keeps the counters it consumes.
"""

from collections.abc import Iterable
from dataclasses import replace

from driver import ids, names
from driver.devices import faces
from driver.resources.dra import slices
from driver.resources.publish import slice_builder

_WITHDRAWN = slices.Taint(names.WITHDRAWN_TAINT, "", "NoSchedule")


def stored_pool(stored: Iterable[slices.Slice], driver: str, pool: str) -> slice_builder.Pool:
    """Return the pool in slices of one generation, grouped by GPU."""
    devices: dict[ids.DeviceName, list[slices.Device]] = {}
    counters: dict[str, slices.Amounts] = {}
    for slice_ in sorted(stored, key=lambda s: s.name):
        counters |= {shared.name: shared.counters for shared in slice_.counter_sets}
        for device in slice_.devices:
            gpu = faces.gpu_name(device.name)
            if gpu is not None:
                devices.setdefault(gpu, []).append(device)
    groups = (
        slice_builder.Group(gpu, tuple(members), counters.get(gpu, {}))
        for gpu, members in devices.items()
    )
    return slice_builder.Pool(driver, pool, tuple(groups))


def retain_in_use(
    desired: slice_builder.Pool, published: slice_builder.Pool, held: frozenset[ids.DeviceName]
) -> slice_builder.Pool:
    """Return `desired`, with every device of `held` as it is in `published`."""
    groups = {group.name: group for group in desired.groups}
    for old in published.groups:
        if any(device.name in held for device in old.devices):
            new = groups.get(old.name, slice_builder.Group(old.name, (), {}))
            groups[old.name] = _merge_group(new, old, held)
    return replace(desired, groups=tuple(groups[name] for name in sorted(groups)))


def _merge_group(
    new: slice_builder.Group, old: slice_builder.Group, held: frozenset[ids.DeviceName]
) -> slice_builder.Group:
    retained = {device.name: device for device in old.devices if device.name in held}
    fresh = {device.name: device for device in new.devices}
    counters = old.counters or new.counters
    order = [*fresh, *(name for name in retained if name not in fresh)]
    devices = (
        _retain_device(retained[name], fresh.get(name)) if name in retained else fresh[name]
        for name in order
    )
    return slice_builder.Group(
        old.name, tuple(device for device in devices if _has_counters(device, counters)), counters
    )


def _retain_device(old: slices.Device, new: slices.Device | None) -> slices.Device:
    if new is None:
        taints = tuple(t for t in old.taints if t.key in names.OWN_TAINTS)
        return replace(old, taints=(*(replace(t, added="") for t in taints), _WITHDRAWN))
    allocator = new.attributes.get(names.ATTR_ALLOCATOR)
    attributes = {**old.attributes}
    if allocator is not None:
        attributes[names.ATTR_ALLOCATOR] = allocator
    return replace(old, attributes=attributes, taints=new.taints)


def _has_counters(device: slices.Device, counters: slices.Amounts) -> bool:
    """Return whether the device's counters exist; else the whole pool would be invalid."""
    return all(use.counters.keys() <= counters.keys() for use in device.consumes)
