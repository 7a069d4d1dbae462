"""Functions of Kubernetes that the engine cannot be given, written in terms of what it has. Pure.

By the overload that the check found: the engine lets nobody add to the names of its own functions,
and takes no durations, timestamps, optionals and unsigned numbers from Python.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from driver import errors
from driver.resources.cel import checked_expr

_WRITTEN: Final = ("duration", "timestamp")
_PLACES: Final = {"indexOf": "list_a_index_of_int", "lastIndexOf": "list_a_last_index_of_int"}
_NUMBERS: Final = frozenset({"string_to_int64", "string_to_uint64", "string_to_double"})
_TIMES: Final = frozenset({2, 3})
"""Durations and timestamps among the well-known types of cel.expr.Type."""
_WHERE: Final = "selector"


class Maker:
    """Makes nodes with identities that no other has."""

    def __init__(self, tree: checked_expr.Tree) -> None:
        most = max((item.id for item in checked_expr.walk(tree.root)), default=0)
        self._identities = itertools.count(max([most, *tree.types, *tree.overloads]) + 1)

    def call(self, function: str, *arguments: checked_expr.Node) -> checked_expr.Call:
        """`function(arguments)`."""
        return checked_expr.Call(next(self._identities), function, arguments)

    def on(
        self, target: checked_expr.Node, function: str, *arguments: checked_expr.Node
    ) -> checked_expr.Call:
        """`target.function(arguments)`."""
        return checked_expr.Call(next(self._identities), function, arguments, target)

    def constant(self, kind: str, value: checked_expr.Literal) -> checked_expr.Constant:
        """A literal."""
        return checked_expr.Constant(next(self._identities), kind, value)

    def name(self, name: str) -> checked_expr.Name:
        """A variable."""
        return checked_expr.Name(next(self._identities), name)

    def nothing(self) -> checked_expr.Struct:
        """`{}`."""
        return checked_expr.Struct(next(self._identities), "", ())

    def folded(
        self,
        items: checked_expr.Node,
        start: checked_expr.Node,
        step: Callable[[checked_expr.Node, checked_expr.Node], checked_expr.Node],
    ) -> checked_expr.Loop:
        """`start` taken through all items."""
        return checked_expr.Loop(
            next(self._identities),
            "@item",
            "",
            items,
            "@sum",
            start,
            self.constant("boolean", value=True),
            step(self.name("@sum"), self.name("@item")),
            self.name("@sum"),
        )

    def items(self, *elements: checked_expr.Node) -> checked_expr.Items:
        """A list literal."""
        return checked_expr.Items(next(self._identities), elements)


class Functions:
    """Rewrites the calls of one tree."""

    def __init__(self, tree: checked_expr.Tree, maker: Maker) -> None:
        self._tree = tree
        self._make = maker

    def rewrite(self, node: checked_expr.Node) -> checked_expr.Node:
        """The node in terms of what the engine has. Raises BadInput where there is nothing."""
        if isinstance(node, checked_expr.Call) and node.function == "hasValue":
            requested = node.target
            if isinstance(requested, checked_expr.Call) and requested.function == "validate":
                return replace(node, target=self._validated(requested))
        if not isinstance(node, checked_expr.Call):
            return checked_expr.rebuild(node, self.rewrite)
        return self._call(node)

    def _validated(self, call: checked_expr.Call) -> checked_expr.Node:
        operands = [item for item in (call.target, *call.arguments) if item is not None]
        complaints = self._make.call("@validated", *map(self.rewrite, operands))
        return self._make.call("optional.ofNonZeroValue", complaints)

    def _call(self, node: checked_expr.Call) -> checked_expr.Node:
        if node.function == "validate":
            raise errors.BadInput(
                _WHERE, "the words in which a format complains are not provided", "hasValue()"
            )
        if node.function in _PLACES:
            self._refuse_times(node)
        target = None if node.target is None else self.rewrite(node.target)
        below = replace(node, target=target, arguments=tuple(map(self.rewrite, node.arguments)))
        result = self._tree.overloads.get(node.id, ())
        if len(result) == 1:
            return self._one(below, result[0])
        if target is not None and _PLACES.get(node.function) in result:
            return self._make.call(f"@{node.function}", target, *below.arguments)
        return below

    def _one(self, node: checked_expr.Call, overload: str) -> checked_expr.Node:  # noqa: PLR0911 - a case each
        """A call of which the overload is known."""
        target = node.target
        if overload in {"ip_to_string", "cidr_to_string"}:
            return self._make.call("@text", *node.arguments)
        if overload in _NUMBERS:
            checked_text = self._make.call(f"@{overload}", *node.arguments)
            return replace(node, arguments=(checked_text,))
        if overload == "format-named":
            named = self._make.call("@named", *node.arguments)
            return self._make.call("optional.ofNonZeroValue", named)
        if overload in {"optional_unwrap", "optional_unwrapOpt"}:
            return self._unwrapped(node.arguments[0] if target is None else target)
        if target is None:
            return node
        if overload == _PLACES.get(node.function):
            return self._make.call(f"@{node.function}", target, *node.arguments)
        if overload.startswith("list_uint_") and node.function != "isSorted":
            return self._make.call("uint", node)
        if any(overload.startswith(f"list_{type_}_") for type_ in _WRITTEN):
            return self._of_times(node.function, target, node)
        return node

    def _of_times(
        self, function: str, result: checked_expr.Node, node: checked_expr.Call
    ) -> checked_expr.Node:
        make = self._make
        ordered = make.on(result, "sort")
        first = make.constant("integer", 0)
        match function:
            case "min":
                return make.call("_[_]", ordered, first)
            case "max":
                return make.call("_[_]", make.on(ordered, "reverse"), first)
            case "isSorted":
                return make.call("_==_", result, ordered)
            case "sum":
                none = make.call("duration", make.constant("text", "0s"))
                return make.folded(result, none, lambda total, item: make.call("_+_", total, item))
            case _:
                return node

    def _unwrapped(self, result: checked_expr.Node) -> checked_expr.Node:
        make = self._make

        def step(sum_: checked_expr.Node, item: checked_expr.Node) -> checked_expr.Node:
            more = make.call("_+_", sum_, make.items(make.on(item, "value")))
            return make.call("_?_:_", make.on(item, "hasValue"), more, sum_)

        return make.folded(result, make.items(), step)

    def _refuse_times(self, node: checked_expr.Call) -> None:
        type_ = self._tree.types.get(node.target.id) if node.target is not None else None
        if type_ is not None and type_.list.element.well_known in _TIMES:
            raise errors.BadInput(
                _WHERE, f"{node.function} of durations and timestamps is not provided", "exists()"
            )
