"""Patches of an object: merge, strategic merge, JSON patch. Pure; inputs are not changed.

Strategic merge knows the merge keys of the lists we patch (`patchMergeKey` in the API's types);
every other list is replaced as a whole, as the server does for lists without one.
"""

import copy
from typing import Any, TypeAlias

Object = dict[str, Any]
Json: TypeAlias = Any
"""Any JSON value."""

MERGE_KEYS = {
    "status.reservedFor": "uid",
    "status.conditions": "type",
    "metadata.ownerReferences": "uid",
    "spec.schedulingGates": "name",
    "webhooks": "name",
}
PRIMITIVE_SETS = {"metadata.finalizers"}
_DELETE_FROM = "$deleteFromPrimitiveList/"


def merge(target: Json, patch: Json) -> Json:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target: Json, patch: Json, path: str = "") -> Json:
    """Strategic merge patch, with `$patch: delete` and `$deleteFromPrimitiveList`."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            result[name] = [v for v in result.get(name, []) if v not in value]
        elif key.startswith("$"):
            continue  # ordering directives
        elif value is None:
            result.pop(key, None)
        else:
            location = f"{path}.{key}" if path else key
            result[key] = _strategic_value(result.get(key), value, location)
    return result


def _strategic_value(target: Json, value: Json, location: str) -> Json:
    if isinstance(value, list) and location in MERGE_KEYS:
        return _merge_list(target or [], value, MERGE_KEYS[location], location)
    if isinstance(value, list) and location in PRIMITIVE_SETS:
        return [*(target or []), *(v for v in value if v not in (target or []))]
    return strategic(target, value, location)


def _merge_list(target: list[Object], patch: list[Object], key: str, location: str) -> list[Object]:
    result = [] if {"$patch": "replace"} in patch else list(target)
    for item in patch:
        if key not in item:
            continue  # a directive for the whole list
        index = next((i for i, old in enumerate(result) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            result = [old for old in result if old.get(key) != item[key]]
        elif index is None:
            result.append(copy.deepcopy(item))
        else:
            result[index] = strategic(result[index], item, location)
    return result


def json_patch(target: Object, operations: list[Object]) -> Object:
    """RFC 6902: add, remove, replace, test. Raises ValueError when one does not apply."""
    result = copy.deepcopy(target)
    for operation in operations:
        *parents, last = [_unescaped(p) for p in operation["path"].split("/")[1:]]
        position: Json = result
        for part in parents:
            position = position[int(part)] if isinstance(position, list) else position[part]
        _operate(operation, position, last)
    return result


def _operate(operation: Object, position: Json, last: str) -> None:
    key: Json = last
    if isinstance(position, list):
        key = len(position) if last == "-" else int(last)
    match operation["op"]:
        case "test":
            if position[key] != operation["value"]:
                raise ValueError(f"test failed at {operation['path']}")
        case "remove":
            del position[key]
        case "add" if isinstance(position, list):
            position.insert(key, operation["value"])
        case "add" | "replace":
            position[key] = operation["value"]
        case other:
            raise ValueError(f"unknown operation {other}")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
