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

    __slots__ = ("__weakref__",)


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
        """What `make` makes of it, which is made once and goes with it."""
        try:
            return cast("T", self._derived[make])
        except KeyError:
            found = self._derived[make] = make(self)
            return found

    @functools.cached_property
    def complete(self) -> bool:
        """Whether all slices of the generation are there."""
        return len(self.slices) == self.slices[0].slice_count

    @functools.cached_property
    def devices(self) -> Mapping[str, _Device]:
        """Devices by name; of two of one name the first."""
        return {d.name: d for one in reversed(self.slices) for d in reversed(one.devices)}

    @functools.cached_property
    def size(self) -> int:
        """How many devices its slices show."""
        return sum(len(one.devices) for one in self.slices)

    @functools.cached_property
    def counters(self) -> Mapping[Counter, int]:
        """What there is of each counter, in nano-units."""
        return {
            (shared.name, name): amount.nanos
            for one in self.slices
            for shared in one.counter_sets
            for name, amount in shared.counters.items()
        }

    @functools.cached_property
    def problem(self) -> str:
        """What is wrong with the pool as a whole; empty where nothing is."""
        sets = [shared.name for one in self.slices for shared in one.counter_sets]
        if twice := _repeated(sets):
            return f"counter set {twice} is there twice"
        lacking = (
            (device, key)
            for one in self.slices
            for device in one.devices
            for key, _ in counter_draws(device)
            if key not in self.counters
        )
        device, key = next(lacking, (None, ()))
        return f"device {device.name} draws on {'/'.join(key)}, not there" if device else ""

    @functools.cached_property
    def signature(self) -> Hashable | None:
        """The same for pools that nothing tells apart but their names and UUIDs of devices.

        None where devices say themselves which nodes reach them.
        """
        if any(one.per_device for one in self.slices):
            return None
        seen = tuple((one.unsupported, *map(_seen, one.devices)) for one in self.slices)
        key = self.driver, seen, frozenset(self.counters.items())
        known = _LOOKS.get(key)
        if known is None:
            known = _LOOKS[key] = _Look()
        return known

    @functools.cached_property
    def has_binding_conditions(self) -> bool:
        """Whether a device of it makes binding wait: such pools come last (KEP-5007)."""
        return any(device.binding for one in self.slices for device in one.devices)


@dataclass(frozen=True, slots=True, eq=False)
class NodePool:
    """What a node reaches of a pool: slices with the devices that it can use.

    `problem` says why none of them is given out; empty where nothing is wrong.
    """

    pool: Pool
    slices: tuple[tuple[slices.Slice, tuple[slices.Device, ...]], ...]
    problem: str = ""


def group_pools(found: Iterable[slices.Slice]) -> tuple[Pool, ...]:
    """Pools by driver and name, slices by name: the order in which devices are preferred."""
    grouped: dict[tuple[str, str], list[slices.Slice]] = {}
    for one in found:
        grouped.setdefault((one.driver, one.pool), []).append(one)
    return tuple(newest_generation(members) for _, members in sorted(grouped.items()))


def newest_generation(members: Sequence[slices.Slice]) -> Pool:
    """The pool that slices of one driver and pool make; at least one."""
    last = max(one.generation for one in members)
    current = sorted((one for one in members if one.generation == last), key=lambda one: one.name)
    return Pool(current[0].driver, current[0].pool, tuple(current))


def node_share(pool: Pool, node: nodes.Node) -> NodePool | None:
    """What a node reaches of a pool; None where that is no slice of devices."""
    found = tuple(
        (one, devices)
        for one in pool.slices
        if (devices := _usable(one, node)) or (not one.per_device and _covers(one, node))
    )
    if not found:
        return None
    return NodePool(pool, tuple(pair for pair in found if pair[1]), _problem(pool, found))


def _usable(one: slices.Slice, node: nodes.Node) -> tuple[slices.Device, ...]:
    if not one.per_device:
        return one.devices if _covers(one, node) else ()
    return tuple(d for d in one.devices if d.reach.covers(node.name, node.labels))


def _covers(one: slices.Slice, node: nodes.Node) -> bool:
    return one.reach.covers(node.name, node.labels)


def _problem(pool: Pool, found: Sequence[tuple[slices.Slice, tuple[slices.Device, ...]]]) -> str:
    if not pool.complete:
        return f"shows {len(pool.slices)} of {pool.slices[0].slice_count} slices"
    if twice := _repeated(device.name for one, _ in found for device in one.devices):
        return f"names device {twice} twice"
    return pool.problem


def _repeated(found: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in found:
        if name in seen:
            return name
        seen.add(name)
    return ""


def counter_draws(device: slices.Device) -> Iterator[tuple[Counter, int]]:
    """What a device draws on each counter, in nano-units."""
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
        *[(name, one.value.nanos, one.policy) for name, one in device.capacity.items()],
        device.taints,
        device.allow_multiple,
        *counter_draws(device),
        (device.binds_to_node, device.binding, device.failing, device.unsupported),
    )


@functools.lru_cache(maxsize=_MOST_NAMES)
def is_uuid(name: str) -> bool:
    """Whether an attribute of that name is of one GPU alone, in whatever domain."""
    return name.rpartition("/")[2] in _UUIDS


def _typed(found: Iterable[attributes.Value]) -> Hashable:
    return tuple((type(one), one) for one in found)
