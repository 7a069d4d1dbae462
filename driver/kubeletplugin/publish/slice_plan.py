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
from driver.resources import fields, quantities
from driver.resources.publish import slice_builder

Object: TypeAlias = dict[str, Any]
Shape: TypeAlias = Any
"""An object reduced to what we mean by it: comparable, without versions and server's stamps."""


@dataclass(frozen=True, slots=True)
class WrittenSlice:
    """A slice as we mean it, and the resource version under which the server holds its answer.

    The answer may lack fields that the server does not know; writing it again is of no use.
    """

    intended: Object
    version: str

    def matches(self, found: Object) -> bool:
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
    intended: Mapping[str, Object] = field(default_factory=dict)
    unchanged: Mapping[str, WrittenSlice] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.deletes) + len(self.updates) + len(self.creates)


@dataclass(frozen=True, slots=True)
class WriteHistory:
    """What earlier writes taught: the highest generation seen, and what the server answered."""

    generation: int = 0
    written: Mapping[str, WrittenSlice] = field(default_factory=dict)

    def intended(self, found: Object) -> Object | None:
        """What we meant by a slice that is as the server answered it; None where that is not so.

        A slice is compared to what was meant much faster than to what the server made of it.
        """
        past = self.written.get(found["metadata"]["name"])
        return past.intended if past is not None and past.matches(found) else None


def plan_writes(
    pool: slice_builder.Pool,
    owner: slice_builder.Owner,
    current: Iterable[Object],
    memory: WriteHistory | None = None,
) -> Writes:
    """The writes from `current`, every slice of this driver and node, to the pool.

    The generation never falls below that of any slice seen, nor below `memory.generation`. Slices
    of other names or pools are left-overs: they go.
    """
    past = memory or WriteHistory()
    found = {one["metadata"]["name"]: one for one in current}
    base = max([past.generation, *(_generation(one) for one in found.values())])
    wanted = _render_by_name(pool, owner, base)
    deletes = tuple(found[name] for name in sorted(found.keys() - wanted.keys()))
    missing = wanted.keys() - found.keys()
    changed = _changed_slices(wanted, found, past)
    settled = {
        name: WrittenSlice(wanted[name], found[name]["metadata"]["resourceVersion"])
        for name in wanted.keys() & found.keys() - changed
    }
    in_place = len(changed) == 1 and not deletes and not _changes_allocator(wanted, found, changed)
    if not missing and (in_place or _changes_taints_only(wanted, found, changed, past)):
        updates = tuple(_render_update(found[name], wanted[name]) for name in sorted(changed))
        return Writes(deletes, updates, (), wanted, settled)
    fresh = _render_by_name(pool, owner, base + 1)
    return Writes(
        deletes,
        tuple(_render_update(found[name], one) for name, one in fresh.items() if name in found),
        tuple(one for name, one in fresh.items() if name not in found),
        fresh,
    )


def plan_withdrawal(current: Iterable[Object]) -> Writes:
    """No slice at all: what a node that offers nothing has."""
    return Writes(deletes=tuple(sorted(current, key=lambda one: str(one["metadata"]["name"]))))


def _changed_slices(
    wanted: Mapping[str, Object], found: Mapping[str, Object], past: WriteHistory
) -> frozenset[str]:
    """The slices that are there and are not what they should be."""
    return frozenset(
        name
        for name in wanted.keys() & found.keys()
        if not _is_equal(wanted[name], found[name], past.intended(found[name]))
    )


def _is_equal(wanted: Object, found: Object, meant: Object | None) -> bool:
    if meant is not None:
        return meant == wanted
    same = _generation(wanted) == _generation(found)
    return same and bool(normalize(wanted) == normalize(found))


def _changes_allocator(
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


def _changes_taints_only(
    wanted: Mapping[str, Object],
    found: Mapping[str, Object],
    changed: Iterable[str],
    past: WriteHistory,
) -> bool:
    """Whether each slice holds on its own: the devices are the same, whatever ails them."""
    for name in changed:
        meant = past.intended(found[name])
        one, other = (
            (normalize(wanted[name]), normalize(found[name]))
            if meant is None
            else (wanted[name]["spec"], meant["spec"])
        )
        if _without_taints(one) != _without_taints(other):
            return False
    return True


def _without_taints(spec: Shape) -> Shape:
    devices = [
        {key: value for key, value in device.items() if key != "taints"}
        for device in spec.get("devices", ())
    ]
    return {**spec, "devices": devices}


def normalize(obj: fields.Raw) -> Shape:
    """What a slice says, its generation aside.

    Empty fields are absent, as the server writes them; amounts are numbers; times that the server
    filled in are left out.
    """
    meta, spec = fields.mapping(obj, "metadata"), fields.mapping(obj, "spec")
    pool = {k: v for k, v in fields.mapping(spec, "pool").items() if k != "generation"}
    owners = fields.sequence(meta, "ownerReferences")
    return _normalize({**spec, "pool": pool, "owners": owners})


def highest_generation(current: Iterable[Object]) -> int:
    """The highest generation there is; 0 when there is none."""
    return max((_generation(one) for one in current), default=0)


def dropped_fields(wanted: Object, kept: Object) -> tuple[str, ...]:
    """Where the server's answer differs from what was asked; () when nowhere."""
    return tuple(_differences(normalize(wanted), normalize(kept), "spec"))


def _render_by_name(
    pool: slice_builder.Pool, owner: slice_builder.Owner, generation: int
) -> dict[str, Object]:
    rendered: Sequence[Object] = slice_builder.render(pool, owner, generation)
    return {one["metadata"]["name"]: one for one in rendered}


def _generation(obj: Object) -> int:
    return fields.integer(fields.mapping(obj["spec"], "pool", "spec"), "generation", "spec.pool")


def _render_update(found: Object, wanted: Object) -> Object:
    """`wanted` as an update of `found`: its version, and its taints' times where they hold."""
    times = {
        (device["name"], _taint_key(taint)): taint["timeAdded"]
        for device in found["spec"].get("devices") or []
        for taint in device.get("taints") or []
        if taint.get("timeAdded")
    }

    def timed(device: Object, taint: Object) -> Object:
        added = times.get((device["name"], _taint_key(taint)))
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


def _taint_key(taint: Object) -> tuple[str, str, str]:
    return taint["key"], taint.get("value", ""), taint["effect"]


def _normalize(value: Shape, key: str = "") -> Shape:
    """The value without empty fields and server's times, with amounts as numbers."""
    match value:
        case Mapping():
            if key == "capacity":
                return {name: _normalize_capacity(one) for name, one in value.items()}
            inner = {k: _normalize(v, k) for k, v in value.items() if k != "timeAdded"}
            return {k: v for k, v in inner.items() if v not in (None, [], {}, "")}
        case list() | tuple():
            return [_normalize(one) for one in value]
        case _:
            return value


def _normalize_capacity(value: Shape) -> Shape:
    """One capacity: its amount exactly, and whatever else stands beside it."""
    if not isinstance(value, Mapping):
        return value
    rest = {k: v for k, v in value.items() if k != "value"}
    try:
        return {"nanos": quantities.parse(value.get("value")).nanos, **rest}
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
