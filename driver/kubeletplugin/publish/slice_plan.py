"""Plans the writes of a node's ResourceSlices. Values in, values out.

Consumers read a pool whole or not at all: they take the slices of its newest generation, once all
of them are present. So a change of one slice, or of taints only, keeps the generation; any other
writes every slice with the next one (K-3). So does a change of the allocator, so that no part of
the pool is taken for the other allocator's (D2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from driver import errors, names
from driver.resources import fields, quantities
from driver.resources.publish import slice_builder

Object: TypeAlias = dict[str, Any]
Shape: TypeAlias = Any
"""A normalized object: comparable, without versions and server-set timestamps."""


@dataclass(frozen=True, slots=True)
class WrittenSlice:
    """A slice as intended, and the resource version of the server's response to its write.

    The response may lack fields the server does not know; writing it again is of no use.
    """

    intended: Object
    version: str

    def matches(self, stored: Object) -> bool:
        """Return whether a stored slice still is that response."""
        return bool(self.version == stored["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes in this order: deletes, updates, creates. Each is a whole object.

    `intended` are the slices by name, without fields only a write needs; `unchanged` those that are
    up to date.
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
    """Facts of earlier writes: the highest generation seen, and the server's responses."""

    generation: int = 0
    written: Mapping[str, WrittenSlice] = field(default_factory=dict)

    def intended(self, stored: Object) -> Object | None:
        """Return the intended form of a slice that still is the server's response; else None.

        Comparing with the intended form is much faster than with the server's form.
        """
        written = self.written.get(stored["metadata"]["name"])
        return written.intended if written is not None and written.matches(stored) else None


def plan_writes(
    pool: slice_builder.Pool,
    owner: slice_builder.Owner,
    current: Iterable[Object],
    memory: WriteHistory | None = None,
) -> Writes:
    """Return the writes from `current`, every slice of this driver and node, to the pool.

    The generation never falls below that of any slice seen, nor below `memory.generation`. Slices
    of other names or pools are deleted.
    """
    history = memory or WriteHistory()
    stored = {slice_["metadata"]["name"]: slice_ for slice_ in current}
    base = max([history.generation, *(_generation(slice_) for slice_ in stored.values())])
    desired = _render_by_name(pool, owner, base)
    deletes = tuple(stored[name] for name in sorted(stored.keys() - desired.keys()))
    missing = desired.keys() - stored.keys()
    changed = _changed_slices(desired, stored, history)
    settled = {
        name: WrittenSlice(desired[name], stored[name]["metadata"]["resourceVersion"])
        for name in desired.keys() & stored.keys() - changed
    }
    in_place = (
        len(changed) == 1 and not deletes and not _changes_allocator(desired, stored, changed)
    )
    if not missing and (in_place or _changes_taints_only(desired, stored, changed, history)):
        updates = tuple(_render_update(stored[name], desired[name]) for name in sorted(changed))
        return Writes(deletes, updates, (), desired, settled)
    fresh = _render_by_name(pool, owner, base + 1)
    return Writes(
        deletes,
        tuple(
            _render_update(stored[name], slice_) for name, slice_ in fresh.items() if name in stored
        ),
        tuple(slice_ for name, slice_ in fresh.items() if name not in stored),
        fresh,
    )


def plan_withdrawal(current: Iterable[Object]) -> Writes:
    """Return the writes that delete every slice."""
    return Writes(
        deletes=tuple(sorted(current, key=lambda slice_: str(slice_["metadata"]["name"])))
    )


def _changed_slices(
    desired: Mapping[str, Object], stored: Mapping[str, Object], history: WriteHistory
) -> frozenset[str]:
    """Return the stored slices that are not up to date."""
    return frozenset(
        name
        for name in desired.keys() & stored.keys()
        if not _is_equal(desired[name], stored[name], history.intended(stored[name]))
    )


def _is_equal(desired: Object, stored: Object, intended: Object | None) -> bool:
    if intended is not None:
        return intended == desired
    same = _generation(desired) == _generation(stored)
    return same and bool(normalize(desired) == normalize(stored))


def _changes_allocator(
    desired: Mapping[str, Object], stored: Mapping[str, Object], changed: Iterable[str]
) -> bool:
    """Return whether the allocator changes, which concerns the whole pool."""
    return any(_allocators(stored[name]) - _allocators(desired[name]) for name in changed)


def _allocators(obj: Object) -> frozenset[str]:
    named = (
        device.get("attributes", {}).get(names.ATTR_ALLOCATOR, {}).get("string", "")
        for device in obj["spec"].get("devices") or ()
    )
    return frozenset(named) - {""}


def _changes_taints_only(
    desired: Mapping[str, Object],
    stored: Mapping[str, Object],
    changed: Iterable[str],
    history: WriteHistory,
) -> bool:
    """Return whether each slice stands alone: its devices differ in taints only."""
    for name in changed:
        intended = history.intended(stored[name])
        first, second = (
            (normalize(desired[name]), normalize(stored[name]))
            if intended is None
            else (desired[name]["spec"], intended["spec"])
        )
        if _without_taints(first) != _without_taints(second):
            return False
    return True


def _without_taints(spec: Shape) -> Shape:
    devices = [
        {key: value for key, value in device.items() if key != "taints"}
        for device in spec.get("devices", ())
    ]
    return {**spec, "devices": devices}


def normalize(obj: fields.Raw) -> Shape:
    """Return a slice's content without its generation, for comparison.

    Empty fields are absent, as the server writes them; amounts are numbers; times set by the server
    are left out.
    """
    meta, spec = fields.mapping(obj, "metadata"), fields.mapping(obj, "spec")
    pool = {k: v for k, v in fields.mapping(spec, "pool").items() if k != "generation"}
    owners = fields.sequence(meta, "ownerReferences")
    return _normalize({**spec, "pool": pool, "owners": owners})


def highest_generation(current: Iterable[Object]) -> int:
    """Return the highest generation; 0 if there is none."""
    return max((_generation(slice_) for slice_ in current), default=0)


def dropped_fields(requested: Object, stored: Object) -> tuple[str, ...]:
    """Return the paths where the server's response differs from the request; () if none."""
    return tuple(_differences(normalize(requested), normalize(stored), "spec"))


def _render_by_name(
    pool: slice_builder.Pool, owner: slice_builder.Owner, generation: int
) -> dict[str, Object]:
    rendered: Sequence[Object] = slice_builder.render(pool, owner, generation)
    return {slice_["metadata"]["name"]: slice_ for slice_ in rendered}


def _generation(obj: Object) -> int:
    return fields.integer(fields.mapping(obj["spec"], "pool", "spec"), "generation", "spec.pool")


def _render_update(stored: Object, desired: Object) -> Object:
    """Return `desired` as an update of the stored slice: its version, and times of kept taints."""
    times = {
        (device["name"], _taint_key(taint)): taint["timeAdded"]
        for device in stored["spec"].get("devices") or []
        for taint in device.get("taints") or []
        if taint.get("timeAdded")
    }

    def timed(device: Object, taint: Object) -> Object:
        added = times.get((device["name"], _taint_key(taint)))
        return taint if added is None else {**taint, "timeAdded": added}

    spec = desired["spec"]
    if "devices" in spec:
        devices = [
            {**device, "taints": [timed(device, taint) for taint in device["taints"]]}
            if "taints" in device
            else device
            for device in spec["devices"]
        ]
        spec = {**spec, "devices": devices}
    version = stored["metadata"]["resourceVersion"]
    return {
        **desired,
        "metadata": {**desired["metadata"], "resourceVersion": version},
        "spec": spec,
    }


def _taint_key(taint: Object) -> tuple[str, str, str]:
    return taint["key"], taint.get("value", ""), taint["effect"]


def _normalize(value: Shape, key: str = "") -> Shape:
    """Return the value without empty fields and server-set times, with amounts as numbers."""
    match value:
        case Mapping():
            if key == "capacity":
                return {name: _normalize_capacity(item) for name, item in value.items()}
            inner = {k: _normalize(v, k) for k, v in value.items() if k != "timeAdded"}
            return {k: v for k, v in inner.items() if v not in (None, [], {}, "")}
        case list() | tuple():
            return [_normalize(item) for item in value]
        case _:
            return value


def _normalize_capacity(value: Shape) -> Shape:
    """Return a capacity with its exact amount, and its other fields."""
    if not isinstance(value, Mapping):
        return value
    rest = {k: v for k, v in value.items() if k != "value"}
    try:
        return {"nanos": quantities.parse(value.get("value")).nanos, **rest}
    except errors.BadInput:
        return dict(value)


def _differences(requested: Shape, stored: Shape, path: str) -> Iterable[str]:
    if requested == stored:
        return
    if isinstance(requested, Mapping) and isinstance(stored, Mapping):
        for key in sorted(requested.keys() | stored.keys()):
            yield from _differences(requested.get(key), stored.get(key), f"{path}.{key}")
    elif isinstance(requested, list) and isinstance(stored, list) and len(requested) == len(stored):
        for index, (first, second) in enumerate(zip(requested, stored, strict=True)):
            yield from _differences(first, second, f"{path}[{index}]")
    else:
        yield path
