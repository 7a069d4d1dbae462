"""What claims hold stays as it was published (D1). Pure: pools in, a pool out.

An allocator counts a device in use by the slices of now: withdrawn or altered, it would be counted
wrongly or not at all. So such a device keeps its words, its taints and its allocator aside, until
the last claim is gone, and its GPU keeps the counters that it draws on.
"""

from collections.abc import Iterable
from dataclasses import replace

from driver import ids, names
from driver.devices import faces
from driver.resources.dra import slices
from driver.resources.publish import slice_builder

_WITHDRAWN = slices.Taint(names.WITHDRAWN_TAINT, "", "NoSchedule")


def stored_pool(found: Iterable[slices.Slice], driver: str, pool: str) -> slice_builder.Pool:
    """The pool that slices of one generation show, GPU by GPU."""
    devices: dict[ids.DeviceName, list[slices.Device]] = {}
    counters: dict[str, slices.Amounts] = {}
    for one in sorted(found, key=lambda s: s.name):
        counters |= {shared.name: shared.counters for shared in one.counter_sets}
        for device in one.devices:
            gpu = faces.gpu_name(device.name)
            if gpu is not None:
                devices.setdefault(gpu, []).append(device)
    groups = (
        slice_builder.Group(gpu, tuple(members), counters.get(gpu, {}))
        for gpu, members in devices.items()
    )
    return slice_builder.Pool(driver, pool, tuple(groups))


def retain_in_use(
    wanted: slice_builder.Pool, before: slice_builder.Pool, held: frozenset[ids.DeviceName]
) -> slice_builder.Pool:
    """`wanted`, with every device of `held` as it stands in `before`."""
    groups = {group.name: group for group in wanted.groups}
    for old in before.groups:
        if any(device.name in held for device in old.devices):
            new = groups.get(old.name, slice_builder.Group(old.name, (), {}))
            groups[old.name] = _merge_group(new, old, held)
    return replace(wanted, groups=tuple(groups[name] for name in sorted(groups)))


def _merge_group(
    new: slice_builder.Group, old: slice_builder.Group, held: frozenset[ids.DeviceName]
) -> slice_builder.Group:
    kept = {device.name: device for device in old.devices if device.name in held}
    fresh = {device.name: device for device in new.devices}
    counters = old.counters or new.counters
    order = [*fresh, *(name for name in kept if name not in fresh)]
    devices = (
        _retain_device(kept[name], fresh.get(name)) if name in kept else fresh[name]
        for name in order
    )
    return slice_builder.Group(
        old.name, tuple(one for one in devices if _has_counters(one, counters)), counters
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
    """Whether what the device draws on is there; else the whole pool would be invalid."""
    return all(use.counters.keys() <= counters.keys() for use in device.consumes)
