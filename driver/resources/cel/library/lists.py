"""Kubernetes' functions on lists (k8s.io/apiserver pkg/cel/library/lists.go of v0.37.1). Pure.

What there is for lists of each type is one act: the engine shows what it looks up by kinds alone.
Durations and timestamps it takes from nobody, so their functions are written in terms of its own
(`rewriter`), as are `indexOf` and `lastIndexOf`, which are its names for strings.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from driver.resources.cel.declarations import Overload

_NUMBERS: Final = ("int", "uint", "double")
_WRITTEN: Final = ("duration", "timestamp")
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_COMPARABLE: Final = (*_NUMBERS, "bool", "string", "bytes", *_WRITTEN)


def overloads() -> list[Overload]:
    """The library."""
    position_type = ("list<A>", "A")
    return [
        *(
            Overload(
                "isSorted", f"list_{type_}_is_sorted_bool", (f"list<{type_}>",), "bool", _is_sorted
            )
            for type_ in _COMPARABLE
        ),
        *_each("sum", (*_NUMBERS, "duration"), _sum),
        *_each("min", _COMPARABLE, functools.partial(_least, 1)),
        *_each("max", _COMPARABLE, functools.partial(_least, -1)),
        Overload("indexOf", "list_a_index_of_int", position_type, "int"),
        Overload("lastIndexOf", "list_a_last_index_of_int", position_type, "int"),
        Overload("includes", "list_includes_dyn_dyn", ("dyn", "dyn"), "bool", _is_included),
        Overload(
            "optional.unwrap",
            "optional_unwrap",
            ("list<optional_type<A>>",),
            "list<A>",
            member=False,
        ),
        Overload("unwrapOpt", "optional_unwrapOpt", ("list<optional_type<A>>",), "list<A>"),
    ]


def implementations() -> list[Overload]:
    """Return `indexOf` and `lastIndexOf`, for strings too where a type is unknown."""
    position, text = ("list<A>", "A"), ("string", "string")
    return [
        Overload("@indexOf", "@indexOf", position, "int", _first_place, member=False),
        Overload("@indexOf", "@indexOf_text", text, "int", str.find, member=False),
        Overload("@lastIndexOf", "@lastIndexOf", position, "int", _last_place, member=False),
        Overload("@lastIndexOf", "@lastIndexOf_text", text, "int", str.rfind, member=False),
        Overload(
            "cel.@mapInsert", "@mapInsert", ("map<A,B>", "A", "B"), "map<A,B>", _put, member=False
        ),
        Overload(
            "cel.@mapInsert",
            "@mapMerge",
            ("map<A,B>", "map<A,B>"),
            "map<A,B>",
            _merge,
            member=False,
        ),
    ]


def _each(name: str, types: Sequence[str], act: Callable[..., object]) -> list[Overload]:
    return [
        Overload(name, f"list_{type_}_{name}_{type_}", (f"list<{type_}>",), type_, act)
        for type_ in types
    ]


def _sum(result: Sequence[Any]) -> object:
    total = 0
    for item in result:
        total = _told(total + item)
    return total


def _told(number: Any) -> Any:  # noqa: ANN401 - of any type of CEL
    """Return a value for the engine: an int of 64 bits, or any other value."""
    if isinstance(number, int) and not _LEAST <= number <= _MOST:
        raise ValueError("integer overflow")
    return number


def _is_sorted(result: Sequence[Any]) -> bool:
    return all(_order(item, other) != 1 for item, other in itertools.pairwise(result))


def _least(sign: int, result: Sequence[Any]) -> object:
    if not result:
        raise ValueError("called on empty list")
    least = result[0]
    for item in result[1:]:
        if _order(least, item) == sign:
            least = item
    return _told(least)


def _is_included(here: object, desired: object) -> bool:
    if isinstance(here, list):
        return any(_same(item, desired) for item in here)
    return _same(here, desired)


def _first_place(result: Sequence[Any], desired: object) -> int:
    return next((index for index, item in enumerate(result) if _same(item, desired)), -1)


def _last_place(result: Sequence[Any], desired: object) -> int:
    back = _first_place(result[::-1], desired)
    return back if back < 0 else len(result) - 1 - back


def _merge(obj: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    if obj.keys() & more.keys():
        raise ValueError("a key is there already")
    return {**obj, **more}


def _put(obj: dict[Any, Any], key: object, value: object) -> dict[Any, Any]:
    return _merge(obj, {key: value})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(left: object, other: object) -> bool:
    """CEL's equality: numbers of several types are compared, a bool is none."""
    if isinstance(left, list) and isinstance(other, list):
        return len(left) == len(other) and all(map(_same, left, other))
    if _is_number(left) or _is_number(other):
        return _is_number(left) and _is_number(other) and left == other
    return type(left) is type(other) and left == other


def _order(left: Any, other: Any) -> int | None:  # noqa: ANN401 - of any type of CEL
    """-1, 0 or 1; None for what has no order."""
    if not (_is_number(left) and _is_number(other)) and type(left) is not type(other):
        return None
    return int(left > other) - int(left < other)
