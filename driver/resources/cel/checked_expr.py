"""Checked expressions as trees, read from what the engine gives and given back to it. Pure.

The engine checks text and evaluates trees (cel.expr.CheckedExpr, github.com/google/cel-spec). In
between a tree is ours to read and to change: `Device` accesses, functions the engine lacks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from cel_expr_python import cel
from google.protobuf import any_pb2

from driver.pb import cel_checked_pb2 as wire

_TYPE_URL = "type.googleapis.com/cel.expr.CheckedExpr"
Literal = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. `kind` is the field of the wire format: `integer`, `unsigned`, `text`, ..."""

    id: int
    kind: str
    value: Literal


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or a type."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or with `test` `has(operand.field)`."""

    id: int
    operand: "Node"
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, operators included; a member of `target` where there is one."""

    id: int
    function: str
    arguments: tuple["Node", ...]
    target: "Node | None" = None


@dataclass(frozen=True, slots=True)
class Items:
    """A list literal; elements at the places `optional` are left out where they are none."""

    id: int
    elements: tuple["Node", ...]
    optional: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """`key: value` of a map literal, or `field: value` of a message."""

    id: int
    field: str
    key: "Node | None"
    value: "Node"
    optional: bool


@dataclass(frozen=True, slots=True)
class Struct:
    """A map literal, or with `message` one of a message."""

    id: int
    message: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """Expansion of a macro: `accumulator` goes from `initial` through `step` while `condition`."""

    id: int
    variable: str
    second: str
    range: "Node"
    accumulator: str
    initial: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"

    @property
    def is_bind(self) -> bool:
        """Return whether this is `cel.bind`: it binds one name and iterates over nothing."""
        return (
            isinstance(self.range, Items)
            and not self.range.elements
            and isinstance(self.condition, Constant)
            and self.condition.value is False
            and self.accumulator not in {"__result__", "@result"}
        )


Node = Constant | Name | Select | Call | Items | Struct | Loop


@dataclass(frozen=True, slots=True)
class Tree:
    """A checked expression: its root, the overloads that calls can mean, the types of nodes."""

    root: Node
    overloads: Mapping[int, tuple[str, ...]]
    types: Mapping[int, wire.Type]
    _checked: wire.Checked = field(repr=False)


def read(program: cel.Expression) -> Tree:
    """The tree of what was compiled."""
    checked = wire.Checked.FromString(any_pb2.Any.FromString(program.serialize()).value)
    overloads = {key: tuple(item.overloads) for key, item in checked.references.items()}
    return Tree(_node(checked.expression), overloads, checked.types, checked)


def write(tree: Tree, root: Node) -> bytes:
    """The tree with another root, as the engine reads it."""
    checked = wire.Checked()
    checked.CopyFrom(tree._checked)  # noqa: SLF001 - of this module
    checked.expression = _bytes(root)
    retained = {item.id for item in walk(root)}
    for key in [key for key in checked.references if key not in retained]:
        del checked.references[key]
    return any_pb2.Any(type_url=_TYPE_URL, value=checked.SerializeToString()).SerializeToString()


def walk(node: Node | Entry) -> Iterator[Node]:
    """A node and all below it."""
    if not isinstance(node, Entry):
        yield node
    for below in children(node):
        yield from walk(below)


def children(node: Node | Entry) -> Iterator[Node | Entry]:
    """Yield the direct children of a node, entries of maps among them."""
    for item in fields(node):
        value = getattr(node, item.name)
        for child in value if isinstance(value, tuple) else (value,):
            if is_dataclass(child):
                yield child  # type: ignore[misc]


def _node(octets: bytes) -> Node:  # noqa: PLR0911 - one for each kind of node
    result = wire.Expression.FromString(octets)
    identity = result.id
    if result.HasField("identifier"):
        return Name(identity, result.identifier.name)
    if result.HasField("select"):
        chosen = result.select
        return Select(identity, _node(chosen.operand), chosen.field, chosen.test_only)
    if result.HasField("call"):
        call = result.call
        target = _node(call.target) if call.HasField("target") else None
        return Call(identity, call.function, tuple(map(_node, call.arguments)), target)
    if result.HasField("list"):
        elements = tuple(map(_node, result.list.elements))
        return Items(identity, elements, tuple(result.list.optional_indices))
    if result.HasField("struct"):
        entries = tuple(map(_entry, result.struct.entries))
        return Struct(identity, result.struct.message, entries)
    if result.HasField("comprehension"):
        return _loop(identity, result.comprehension)
    return _constant(identity, result.constant)


def _constant(identity: int, octets: bytes) -> Constant:
    for descriptor, value in wire.Constant.FromString(octets).ListFields():
        return Constant(identity, descriptor.name, value)
    return Constant(identity, "", None)


def _entry(result: wire.Struct.Entry) -> Entry:
    key = _node(result.key) if result.HasField("key") else None
    return Entry(result.id, result.field, key, _node(result.value), result.optional_entry)


def _loop(identity: int, result: wire.Comprehension) -> Loop:
    return Loop(
        identity,
        result.variable,
        result.second,
        _node(result.range),
        result.accumulator,
        _node(result.initial),
        _node(result.condition),
        _node(result.step),
        _node(result.result),
    )


def _bytes(node: Node) -> bytes:
    return _expression(node).SerializeToString()


def _expression(node: Node) -> wire.Expression:  # noqa: PLR0911 - as above
    match node:
        case Constant():
            kind: dict[str, Any] = {node.kind: node.value} if node.kind else {}
            # The null constant is field 1 of the wire format, an enumeration of one.
            octets = wire.Constant(**kind).SerializeToString() if kind else b"\x08\x00"
            return wire.Expression(id=node.id, constant=octets)
        case Name():
            return wire.Expression(id=node.id, identifier=wire.Identifier(name=node.name))
        case Select():
            chosen = wire.Select(
                operand=_bytes(node.operand), field=node.field, test_only=node.test
            )
            return wire.Expression(id=node.id, select=chosen)
        case Call():
            call = wire.Call(
                function=node.function,
                arguments=map(_bytes, node.arguments),
                target=None if node.target is None else _bytes(node.target),
            )
            return wire.Expression(id=node.id, call=call)
        case Items():
            items = wire.List(elements=map(_bytes, node.elements), optional_indices=node.optional)
            return wire.Expression(id=node.id, list=items)
        case Struct():
            struct = wire.Struct(message=node.message, entries=map(_written, node.entries))
            return wire.Expression(id=node.id, struct=struct)
        case Loop():
            return wire.Expression(id=node.id, comprehension=_comprehension(node))


def _written(entry: Entry) -> wire.Struct.Entry:
    return wire.Struct.Entry(
        id=entry.id,
        field=entry.field or None,
        key=None if entry.key is None else _bytes(entry.key),
        value=_bytes(entry.value),
        optional_entry=entry.optional,
    )


def _comprehension(loop: Loop) -> wire.Comprehension:
    return wire.Comprehension(
        variable=loop.variable,
        second=loop.second,
        range=_bytes(loop.range),
        accumulator=loop.accumulator,
        initial=_bytes(loop.initial),
        condition=_bytes(loop.condition),
        step=_bytes(loop.step),
        result=_bytes(loop.result),
    )


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with what is below it changed."""
    match node:
        case Select():
            return replace(node, operand=change(node.operand))
        case Call():
            target = None if node.target is None else change(node.target)
            return replace(node, target=target, arguments=tuple(map(change, node.arguments)))
        case Items():
            return replace(node, elements=tuple(map(change, node.elements)))
        case Struct():
            entries = (
                replace(
                    entry,
                    key=None if entry.key is None else change(entry.key),
                    value=change(entry.value),
                )
                for entry in node.entries
            )
            return replace(node, entries=tuple(entries))
        case Loop():
            return replace(
                node,
                range=change(node.range),
                initial=change(node.initial),
                condition=change(node.condition),
                step=change(node.step),
                result=change(node.result),
            )
        case Constant() | Name():
            return node


def alone(node: Node) -> bytes:
    """A node as a tree of its own, as the engine reads it."""
    empty = Tree(node, {}, {}, wire.Checked())
    return write(empty, node)
