"""Attributes of devices (DeviceAttribute): one value each, or a list of one type (KEP-5491)."""

import functools
import sys
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from driver.devices import attributes
from driver.resources import fields

T = TypeVar("T")
Value = attributes.Value | tuple[attributes.Value, ...]
Attributes = Mapping[str, Value]
"""By `id`, which is in the driver's own domain, or `domain/id`."""

_MOST_VERSIONS = 4096
_LISTS = {"bools": bool, "ints": int, "strings": str, "versions": str}


@functools.lru_cache(maxsize=_MOST_VERSIONS)
def _version(text: str) -> attributes.Version:
    return attributes.Version(text)


_PLAIN: Mapping[tuple[str, type], Callable[[Any], Value]] = {
    ("version", str): _version,
    ("int", int): int,
    ("bool", bool): bool,
}
"""How a value is taken of which nothing else is said."""


def parse(obj: fields.Raw) -> Value | None:
    """Read a value; None where it is of a kind that is not known here.

    Equal texts are one object: thousands of devices say the same.
    """
    if len(obj) == 1:
        [(kind, value)] = obj.items()
        if kind == "string" and type(value) is str:  # most are
            return sys.intern(value)
        plain = _PLAIN.get((kind, type(value)))
        if plain is not None:
            return plain(value)
    return _parse_any(obj)


def _parse_any(obj: fields.Raw) -> Value | None:
    match dict(obj):
        case {"bool": bool(value)}:
            return value
        case {"int": int(value)}:
            return value
        case {"string": str(value)}:
            return value
        case {"version": str(value)}:
            return _version(value)
        case _:
            return _parse_list(obj)


def _parse_list(obj: fields.Raw) -> Value | None:
    for kind, type_name in _LISTS.items():
        result = obj.get(kind)
        if isinstance(result, list | tuple) and all(type(item) is type_name for item in result):
            return tuple(_version(item) if kind == "versions" else item for item in result)
    return None


def render(value: Value) -> dict[str, object]:
    """The field that its type has."""
    match value:
        case tuple():
            ((kind, _),) = render(value[0]).items() if value else (("string", ""),)
            return {f"{kind}s": [next(iter(render(item).values())) for item in value]}
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case attributes.Version():
            return {"version": value.text}
        case str():
            return {"string": value}


def find_attribute(entries: Mapping[str, T], driver: str, name: str) -> T | None:
    """Return a device's `domain/id`, by the full name or by the bare id; None without."""
    if name in entries:
        return entries[name]
    domain, _, bare = name.partition("/")
    return entries.get(bare) if domain == driver and bare else None


def constraint_values(value: Value) -> frozenset[Hashable]:
    """Return the elements with their types, for constraints: `1` is not `true`."""
    several = value if isinstance(value, tuple) else (value,)
    return frozenset((type(version).__name__, version) for version in several)
