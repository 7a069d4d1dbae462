"""ResourceSlices both ways: rendered by the kubelet plugin, parsed by the controller.

`parse(render(x)) == x` for what we publish. Fields of the API that this reader does not weigh are
not dropped silently: a device that carries one says so in `beyond`, and is left alone.
"""

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from driver import errors, ids, names
from driver.resources import fields, quantities
from driver.resources.core import node_selectors
from driver.resources.dra import attributes as dra_attributes
from driver.resources.dra import capacities, interning

_SLICE = frozenset(
    {
        *("driver", "pool", "nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"),
        *("devices", "sharedCounters", "partitionTypeAttribute"),
    }
)
_DEVICE = frozenset(
    {
        *("name", "attributes", "capacity", "consumesCounters", "taints"),
        *("nodeName", "nodeSelector", "allNodes", "allowMultipleAllocations"),
        *("bindsToNode", "bindingConditions", "bindingFailureConditions"),
    }
)
"""What is weighed; a device of which more is said, or whose slice says more, is left alone."""
_REACH = frozenset({"nodeName", "nodeSelector", "allNodes"})
_MOST_TAINTS = 4096
_NO_GROUPS: frozenset[str] = frozenset()
Raw = dict[str, object]
Amounts = Mapping[str, quantities.Quantity]


@dataclass(frozen=True, slots=True)
class Taint:
    """A device taint; `added` is filled by the server."""

    key: str
    value: str
    effect: str
    added: str = ""

    @property
    def blocks(self) -> bool:
        """Return whether it keeps new claims away: NoExecute as NoSchedule, None not (KEP-5055)."""
        return self.effect in {"NoSchedule", "NoExecute"}


@dataclass(frozen=True, slots=True)
class CounterUse:
    """Consumption of a counter set of the pool by a device (KEP-4815).

    Devices that draw on one counter set are allocated together only if they all have one of their
    `groups` in common, or all have none (KEP-5963).
    """

    set: str
    counters: Amounts
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Counters that devices of a pool share (KEP-4815)."""

    name: str
    counters: Amounts


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a slice.

    `reach` is where it can be used, in a slice that says so of each device (KEP-4815).
    `binding` and `failing` are conditions that binding waits for (KEP-5007). `beyond` names the
    fields that this version does not weigh.
    """

    name: ids.DeviceName
    attributes: dra_attributes.Attributes = field(default_factory=dict)
    capacity: Mapping[str, capacities.Capacity] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allow_multiple: bool = False
    consumes: tuple[CounterUse, ...] = ()
    reach: node_selectors.DeviceReach = node_selectors.NOWHERE
    binds_to_node: bool = False
    binding: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()

    def is_tainted_for(self, allocator: str) -> bool:
        """Return whether D2's taint assigns the device to an allocator."""
        return any(
            taint.key == names.ALLOCATOR_TAINT and taint.value == allocator for taint in self.taints
        )


@dataclass(frozen=True, slots=True)
class Slice:
    """One ResourceSlice. `reach` is where its devices can be used, unless `per_device` is true."""

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    reach: node_selectors.DeviceReach
    devices: tuple[Device, ...]
    per_device: bool = False
    counter_sets: tuple[CounterSet, ...] = ()
    unsupported: tuple[str, ...] = ()
    uid: str = ""
    version: str = ""

    @property
    def node(self) -> ids.NodeName | None:
        """The one node of its devices, where they are local to one."""
        return None if self.per_device else self.reach.node

    def device_reach(self, device: Device) -> node_selectors.DeviceReach:
        """Return the nodes that can use a device of the slice."""
        return device.reach if self.per_device else self.reach


def render_device(device: Device) -> Raw:
    """Return it as the API writes it."""
    shown: Raw = {
        "name": device.name,
        "attributes": {
            key: dra_attributes.render(value) for key, value in device.attributes.items()
        },
        "capacity": {key: capacities.render(amount) for key, amount in device.capacity.items()},
    }
    if device.allow_multiple:
        shown["allowMultipleAllocations"] = True
    if device.consumes:
        shown["consumesCounters"] = [_render_counter_use(use) for use in device.consumes]
    if device.taints:
        shown["taints"] = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in device.taints
        ]
    return shown


def _render_counter_use(use: CounterUse) -> Raw:
    groups = {"compatibilityGroups": sorted(use.groups)} if use.groups else {}
    return {"counterSet": use.set, "counters": _render_counters(use.counters), **groups}


def render_counter_set(counter_set: CounterSet) -> Raw:
    """Return it as the API writes it."""
    return {"name": counter_set.name, "counters": _render_counters(counter_set.counters)}


def _render_counters(result: Amounts) -> Raw:
    return {key: {"value": amount.text} for key, amount in result.items()}


def parse(obj: fields.Raw) -> Slice:
    """Read a ResourceSlice.

    Raises:
        BadInput: a field has another type than the API's.
    """
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    pool = fields.mapping(spec, "pool", "spec")
    return Slice(
        name=fields.required_text(meta, "name", "metadata"),
        driver=fields.required_text(spec, "driver", "spec"),
        pool=fields.required_text(pool, "name", "spec.pool"),
        generation=fields.integer(pool, "generation", "spec.pool"),
        slice_count=fields.integer(pool, "resourceSliceCount", "spec.pool", default=1),
        reach=node_selectors.parse_reach(spec, "spec"),
        per_device=fields.flag(spec, "perDeviceNodeSelection", "spec"),
        devices=tuple(parse_device(d, path) for path, d in fields.objects(spec, "devices", "spec")),
        counter_sets=tuple(
            CounterSet(
                fields.required_text(item, "name", path),
                _shared_counters(fields.mapping(item, "counters", path), f"{path}.counters"),
            )
            for path, item in fields.objects(spec, "sharedCounters", "spec")
        ),
        unsupported=_beyond(spec, _SLICE),
        uid=fields.text(meta, "uid", "metadata"),
        version=fields.text(meta, "resourceVersion", "metadata"),
    )


def parse_device(obj: fields.Raw, path: str) -> Device:
    """Read one device; parts that are equal to those of others are shared. Raises BadInput."""
    values, beyond = _parse_attributes(fields.mapping(obj, "attributes", path), path)
    beyond += _beyond(obj, _DEVICE)
    has = obj.keys()
    return Device(
        name=ids.DeviceName(sys.intern(fields.required_text(obj, "name", path))),
        attributes=values,
        capacity=capacities.parse_all(fields.mapping(obj, "capacity", path), f"{path}.capacity"),
        taints=parse_taints(obj, path) if "taints" in has else (),
        allow_multiple=fields.flag(obj, "allowMultipleAllocations", path),
        consumes=parse_consumed_counters(obj, path) if "consumesCounters" in has else (),
        reach=_parse_reach(obj, path),
        binds_to_node=fields.flag(obj, "bindsToNode", path),
        binding=fields.texts(obj, "bindingConditions", path) if "bindingConditions" in has else (),
        failing=(
            fields.texts(obj, "bindingFailureConditions", path)
            if "bindingFailureConditions" in has
            else ()
        ),
        unsupported=tuple(beyond),
    )


def _parse_reach(obj: fields.Raw, path: str) -> node_selectors.DeviceReach:
    return (
        node_selectors.NOWHERE
        if obj.keys().isdisjoint(_REACH)
        else node_selectors.parse_reach(obj, path)
    )


def _parse_attributes(obj: fields.Raw, path: str) -> tuple[dra_attributes.Attributes, list[str]]:
    """The attributes, and those that are not understood."""
    values: dict[str, dra_attributes.Value] = {}
    beyond: list[str] = []
    read, intern = dra_attributes.parse, sys.intern
    for key, item in obj.items():
        value = read(item if type(item) is dict else fields.mapping(obj, key, path))
        if value is None:
            beyond.append(f"attributes[{key}]")
        else:
            values[intern(key)] = value
    return values, beyond


def parse_consumed_counters(obj: fields.Raw, field_path: str) -> tuple[CounterUse, ...]:
    """Read `consumesCounters` of a device. Raises BadInput."""
    counter_uses: list[CounterUse] = []
    for path, item in fields.objects(obj, "consumesCounters", field_path):
        owner = fields.required_text(item, "counterSet", path)
        counters = _shared_counters(fields.mapping(item, "counters", path), f"{path}.counters")
        groups = _NO_GROUPS
        if "compatibilityGroups" in item:
            groups = frozenset(fields.texts(item, "compatibilityGroups", path))
        counter_uses.append(CounterUse(sys.intern(owner), counters, groups))
    return tuple(counter_uses)


def _beyond(obj: fields.Raw, supported: frozenset[str]) -> tuple[str, ...]:
    if obj.keys() <= supported:
        return ()
    return tuple(key for key in obj if key not in supported and obj[key])


def _parse_counters(obj: fields.Raw, path: str) -> Amounts:
    return {
        key: quantities.parse(fields.mapping(obj, key, path).get("value"), f"{path}[{key}]")
        for key in obj
    }


_shared_counters = interning.interning_reader(_parse_counters)


def parse_taints(obj: fields.Raw, path: str) -> tuple[Taint, ...]:
    """Read `taints` of a device; equal ones are one object. Raises BadInput."""
    result = [taint for _, taint in fields.objects(obj, "taints", path)]
    try:
        return _shared_taints(tuple([tuple(item.items()) for item in result]))
    except (errors.BadInput, TypeError):
        return tuple(
            parse_taint(item, f"{path}.taints[{index}]") for index, item in enumerate(result)
        )


@functools.lru_cache(maxsize=_MOST_TAINTS)
def _shared_taints(result: tuple[tuple[tuple[str, object], ...], ...]) -> tuple[Taint, ...]:
    return tuple(parse_taint(dict(item), "") for item in result)


def parse_taint(obj: fields.Raw, path: str) -> Taint:
    """Read a device taint. Raises BadInput."""
    return Taint(
        key=fields.required_text(obj, "key", path),
        value=fields.text(obj, "value", path),
        effect=fields.text(obj, "effect", path),
        added=fields.text(obj, "timeAdded", path),
    )
