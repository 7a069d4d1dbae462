"""Which writes make a node's ResourceSlices what they should be. Values in, values out.

A pool is read whole or not at all: consumers take the slices of its newest generation, once there
are as many as they say. So a change that touches one slice, or nothing but taints, keeps the
generation; any other writes every slice with the next one (K-3). So
does a change of the allocator, that nobody takes a part of the pool for the other's (D2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from driver import errors, names
from driver.resources import fields, publish, quantity

Object: TypeAlias = dict[str, Any]
Shape: TypeAlias = Any
"""An object reduced to what we mean by it: comparable, without versions and server's stamps."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A slice as we mean it, and the resource version under which the server holds its answer.

    The answer may lack fields that the server does not know; writing it again is of no use.
    """

    meant: Object
    version: str

    def is_of(self, found: Object) -> bool:
        """Whether `found` is that answer still."""
        return bool(self.version == found["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class Writes:
    """What to do, in this order: deletes, updates, creates. Each is a whole object.

    `meant` are the slices without what only a write needs, by name; `settled` those that are as
    they should be.
    """

    deletes: tuple[Object, ...] = ()
    updates: tuple[Object, ...] = ()
    creates: tuple[Object, ...] = ()
    meant: Mapping[str, Object] = field(default_factory=dict)
    settled: Mapping[str, Answered] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.deletes) + len(self.updates) + len(self.creates)


@dataclass(frozen=True, slots=True)
class Memory:
    """What earlier writes taught: the highest generation seen, and what the server answered."""

    generation: int = 0
    answered: Mapping[str, Answered] = field(default_factory=dict)

    def of(self, found: Object) -> Object | None:
        """What we meant by a slice that is as the server answered it; None where that is not so.

        A slice is compared to what was meant much faster than to what the server made of it.
        """
        past = self.answered.get(found["metadata"]["name"])
        return past.meant if past is not None and past.is_of(found) else None


def plan_writes(
    pool: publish.Pool,
    owner: publish.Owner,
    current: Iterable[Object],
    memory: Memory | None = None,
) -> Writes:
    """The writes from `current`, every slice of this driver and node, to the pool.

    The generation never falls below that of any slice seen, nor below `memory.generation`. Slices
    of other names or pools are left-overs: they go.
    """
    past = memory or Memory()
    found = {one["metadata"]["name"]: one for one in current}
    base = max([past.generation, *(_generation(one) for one in found.values())])
    wanted = _rendered(pool, owner, base)
    deletes = tuple(found[name] for name in sorted(found.keys() - wanted.keys()))
    missing = wanted.keys() - found.keys()
    changed = _changed(wanted, found, past)
    settled = {
        name: Answered(wanted[name], found[name]["metadata"]["resourceVersion"])
        for name in wanted.keys() & found.keys() - changed
    }
    in_place = len(changed) == 1 and not deletes and not _changes_hands(wanted, found, changed)
    if not missing and (in_place or _only_taints(wanted, found, changed, past)):
        updates = tuple(_replacing(found[name], wanted[name]) for name in sorted(changed))
        return Writes(deletes, updates, (), wanted, settled)
    fresh = _rendered(pool, owner, base + 1)
    return Writes(
        deletes,
        tuple(_replacing(found[name], one) for name, one in fresh.items() if name in found),
        tuple(one for name, one in fresh.items() if name not in found),
        fresh,
    )


def plan_withdrawal(current: Iterable[Object]) -> Writes:
    """No slice at all: what a node that offers nothing has."""
    return Writes(deletes=tuple(sorted(current, key=lambda one: str(one["metadata"]["name"]))))


def _changed(
    wanted: Mapping[str, Object], found: Mapping[str, Object], past: Memory
) -> frozenset[str]:
    """The slices that are there and are not what they should be."""
    return frozenset(
        name
        for name in wanted.keys() & found.keys()
        if not _agrees(wanted[name], found[name], past.of(found[name]))
    )


def _agrees(wanted: Object, found: Object, meant: Object | None) -> bool:
    if meant is not None:
        return meant == wanted
    same = _generation(wanted) == _generation(found)
    return same and bool(shape(wanted) == shape(found))


def _changes_hands(
    wanted: Mapping[str, Object], found: Mapping[str, Object], changed: Iterable[str]
) -> bool:
    """Whether another allocator is named than before; it is a matter of the whole pool."""
    return any(_allocators(found[name]) - _allocators(wanted[name]) for name in changed)


def _allocators(obj: Object) -> frozenset[str]:
    named = (
        device.get("attributes", {}).get(names.ATTR_ALLOCATOR, {}).get("string", "")
        for device in obj["spec"].get("devices") or ()
    )
    return frozenset(named) - {""}


def _only_taints(
    wanted: Mapping[str, Object],
    found: Mapping[str, Object],
    changed: Iterable[str],
    past: Memory,
) -> bool:
    """Whether each slice holds on its own: the devices are the same, whatever ails them."""
    for name in changed:
        meant = past.of(found[name])
        one, other = (
            (shape(wanted[name]), shape(found[name]))
            if meant is None
            else (wanted[name]["spec"], meant["spec"])
        )
        if _untainted(one) != _untainted(other):
            return False
    return True


def _untainted(spec: Shape) -> Shape:
    devices = [
        {key: value for key, value in device.items() if key != "taints"}
        for device in spec.get("devices", ())
    ]
    return {**spec, "devices": devices}


def shape(obj: fields.Raw) -> Shape:
    """What a slice says, its generation aside.

    Empty fields are absent, as the server writes them; amounts are numbers; times that the server
    filled in are left out.
    """
    meta, spec = fields.mapping(obj, "metadata"), fields.mapping(obj, "spec")
    pool = {k: v for k, v in fields.mapping(spec, "pool").items() if k != "generation"}
    owners = fields.sequence(meta, "ownerReferences")
    return _bare({**spec, "pool": pool, "owners": owners})


def generation_of(current: Iterable[Object]) -> int:
    """The highest generation there is; 0 when there is none."""
    return max((_generation(one) for one in current), default=0)


def dropped(wanted: Object, kept: Object) -> tuple[str, ...]:
    """Where the server's answer differs from what was asked; () when nowhere."""
    return tuple(_differences(shape(wanted), shape(kept), "spec"))


def _rendered(pool: publish.Pool, owner: publish.Owner, generation: int) -> dict[str, Object]:
    rendered: Sequence[Object] = publish.render(pool, owner, generation)
    return {one["metadata"]["name"]: one for one in rendered}


def _generation(obj: Object) -> int:
    return fields.integer(fields.mapping(obj["spec"], "pool", "spec"), "generation", "spec.pool")


def _replacing(found: Object, wanted: Object) -> Object:
    """`wanted` as an update of `found`: its version, and its taints' times where they hold."""
    times = {
        (device["name"], _taint(taint)): taint["timeAdded"]
        for device in found["spec"].get("devices") or []
        for taint in device.get("taints") or []
        if taint.get("timeAdded")
    }

    def timed(device: Object, taint: Object) -> Object:
        added = times.get((device["name"], _taint(taint)))
        return taint if added is None else {**taint, "timeAdded": added}

    spec = wanted["spec"]
    if "devices" in spec:
        devices = [
            {**one, "taints": [timed(one, taint) for taint in one["taints"]]}
            if "taints" in one
            else one
            for one in spec["devices"]
        ]
        spec = {**spec, "devices": devices}
    version = found["metadata"]["resourceVersion"]
    return {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": version}, "spec": spec}


def _taint(taint: Object) -> tuple[str, str, str]:
    return taint["key"], taint.get("value", ""), taint["effect"]


def _bare(value: Shape, key: str = "") -> Shape:
    """The value without empty fields and server's times, with amounts as numbers."""
    match value:
        case Mapping():
            if key == "capacity":
                return {name: _amount(one) for name, one in value.items()}
            inner = {k: _bare(v, k) for k, v in value.items() if k != "timeAdded"}
            return {k: v for k, v in inner.items() if v not in (None, [], {}, "")}
        case list() | tuple():
            return [_bare(one) for one in value]
        case _:
            return value


def _amount(value: Shape) -> Shape:
    """One capacity: its amount exactly, and whatever else stands beside it."""
    if not isinstance(value, Mapping):
        return value
    rest = {k: v for k, v in value.items() if k != "value"}
    try:
        return {"nanos": quantity.parse(value.get("value")).nanos, **rest}
    except errors.BadInput:
        return dict(value)


def _differences(wanted: Shape, kept: Shape, at: str) -> Iterable[str]:
    if isinstance(wanted, Mapping) and isinstance(kept, Mapping):
        for key in sorted(wanted.keys() | kept.keys()):
            yield from _differences(wanted.get(key), kept.get(key), f"{at}.{key}")
    elif isinstance(wanted, list) and isinstance(kept, list) and len(wanted) == len(kept):
        for index, (one, other) in enumerate(zip(wanted, kept, strict=True)):
            yield from _differences(one, other, f"{at}[{index}]")
    elif wanted != kept:
        yield at
