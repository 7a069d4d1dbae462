"""Finds the fields of a device that an expression reads. Pure.

`device` is no value to the engine: each domain is a variable of its own, with the names that are
read in it. A domain that a device lacks is an empty map, as in Kubernetes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from driver import errors
from driver.resources.cel import checked_expr
from driver.resources.cel.environment import CAPACITY
from driver.resources.cel.rewriter import Maker

DRIVER: Final = "driver"
ALLOW_MULTIPLE: Final = "allowMultipleAllocations"
_MAPS: Final = ("attributes", "capacity")
_INDEX: Final = "_[_]"
_CHOICES: Final = frozenset({"_?._", "_[?_]"})


@dataclass(frozen=True, slots=True)
class Device:
    """The variable itself."""


@dataclass(frozen=True, slots=True)
class Maps:
    """`device.attributes` or `device.capacity`."""

    which: str


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain of them. `optional` where it was reached by `.?` or `[?]`."""

    which: str
    name: str
    optional: bool = False

    @property
    def variable(self) -> str:
        """The name that the engine knows it by."""
        return f"@{self.which}/{self.name}"


_Place = Device | Maps | Domain
_Scope = Mapping[str, _Place | None]


@dataclass(slots=True)
class DeviceReads:
    """Fields that an expression reads.

    `names` are `domain/id`, or DRIVER or ALLOW_MULTIPLE. `whole` are the maps, `full` the domains
    of which it may read anything.
    """

    names: set[str] = field(default_factory=set)
    domains: dict[Domain, set[str]] = field(default_factory=dict)
    full: set[Domain] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)


class Accesses:
    """Rewrites what one tree reads of `device`; `reads` is what it found."""

    def __init__(self, maker: Maker) -> None:
        self.reads = DeviceReads()
        self._make = maker

    def rewrite(self, node: checked_expr.Node) -> checked_expr.Node:
        """The tree over variables of its own. Raises BadInput where `device` is a mere value."""
        return self._node(node, {})

    def _node(self, node: checked_expr.Node, scope: _Scope) -> checked_expr.Node:
        origin = _place(node, scope)
        if origin is not None:
            return self._value(origin)
        match node:
            case checked_expr.Select():
                return self._select(node, scope)
            case checked_expr.Call():
                return self._call(node, scope)
            case checked_expr.Loop():
                return self._loop(node, scope)
            case _:
                return checked_expr.rebuild(node, lambda below: self._node(below, scope))

    def _value(self, origin: _Place) -> checked_expr.Node:
        """A part of the device as a value."""
        if not isinstance(origin, Domain):
            raise errors.BadInput(
                "selector", "device, its attributes or capacity as a value", "one domain of them"
            )
        self.reads.full.add(replace(origin, optional=False))
        name = self._make.name(origin.variable)
        return self._make.call("optional.of", name) if origin.optional else name

    def _select(self, node: checked_expr.Select, scope: _Scope) -> checked_expr.Node:
        origin = _place(node.operand, scope)
        if isinstance(origin, Device):
            return self._of_device(node)
        if isinstance(origin, Maps):
            # Every domain is there, if only as an empty map.
            return self._make.constant("boolean", value=True)
        if isinstance(origin, Domain) and not origin.optional:
            return replace(node, operand=self._read(origin, node.field))
        if isinstance(origin, Domain) and not node.test:
            constant = self._make.constant("text", node.field)
            return self._make.call("_?._", self._read(origin, node.field), constant)
        return replace(node, operand=self._node(node.operand, scope))

    def _of_device(self, node: checked_expr.Select) -> checked_expr.Node:
        if node.test:
            return self._make.constant("boolean", value=True)
        self.reads.names.add(node.field)
        return self._make.name(f"@{node.field}")

    def _read(self, origin: Domain, identifier: str) -> checked_expr.Node:
        domain = replace(origin, optional=False)
        self.reads.domains.setdefault(domain, set()).add(identifier)
        return self._make.name(domain.variable)

    def _call(self, node: checked_expr.Call, scope: _Scope) -> checked_expr.Node:
        arguments = node.arguments
        if node.function == "@in":
            origin = _place(arguments[1], scope)
            desired = _text(arguments[0])
            if isinstance(origin, Maps):
                return replace(
                    node, arguments=(self._node(arguments[0], scope), self._whole(origin))
                )
            if isinstance(origin, Domain) and not origin.optional and desired is not None:
                return replace(node, arguments=(arguments[0], self._read(origin, desired)))
        elif node.function == _INDEX or node.function in _CHOICES:
            return self._index(node, scope)
        elif node.function == "size":
            return self._size(node, scope)
        return checked_expr.rebuild(node, lambda below: self._node(below, scope))

    def _index(self, node: checked_expr.Call, scope: _Scope) -> checked_expr.Node:
        origin = _place(node.arguments[0], scope)
        desired = _text(node.arguments[1])
        if isinstance(origin, Domain) and desired is not None:
            function = "_?._" if origin.optional else node.function
            return replace(
                node, function=function, arguments=(self._read(origin, desired), node.arguments[1])
            )
        if isinstance(origin, Maps):
            return self._any_domain(node, origin, scope)
        return checked_expr.rebuild(node, lambda below: self._node(below, scope))

    def _any_domain(
        self, node: checked_expr.Call, origin: Maps, scope: _Scope
    ) -> checked_expr.Node:
        """A domain that is not known before: an empty map if there is none."""
        make, maps = self._make, self._whole(origin)
        key = self._node(node.arguments[1], scope)
        item = make.call(_INDEX, maps, key)
        call = make.call("_?_:_", make.call("@in", key, maps), item, make.nothing())
        return make.call("optional.of", call) if node.function in _CHOICES else call

    def _size(self, node: checked_expr.Call, scope: _Scope) -> checked_expr.Node:
        requested = node.target if node.target is not None else node.arguments[0]
        origin = _place(requested, scope)
        if not isinstance(origin, Maps):
            return checked_expr.rebuild(node, lambda below: self._node(below, scope))
        return self._make.call("size", self._whole(origin))

    def _whole(self, maps: Maps) -> checked_expr.Node:
        self.reads.whole.add(maps.which)
        return self._make.name(f"@{maps.which}")

    def _loop(self, node: checked_expr.Loop, scope: _Scope) -> checked_expr.Node:
        bound = _place(node.initial, scope) if node.is_bind else None
        if bound is not None:
            return self._node(node.result, {**scope, node.accumulator: bound})
        origin = _place(node.range, scope)
        gone_through = (
            self._whole(origin) if isinstance(origin, Maps) else self._node(node.range, scope)
        )
        after = {**scope, node.accumulator: None}
        inside = {**after, node.variable: None, node.second: None}
        return replace(
            node,
            range=gone_through,
            initial=self._node(node.initial, scope),
            condition=self._node(node.condition, inside),
            step=self._node(node.step, inside),
            result=self._node(node.result, after),
        )


def _place(node: checked_expr.Node, scope: _Scope) -> _Place | None:
    """The part of the device that a node stands for."""
    match node:
        case checked_expr.Name(name=name) if name in scope:
            return scope[name]
        case checked_expr.Name(name="device"):
            return Device()
        case checked_expr.Name(name=name) if name == CAPACITY and "device" not in scope:
            return Maps("capacity")
        case checked_expr.Select(test=False):
            return _below(_place(node.operand, scope), node.field)
        case checked_expr.Call(function=function) if function == _INDEX or function in _CHOICES:
            origin = _place(node.arguments[0], scope)
            desired = _text(node.arguments[1])
            if isinstance(origin, Maps) and desired is not None:
                return Domain(origin.which, desired, optional=function in _CHOICES)
    return None


def _below(origin: _Place | None, name: str) -> _Place | None:
    if isinstance(origin, Device) and name in _MAPS:
        return Maps(name)
    return Domain(origin.which, name) if isinstance(origin, Maps) else None


def _text(node: checked_expr.Node) -> str | None:
    """The text of a literal."""
    if isinstance(node, checked_expr.Constant) and isinstance(node.value, str):
        return node.value
    return None
