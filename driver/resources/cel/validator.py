"""Checks that Kubernetes makes beyond types (cel-go cel/validator.go). Pure."""

import re
from collections.abc import Iterator
from typing import Final

from driver.pb import cel_checked_pb2 as wire
from driver.resources.cel import checked_expr
from driver.resources.cel.environment import evaluation_env
from driver.resources.cel.library import strings as library_strings

_MEMBERS_WITH_PATTERNS: Final = frozenset({"matches", "find", "findAll"})
_CONVERSIONS: Final = frozenset(
    {"duration", "timestamp", "int", "uint", "double", "bool", "string", "bytes"}
)
_WITH_ANY_TYPES: Final = "format"
_PLAIN_FORMAT: Final = re.compile(r"([^%]|%%|%(\.[0-9]+)?[sdfxXob])*", re.DOTALL)
_KNOWN_MESSAGES: Final = "google.protobuf."


def violations(tree: checked_expr.Tree) -> Iterator[str]:
    """Yield why Kubernetes refuses a tree."""
    exempt = {
        below.id
        for node in checked_expr.walk(tree.root)
        if isinstance(node, checked_expr.Call) and node.function == _WITH_ANY_TYPES
        for argument in node.arguments
        for below in checked_expr.walk(argument)
    }
    for node in checked_expr.walk(tree.root):
        if node.id in exempt and isinstance(node, checked_expr.Items | checked_expr.Struct):
            continue
        match node:
            case checked_expr.Items():
                yield from _mixed(_types(tree, node.elements, node.optional))
            case checked_expr.Struct(message=""):
                optional = [index for index, entry in enumerate(node.entries) if entry.optional]
                keys = [entry.key for entry in node.entries if entry.key is not None]
                yield from _mixed(_types(tree, keys, ()))
                yield from _mixed(_types(tree, [entry.value for entry in node.entries], optional))
            case checked_expr.Struct() if not node.message.startswith(_KNOWN_MESSAGES):
                yield f"{node.message} cannot be made by an expression"
            case checked_expr.Name(name=name) if name.startswith("kubernetes."):
                yield f"undeclared reference to {name}"
            case checked_expr.Call(function="format"):
                yield from _of_format(node)
            case checked_expr.Call():
                yield from _of_literals(node)
            case _:
                pass


def _types(
    tree: checked_expr.Tree,
    nodes: "list[checked_expr.Node] | tuple[checked_expr.Node, ...]",
    optional: object,
) -> list[wire.Type]:
    places = set(optional) if isinstance(optional, list | tuple) else set()
    result = [tree.types.get(node.id, wire.Type()) for node in nodes]
    return [
        node.abstract.parameters[0] if index in places and node.abstract.parameters else node
        for index, node in enumerate(result)
    ]


def _mixed(types: list[wire.Type]) -> Iterator[str]:
    if any(type_ != types[0] for type_ in types):
        yield "a literal of several types"


def _of_literals(node: checked_expr.Call) -> Iterator[str]:
    literal = node.arguments[0] if node.arguments else None
    if not isinstance(literal, checked_expr.Constant):
        return
    if node.target is not None and node.function in _MEMBERS_WITH_PATTERNS:
        if isinstance(literal.value, str) and not library_strings.is_pattern(literal.value):
            yield f"{literal.value!r} is no regular expression"
    elif node.target is None and node.function in _CONVERSIONS and not _evaluates(node):
        yield f"invalid argument of {node.function}"


def _of_format(node: checked_expr.Call) -> Iterator[str]:
    """The engine writes some verbs otherwise than Kubernetes does."""
    message = node.target
    if not isinstance(message, checked_expr.Constant) or not _PLAIN_FORMAT.fullmatch(
        str(message.value)
    ):
        yield "format is provided for literals with %s, %d, %f, %x, %X, %o and %b"


def _evaluates(node: checked_expr.Call) -> bool:
    program = evaluation_env().deserialize(checked_expr.alone(node))
    try:
        kind = program.eval().type().name()
    except RuntimeError:
        return False
    return str(kind) != "ERROR"
