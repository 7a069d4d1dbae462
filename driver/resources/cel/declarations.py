"""Functions as they are declared for the check and given to the engine for evaluation. Pure.

The engine checks by declared types, and looks functions up by the kinds of their arguments alone:
overloads that look the same to it become one function that looks at the values itself.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cel_expr_python import cel

from driver.resources.cel import messages

_T: Final = cel.Type
_KINDS: Final = {
    "bool": _T.BOOL,
    "int": _T.INT,
    "uint": _T.UINT,
    "double": _T.DOUBLE,
    "string": _T.STRING,
    "bytes": _T.BYTES,
    "list": _T.LIST,
    "map": _T.MAP,
    "duration": _T.DURATION,
    "timestamp": _T.TIMESTAMP,
    "null": _T.NULL,
    "message": messages.message_type(messages.QUANTITY),
}
"""Kinds of values that are told apart when a function is looked up."""


@dataclass(frozen=True, slots=True)
class Overload:
    """A function for arguments of certain types, as Kubernetes names it.

    Types are written `int`, `list<string>`, `A` (any type, the same wherever it stands), `dyn`, or
    as the name of a message. The first parameter of a member is what it is called on. Without
    `act` it is only declared: the engine has it, or it is written in terms of what there is.
    """

    name: str
    id: str
    takes: tuple[str, ...]
    gives: str
    act: Callable[..., object] | None = None
    member: bool = True


def build_declarations(overloads: Iterable[Overload]) -> list[dict[str, Any]]:
    """The functions of the engine's configuration of a check."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for overload in overloads:
        takes = [_typed(parameter) for parameter in overload.takes]
        message: dict[str, Any] = {"id": overload.id, "return": _typed(overload.gives)}
        if overload.member:
            message["target"], *takes = takes
        if takes:
            message["args"] = takes
        by_name.setdefault(overload.name, []).append(message)
    return [{"name": name, "overloads": message} for name, message in by_name.items()]


def _typed(text: str) -> dict[str, Any]:
    """`list<A>` as the configuration has it."""
    name, inside, rest = text.partition("<")
    if not inside:
        parameter = {"is_type_param": True} if len(name) == 1 else {}
        return {"type_name": name, **parameter}
    return {"type_name": name, "params": [_typed(item) for item in _split(rest[:-1])]}


def _split(text: str) -> list[str]:
    """`string,list<string>` in two."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def build_functions(overloads: Iterable[Overload]) -> list[cel.FunctionDecl]:
    """Return the functions for evaluation: one per name, call style and kinds."""
    result: dict[str, dict[tuple[object, ...], list[Overload]]] = {}
    for overload in overloads:
        if overload.act is None:
            continue
        for kinds in itertools.product(*(_kinds(parameter) for parameter in overload.takes)):
            result.setdefault(overload.name, {}).setdefault((overload.member, *kinds), []).append(
                overload
            )
    return [
        cel.FunctionDecl(
            name,
            [
                _given(f"{name}_{number}", key, same)
                for number, (key, same) in enumerate(by_kinds.items())
            ],
        )
        for name, by_kinds in result.items()
    ]


def _kinds(text: str) -> Sequence[str]:
    name = text.partition("<")[0]
    if name == "dyn" or len(name) == 1:
        return tuple(_KINDS)
    return (name if name in _KINDS else "message",)


def _given(identity: str, key: tuple[object, ...], same: list[Overload]) -> cel.Overload:
    member, *kinds = key
    return cel.Overload(
        id=identity,
        return_type=_T.DYN,
        parameters=[_KINDS[str(kind)] for kind in kinds],
        is_member=member,
        impl=_choosing(same),
    )


def _choosing(same: list[Overload]) -> Callable[..., object]:
    acts = [overload.act for overload in same if overload.act is not None]
    if not any(parameter in messages.ADDED for overload in same for parameter in overload.takes):
        return acts[0]

    def act(*arguments: object) -> object:
        for overload in same:
            if overload.act is not None and all(map(_fits, overload.takes, arguments)):
                return overload.act(*arguments)
        raise ValueError("no such overload")

    return act


def _fits(parameter: str, argument: object) -> bool:
    return parameter not in messages.ADDED or messages.is_a(parameter, argument)
