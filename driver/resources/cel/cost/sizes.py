"""Sizes of an expression's values, as Kubernetes estimates them. Pure.

Sizes are characters, bytes, items or entries; `(least, most)`, where MOST stands for no bound.
Facts of resource.k8s.io/v1 types.go and of dynamic-resource-allocation cel/compile.go, v0.37.1.
"""

from dataclasses import dataclass, field
from typing import Final

from driver.pb import cel_checked_pb2 as wire
from driver.resources.cel import checked_expr
from driver.resources.cel.environment import CAPACITY

MOST: Final = 2**64 - 1
Size = tuple[int, int]
Path = tuple[str, ...]
UNKNOWN: Final[Size] = (0, MOST)
_SCALARS: Final = frozenset({1, 2, 3, 4})
_TIMES: Final = frozenset({2, 3})
STRING: Final = 5
BYTES: Final = 6


@dataclass(frozen=True, slots=True)
class _Declared:
    """A type with a bound; of a map its keys and values, of `device` its fields."""

    most: int
    key: "_Declared | None" = None
    value: "_Declared | None" = None
    fields: "dict[str, _Declared]" = field(default_factory=dict)


_ATTRIBUTE: Final = _Declared(64)
_DOMAIN: Final = _Declared(63)
_IDENTIFIER: Final = _Declared(32)
_DEVICE: Final = _Declared(
    0,
    fields={
        "driver": _Declared(63),
        "allowMultipleAllocations": _Declared(1),
        "attributes": _Declared(32, _DOMAIN, _Declared(32, _IDENTIFIER, _ATTRIBUTE)),
        "capacity": _Declared(32, _DOMAIN, _Declared(32, _IDENTIFIER, _Declared(0))),
    },
)


def add(left: Size, other: Size) -> Size:
    """The size of both together."""
    return min(left[0] + other[0], MOST), min(left[1] + other[1], MOST)


def max_of(left: Size, other: Size) -> Size:
    """The size of one or the other."""
    return min(left[0], other[0]), max(left[1], other[1])


def path_size(path: Path) -> Size | None:
    """The size of what is declared of `device`."""
    if not path or path[0] != "device":
        return None
    here: _Declared | None = _DEVICE
    for name in path[1:]:
        if here is None:
            return None
        if name in {"@items", "@values"}:
            here = here.value
        elif name == "@keys":
            here = here.key
        else:
            here = here.fields.get(name) or (_ATTRIBUTE if here.value is _ATTRIBUTE else None)
    return None if here is None else (0, here.most)


def literal_size(node: checked_expr.Node) -> Size | None:
    """The size of what is written in the expression."""
    match node:
        case checked_expr.Constant(value=str() | bytes() as value):
            return len(value), len(value)
        case checked_expr.Constant():
            return 1, 1
        case checked_expr.Items():
            return len(node.elements), len(node.elements)
        case checked_expr.Struct(message=""):
            return len(node.entries), len(node.entries)
        case _:
            return None


def is_scalar(type_: wire.Type) -> bool:
    """Return whether values of a type have one size."""
    if type_.primitive in _SCALARS or type_.well_known in _TIMES:
        return True
    optional = type_.abstract.name == "optional_type" and type_.abstract.parameters
    return bool(optional) and is_scalar(type_.abstract.parameters[0])


@dataclass(frozen=True, slots=True)
class Entry:
    """The sizes within a list or map."""

    is_list: bool
    key: Size
    value: Size


def merge_entries(entry: Entry | None, other: Entry | None) -> Entry | None:
    """The sizes within one or the other."""
    if entry is None or other is None:
        return None
    return Entry(entry.is_list, max_of(entry.key, other.key), max_of(entry.value, other.value))


@dataclass(frozen=True, slots=True)
class Local:
    """A variable of a macro."""

    path: Path
    size: Size | None
    entry: Entry | None = None


class Sizes:
    """Known paths and sizes of one tree's nodes, by identity."""

    def __init__(self, tree: checked_expr.Tree) -> None:
        self._tree = tree
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, Entry] = {}
        self._paths: dict[int, Path] = {}
        self._locals: dict[str, list[Local]] = {}

    def node_type(self, node: checked_expr.Node) -> wire.Type:
        """The type of a node, as it was checked."""
        return self._tree.types.get(node.id, wire.Type())

    def node_path(self, node: checked_expr.Node) -> Path:
        """Return the path from a variable to a node; empty if there is none."""
        if isinstance(node, checked_expr.Name) and self._locals.get(node.name):
            return self._locals[node.name][-1].path
        return self._paths.get(node.id, ())

    def reach(self, node: checked_expr.Node, path: Path) -> None:
        """Keep how a node is reached."""
        self._paths[node.id] = path

    def record_path(self, node: checked_expr.Name) -> None:
        """Record the path to a variable."""
        if self._locals.get(node.name):
            self.reach(node, self._locals[node.name][-1].path)
        else:
            self.reach(node, ("device", "capacity") if node.name == CAPACITY else (node.name,))

    def node_size(self, node: checked_expr.Node) -> Size | None:
        """Return the size of a node; None if unknown."""
        current = self._sizes.get(node.id) or literal_size(node) or path_size(self.node_path(node))
        if current is not None:
            return current
        if is_scalar(self.node_type(node)):
            return 1, 1
        if isinstance(node, checked_expr.Name) and self._locals.get(node.name):
            return self._locals[node.name][-1].size
        return None

    def bound(self, node: checked_expr.Node) -> Size:
        """The size of a node."""
        return self.node_size(node) or UNKNOWN

    def within(self, node: checked_expr.Node) -> Entry | None:
        """The sizes within a node, where something is known of them."""
        entry = self._entries.get(node.id)
        if entry is None and isinstance(node, checked_expr.Name) and self._locals.get(node.name):
            return self._locals[node.name][-1].entry
        return entry

    def record_size(
        self, node: checked_expr.Node, size: Size | None, entry: Entry | None = None
    ) -> None:
        """Record the size and entry of a node."""
        if size is not None:
            self._sizes[node.id] = size
        if entry is not None:
            self._entries[node.id] = entry

    def enter(self, name: str, local: Local) -> None:
        """A variable from here on."""
        self._locals.setdefault(name, []).append(local)

    def leave(self, name: str) -> None:
        """No longer."""
        self._locals[name].pop()

    def element(self, node: checked_expr.Node) -> tuple[Size, int] | None:
        """The size of an element of a list and its primitive type; None where it is no list."""
        type_ = self.node_type(node)
        if type_.HasField("list"):
            inside = type_.list.element
        elif type_.HasField("map"):
            inside = type_.map.key
        else:
            return None
        path = self.node_path(node)
        result = path_size((*path, "@items")) if path else None
        return result or UNKNOWN, inside.primitive
