"""Kubernetes' functions on lists (k8s.io/apiserver pkg/cel/library/lists.go of v0.37.1). Pure.

What there is for lists of each type is one act: the engine shows what it looks up by kinds alone.
Durations and timestamps it takes from nobody, so their functions are written in terms of its own
(`rewriting`), as are `indexOf` and `lastIndexOf`, which are its names for strings.
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
    at = ("list<A>", "A")
    return [
        *(
            Overload("isSorted", f"list_{of}_is_sorted_bool", (f"list<{of}>",), "bool", _is_sorted)
            for of in _COMPARABLE
        ),
        *_each("sum", (*_NUMBERS, "duration"), _sum),
        *_each("min", _COMPARABLE, functools.partial(_least, 1)),
        *_each("max", _COMPARABLE, functools.partial(_least, -1)),
        Overload("indexOf", "list_a_index_of_int", at, "int"),
        Overload("lastIndexOf", "list_a_last_index_of_int", at, "int"),
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
    """What stands behind `indexOf` and `lastIndexOf`, for strings too where a type is not known."""
    at, text = ("list<A>", "A"), ("string", "string")
    return [
        Overload("@indexOf", "@indexOf", at, "int", _first_place, member=False),
        Overload("@indexOf", "@indexOf_text", text, "int", str.find, member=False),
        Overload("@lastIndexOf", "@lastIndexOf", at, "int", _last_place, member=False),
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
    return [Overload(name, f"list_{of}_{name}_{of}", (f"list<{of}>",), of, act) for of in types]


def _sum(found: Sequence[Any]) -> object:
    total = 0
    for one in found:
        total = _told(total + one)
    return total


def _told(number: Any) -> Any:  # noqa: ANN401 - of any type of CEL
    """A number that the engine takes from Python: an int of 64 bits, or any other value."""
    if isinstance(number, int) and not _LEAST <= number <= _MOST:
        raise ValueError("integer overflow")
    return number


def _is_sorted(found: Sequence[Any]) -> bool:
    return all(_order(one, other) != 1 for one, other in itertools.pairwise(found))


def _least(sign: int, found: Sequence[Any]) -> object:
    if not found:
        raise ValueError("called on empty list")
    least = found[0]
    for one in found[1:]:
        if _order(least, one) == sign:
            least = one
    return _told(least)


def _is_included(here: object, wanted: object) -> bool:
    if isinstance(here, list):
        return any(_same(one, wanted) for one in here)
    return _same(here, wanted)


def _first_place(found: Sequence[Any], wanted: object) -> int:
    return next((place for place, one in enumerate(found) if _same(one, wanted)), -1)


def _last_place(found: Sequence[Any], wanted: object) -> int:
    back = _first_place(found[::-1], wanted)
    return back if back < 0 else len(found) - 1 - back


def _merge(found: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    if found.keys() & more.keys():
        raise ValueError("a key is there already")
    return {**found, **more}


def _put(found: dict[Any, Any], key: object, value: object) -> dict[Any, Any]:
    return _merge(found, {key: value})


def _is_number(one: object) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)


def _same(one: object, other: object) -> bool:
    """CEL's equality: numbers of several types are compared, a bool is none."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if _is_number(one) or _is_number(other):
        return _is_number(one) and _is_number(other) and one == other
    return type(one) is type(other) and one == other


def _order(one: Any, other: Any) -> int | None:  # noqa: ANN401 - of any type of CEL
    """-1, 0 or 1; None for what has no order."""
    if not (_is_number(one) and _is_number(other)) and type(one) is not type(other):
        return None
    return int(one > other) - int(one < other)
