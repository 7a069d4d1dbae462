"""Reading raw Kubernetes objects: typed access that says where a field is wrong.

Objects are plain JSON values. A reader names the path it stands at, so that a wrong type ends as
`spec.devices.requests[1].exactly: expected an object`, never as a KeyError.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence

from driver import errors

Raw = Mapping[str, object]
_NOTHING: Raw = {}
_NO_TEXTS: Mapping[str, str] = {}
MOST_NESTED = 100
"""Levels of what users may write as they like: opaque parameters."""


def mapping(obj: Raw, key: str, path: str = "") -> Raw:
    """An object field; empty when absent."""
    value = obj.get(key)
    if type(value) is dict:
        return value  # nearly always, and the other test is slow
    if value is None:
        return _NOTHING
    if not isinstance(value, Mapping):
        raise errors.BadInput(_at(path, key), f"is {type(value).__name__}", "an object")
    return value


def sequence(obj: Raw, key: str, path: str = "") -> Sequence[object]:
    """A list field; empty when absent."""
    value = obj.get(key)
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise errors.BadInput(_at(path, key), f"is {type(value).__name__}", "a list")
    return value


def objects(obj: Raw, key: str, location: str = "") -> Iterator[tuple[str, Raw]]:
    """The objects of a list field, each with its path."""
    result = sequence(obj, key, location)
    list_path = _at(location, key) if result else ""
    for index, item in enumerate(result):
        path = f"{list_path}[{index}]"
        if type(item) is not dict and not isinstance(item, Mapping):
            raise errors.BadInput(path, f"is {type(item).__name__}", "an object")
        yield path, item


def text(obj: Raw, key: str, path: str = "", default: str = "") -> str:
    """A string field; `default` when absent."""
    value = obj.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise errors.BadInput(_at(path, key), f"is {type(value).__name__}", "a string")
    return value


def common_text(obj: Raw, key: str, path: str = "", default: str = "") -> str:
    """A string field with a value that many objects have; equal ones are one object."""
    return sys.intern(text(obj, key, path, default))


def required_text(obj: Raw, key: str, path: str = "") -> str:
    """A string field that must be there."""
    value = text(obj, key, path)
    if not value:
        raise errors.BadInput(_at(path, key), "is missing", "a string")
    return value


def integer(obj: Raw, key: str, path: str = "", default: int = 0) -> int:
    """An integer field; `default` when absent."""
    value = obj.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.BadInput(_at(path, key), f"is {type(value).__name__}", "an integer")
    return value


def flag(obj: Raw, key: str, path: str = "") -> bool:
    """A boolean field; False when absent."""
    value = obj.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise errors.BadInput(_at(path, key), f"is {type(value).__name__}", "true or false")
    return value


def texts(obj: Raw, key: str, location: str = "") -> tuple[str, ...]:
    """A list of strings, such as finalizers, which many objects have."""
    result = []
    for index, item in enumerate(sequence(obj, key, location)):
        if not isinstance(item, str):
            path = f"{_at(location, key)}[{index}]"
            raise errors.BadInput(path, f"is {type(item).__name__}", "a string")
        result.append(sys.intern(str(item)))
    return tuple(result)


def text_map(obj: Raw, key: str, path: str = "") -> Mapping[str, str]:
    """A map of strings: labels, a nodeSelector."""
    members = mapping(obj, key, path)
    if not members:
        return _NO_TEXTS
    return {sys.intern(name): common_text(members, name, path) for name in members}


def is_deep(value: object) -> bool:
    """Return whether lists and objects are nested deeper than MOST_NESTED levels."""
    level = [value]
    for _ in range(MOST_NESTED + 1):
        level = [
            inner for value_ in level if isinstance(value_, Mapping) for inner in value_.values()
        ] + [inner for value_ in level if isinstance(value_, list | tuple) for inner in value_]
        if not level:
            return False
    return True


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
