"""Pools: the newest generation of a driver's slices, whether it is whole, and who reaches it."""

import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from driver import names
from driver.resources.core import nodes
from driver.resources.dra import attributes, slices

T = TypeVar("T")
Counter = tuple[str, str]
"""A counter set of the pool, and a counter of it."""
_Device = slices.Device
_MOST_NAMES = 4096
_UUIDS = frozenset({names.ATTR_UUID, names.ATTR_PARENT_UUID})


class _Look:
    """One for all pools that are alike, as long as there are any: it is quick to compare."""

    __slots__ = ("__weakref__", "derived")

    def __init__(self) -> None:
        self.derived: dict[Callable[[Pool], Any], Any] = {}


_LOOKS: weakref.WeakValueDictionary[Hashable, _Look] = weakref.WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class Pool:
    """The newest generation of a pool, its slices by name.

    Compared by identity: a changed pool is another object.
    """

    driver: str
    name: str
    slices: tuple[slices.Slice, ...]
    _derived: dict[Callable[["Pool"], Any], Any] = field(default_factory=dict, repr=False)

    def cached(self, make: Callable[["Pool"], T]) -> T:
        """Return the result of `make`, computed once and stored with the pool."""
        try:
            return cast("T", self._derived[make])
        except KeyError:
            value = self._derived[make] = make(self)
            return value

    def cached_for_equivalents(self, make: Callable[["Pool"], T]) -> T:
        """Return the result of `make`, computed once for all pools of one signature.

        The result must not depend on the pool's name, nor on UUIDs.
        """
        signature = self.signature
        derived = self._derived if signature is None else signature.derived
        try:
            return cast("T", derived[make])
        except KeyError:
            value = derived[make] = make(self)
            return value

    @functools.cached_property
    def complete(self) -> bool:
        """Return whether all slices of the generation are present."""
        return len(self.slices) == self.slices[0].slice_count

    @functools.cached_property
    def devices(self) -> Mapping[str, _Device]:
        """Devices by name; of two of one name the first."""
        return {
            d.name: d
            for resource_slice in reversed(self.slices)
            for d in reversed(resource_slice.devices)
        }

    @functools.cached_property
    def size(self) -> int:
        """Number of devices in its slices."""
        return sum(len(resource_slice.devices) for resource_slice in self.slices)

    @functools.cached_property
    def counters(self) -> Mapping[Counter, int]:
        """Value of each counter, in nano-units."""
        return {
            (shared.name, name): amount.nanos
            for resource_slice in self.slices
            for shared in resource_slice.counter_sets
            for name, amount in shared.counters.items()
        }

    @functools.cached_property
    def problem(self) -> str:
        """Problem of the pool as a whole; "" without one."""
        sets = [
            shared.name for resource_slice in self.slices for shared in resource_slice.counter_sets
        ]
        if twice := _repeated(sets):
            return f"counter set {twice} is there twice"
        lacking = (
            (device, key)
            for resource_slice in self.slices
            for device in resource_slice.devices
            for key, _ in counter_draws(device)
            if key not in self.counters
        )
        device, key = next(lacking, (None, ()))
        return f"device {device.name} draws on {'/'.join(key)}, not there" if device else ""

    @functools.cached_property
    def has_compatibility_groups(self) -> bool:
        """Return whether devices that draw on one counter set may exclude each other (KEP-5963)."""
        return any(
            use.groups
            for resource_slice in self.slices
            for device in resource_slice.devices
            for use in device.consumes
        )

    @functools.cached_property
    def signature(self) -> _Look | None:
        """Equal for pools that differ only in names and UUIDs of devices.

        None where devices declare themselves which nodes reach them.
        """
        if any(resource_slice.per_device for resource_slice in self.slices):
            return None
        seen = tuple(
            (resource_slice.unsupported, *map(_seen, resource_slice.devices))
            for resource_slice in self.slices
        )
        key = self.driver, seen, frozenset(self.counters.items())
        cached = _LOOKS.get(key)
        if cached is None:
            cached = _LOOKS[key] = _Look()
        return cached

    @functools.cached_property
    def has_binding_conditions(self) -> bool:
        """Return whether a device delays binding: such pools come last (KEP-5007)."""
        return any(
            device.binding for resource_slice in self.slices for device in resource_slice.devices
        )


@dataclass(frozen=True, slots=True, eq=False)
class NodePool:
    """Part of a pool that a node reaches: slices with the devices that it can use.

    `problem` says why none of them is allocated; "" without one.
    """

    pool: Pool
    slices: tuple[tuple[slices.Slice, tuple[slices.Device, ...]], ...]
    problem: str = ""


def group_pools(resource_slices: Iterable[slices.Slice]) -> tuple[Pool, ...]:
    """Pools by driver and name, slices by name: the order in which devices are preferred."""
    grouped: dict[tuple[str, str], list[slices.Slice]] = {}
    for resource_slice in resource_slices:
        grouped.setdefault((resource_slice.driver, resource_slice.pool), []).append(resource_slice)
    return tuple(newest_generation(members) for _, members in sorted(grouped.items()))


def newest_generation(members: Sequence[slices.Slice]) -> Pool:
    """The pool that slices of one driver and pool make; at least one."""
    last = max(resource_slice.generation for resource_slice in members)
    current = sorted(
        (resource_slice for resource_slice in members if resource_slice.generation == last),
        key=lambda resource_slice: resource_slice.name,
    )
    return Pool(current[0].driver, current[0].pool, tuple(current))


def node_share(pool: Pool, node: nodes.Node) -> NodePool | None:
    """Return the part of a pool that a node reaches; None without a slice of devices."""
    result = tuple(
        (resource_slice, devices)
        for resource_slice in pool.slices
        if (devices := _usable(resource_slice, node))
        or (not resource_slice.per_device and _covers(resource_slice, node))
    )
    if not result:
        return None
    return NodePool(pool, tuple(pair for pair in result if pair[1]), _problem(pool, result))


def _usable(resource_slice: slices.Slice, node: nodes.Node) -> tuple[slices.Device, ...]:
    if not resource_slice.per_device:
        return resource_slice.devices if _covers(resource_slice, node) else ()
    return tuple(d for d in resource_slice.devices if d.reach.covers(node.name, node.labels))


def _covers(resource_slice: slices.Slice, node: nodes.Node) -> bool:
    return resource_slice.reach.covers(node.name, node.labels)


def _problem(pool: Pool, result: Sequence[tuple[slices.Slice, tuple[slices.Device, ...]]]) -> str:
    if not pool.complete:
        return f"shows {len(pool.slices)} of {pool.slices[0].slice_count} slices"
    if twice := _repeated(
        device.name for resource_slice, _ in result for device in resource_slice.devices
    ):
        return f"names device {twice} twice"
    return pool.problem


def _repeated(result: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in result:
        if name in seen:
            return name
        seen.add(name)
    return ""


def counter_draws(device: slices.Device) -> Iterator[tuple[Counter, int]]:
    """Yield what a device draws on each counter, in nano-units."""
    for use in device.consumes:
        for name, amount in use.counters.items():
            yield (use.set, name), amount.nanos


def _seen(device: slices.Device) -> Hashable:
    return (
        device.name,
        # With their types, for `1` is not `true`.
        *[
            (name, type(value), _typed(value) if type(value) is tuple else value)
            for name, value in device.attributes.items()
            if not is_uuid(name)
        ],
        *[
            (name, capacity.value.nanos, capacity.policy)
            for name, capacity in device.capacity.items()
        ],
        device.taints,
        device.allow_multiple,
        *counter_draws(device),
        *[(use.set, use.groups) for use in device.consumes if use.groups],
        (device.binds_to_node, device.binding, device.failing, device.unsupported),
    )


@functools.lru_cache(maxsize=_MOST_NAMES)
def is_uuid(name: str) -> bool:
    """Return whether an attribute of that name identifies one GPU, in any domain."""
    return name.rpartition("/")[2] in _UUIDS


def _typed(versions: Iterable[attributes.Value]) -> Hashable:
    return tuple((type(version), version) for version in versions)
