"""Kubernetes' functions on lists, and CEL's on sets. Pure.

k8s.io/apiserver pkg/cel/library/lists.go of v0.37.1, cel-go ext/sets.go. The engine looks functions
up by the kinds of their arguments alone, so what there is for lists of each type is one act here,
and its declarations are for the check of an expression. Not provided: lists of durations and
timestamps, which the engine takes from nobody, and `indexOf` and `lastIndexOf`, names that it has
for strings and lets nobody add to.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from cel_expr_python import cel

_T = cel.Type
_SUMMABLE: Final = {"int": _T.INT, "uint": _T.UINT, "double": _T.DOUBLE}
_COMPARABLE: Final = {
    **_SUMMABLE,
    "bool": _T.BOOL,
    "string": _T.STRING,
    "bytes": _T.BYTES,
}
_ANY: Final = {
    "int": _T.INT,
    "double": _T.DOUBLE,
    "bool": _T.BOOL,
    "string": _T.STRING,
    "bytes": _T.BYTES,
    "list": _T.LIST,
    "map": _T.MAP,
}


def functions(unmatched: cel.Type) -> list[cel.FunctionDecl]:
    """The libraries; nothing in an expression is of the type `unmatched`."""
    return [
        _declared("isSorted", _COMPARABLE, _is_sorted, unmatched, gives=_T.BOOL),
        _declared("sum", _SUMMABLE, sum, unmatched),
        _declared("min", _COMPARABLE, functools.partial(_least, 1), unmatched),
        _declared("max", _COMPARABLE, functools.partial(_least, -1), unmatched),
        _includes(),
        *(_of_sets(name, act) for name, act in _SETS.items()),
    ]


def _declared(
    name: str,
    types: dict[str, cel.Type],
    act: Callable[..., object],
    unmatched: cel.Type,
    gives: cel.Type | None = None,
) -> cel.FunctionDecl:
    """For lists of each type; the last is never meant by an expression, and has the act."""
    overloads = [
        cel.Overload(
            id=f"list_{kind}_{name}",
            return_type=gives or of,
            parameters=[_T.List(of)],
            is_member=True,
        )
        for kind, of in types.items()
    ]
    acting = cel.Overload(
        id=f"list_{name}",
        return_type=gives or _T.DYN,
        parameters=[_T.List(unmatched)],
        is_member=True,
        impl=act,
    )
    return cel.FunctionDecl(name, [*overloads, acting])


def _includes() -> cel.FunctionDecl:
    pairs = itertools.product(_ANY.items(), _ANY.items())
    overloads = [
        cel.Overload(
            id=f"{one}_includes_{other}",
            return_type=_T.BOOL,
            parameters=[here, there],
            is_member=True,
            impl=_is_included,
        )
        for (one, here), (other, there) in pairs
    ]
    return cel.FunctionDecl("includes", overloads)


def _of_sets(name: str, act: Callable[..., bool]) -> cel.FunctionDecl:
    overload = cel.Overload(
        id=f"list_sets_{name}",
        return_type=_T.BOOL,
        parameters=[_T.LIST, _T.LIST],
        is_member=False,
        impl=act,
    )
    return cel.FunctionDecl(f"sets.{name}", [overload])


def _is_sorted(found: Sequence[Any]) -> bool:
    return all(_order(one, other) != 1 for one, other in itertools.pairwise(found))


def _least(sign: int, found: Sequence[Any]) -> object:
    if not found:
        raise ValueError("called on empty list")
    least = found[0]
    for one in found[1:]:
        if _order(least, one) == sign:
            least = one
    return least


def _is_included(here: object, wanted: object) -> bool:
    if isinstance(here, list):
        return any(_same(one, wanted) for one in here)
    return _same(here, wanted)


def _contains(found: Iterable[Any], wanted: Iterable[Any]) -> bool:
    there = list(found)
    return all(any(_same(one, other) for other in there) for one in wanted)


def _intersect(found: Iterable[Any], others: Sequence[Any]) -> bool:
    return any(_same(one, other) for one in found for other in others)


def _are_equivalent(found: Sequence[Any], others: Sequence[Any]) -> bool:
    return _contains(found, others) and _contains(others, found)


_SETS: Final = {
    "contains": _contains,
    "intersects": _intersect,
    "equivalent": _are_equivalent,
}


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
