"""Server-side apply, as far as our objects need it: merge by keys, and who owns what. Pure.

A field belongs to every manager that applied it. What a manager applied before and does not any
more goes, unless another has applied it too; what another owns is changed only with force.
Writes that are no applies own nothing here.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tests.fakes.apiserver import rules

Object = dict[str, Any]
Json: TypeAlias = Any
Path = tuple[Any, ...]
"""Field names, and for an item of a keyed list the tuple of its keys' values."""
Owners = Mapping[str, frozenset[Path]]
"""By manager: the leaves it has applied, and the items of keyed lists."""

LIST_KEYS = {"devices": ("driver", "pool", "device", "shareID"), "conditions": ("type",)}
_KEYS = {key for keys in LIST_KEYS.values() for key in keys}
_NEVER_OWNED = {
    ("apiVersion",),
    ("kind",),
    *(("metadata", key) for key in ("name", "namespace", "uid", "resourceVersion")),
}


def apply(
    old: Object, body: Object, manager: str, owners: Owners, *, force: bool
) -> tuple[Object, Owners]:
    """The object and its owners afterwards. Raises the 409 of a conflict."""
    leaves = _leaves(body, ())
    mine = frozenset(leaves)
    others = {name: paths for name, paths in owners.items() if name != manager}
    taken = {
        path
        for path, value in leaves.items()
        for paths in others.values()
        if path in paths and _at(old, path) != value
    }
    if taken and not force:
        text = f"Apply failed with {len(taken)} conflicts"
        raise rules.Refusal(409, "Conflict", text)
    retained = {name: paths - taken for name, paths in others.items()}
    new = _merged(old, body, "")
    gone = owners.get(manager, frozenset()) - mine - frozenset().union(*retained.values())
    for path in sorted(gone, key=len, reverse=True):
        _remove(new, path)
    return new, {**retained, manager: mine}


def managed(owners: Owners) -> list[Object]:
    """Same as `metadata.managedFields` tells of fields that are in no list (KEP-555)."""
    return [
        {"manager": who, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": _tree(paths)}
        for who, paths in sorted(owners.items())
    ]


def _tree(paths: Iterable[Path]) -> Object:
    result: Object = {}
    for path in paths:
        position = result
        for step in path:
            position = position.setdefault(f"f:{step}", {})
    return result


def _leaves(value: Json, path: Path) -> dict[Path, Json]:
    if path in _NEVER_OWNED:
        return {}
    if isinstance(value, dict) and value:
        result: dict[Path, Json] = {}
        for key, inner in value.items():
            result |= _leaves(inner, (*path, key))
        return result
    keys = LIST_KEYS.get(str(path[-1])) if path else None
    if isinstance(value, list) and keys:
        result = {}
        for item in value:
            name = (*path, _key(item, keys))
            result |= {name: ..., **_leaves(item, name)}
        return result
    return {path: value}


def _key(item: Object, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item.get(key, "") for key in keys)


def _at(value: Json, path: Path) -> Json:
    """Return what is at a path; of a keyed item that is there, `...`."""
    for step in path:
        value = _step(value, step)
        if value is None:
            return None
    return ... if path and isinstance(path[-1], tuple) else value


def _step(value: Json, step: Json) -> Json:
    if isinstance(step, tuple):
        return next((entry for entry in value if _is(entry, step)), None)
    return value.get(step) if isinstance(value, dict) else None


def _is(item: Object, key: tuple[str, ...]) -> bool:
    names = next(keys for keys in LIST_KEYS.values() if len(keys) == len(key))
    return _key(item, names) == key


def _merged(old: Json, new: Json, name: str) -> Json:
    if isinstance(new, dict) and isinstance(old, dict):
        merged = dict(old)
        for key, value in new.items():
            merged[key] = _merged(old.get(key), value, key)
        return merged
    keys = LIST_KEYS.get(name)
    if isinstance(new, list) and isinstance(old, list) and keys:
        items = {_key(item, keys): item for item in old}
        for item in new:
            key = _key(item, keys)
            items[key] = _merged(items[key], item, "") if key in items else copy.deepcopy(item)
        return list(items.values())
    return copy.deepcopy(new)


def _remove(new: Json, path: Path) -> None:
    """Drop a leaf; an item of a keyed list only once nothing but its keys is left of it."""
    *parents, last = path
    for step in parents:
        new = _step(new, step)
        if new is None:
            return
    if not isinstance(last, tuple):
        in_item = bool(parents) and isinstance(parents[-1], tuple)
        if not (in_item and last in _KEYS):
            new.pop(last, None)
        return
    for item in [entry for entry in new if _is(entry, last)]:
        names = next(keys for keys in LIST_KEYS.values() if len(keys) == len(last))
        if not any(value for key, value in item.items() if key not in names):
            new.remove(item)
