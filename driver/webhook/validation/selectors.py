"""Derives the face that a request surely gets from its selectors and its class's. Pure.

Certain is what a selector demands literally: `device.attributes["<driver>"].type == "mig"` as one
of the terms that `&&` joins: then no other device can match. Without such a term the face is
unknown, and nothing is refused.
"""

import functools
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from driver import errors, names
from driver.resources.cel import checked_expr, environment
from driver.resources.cel.selector import MAX_EXPRESSION_BYTES
from driver.resources.dra import device_classes
from driver.resources.dra import requests as dra_requests


class Face(StrEnum):
    """Face that a request can get, as far as configuration distinguishes faces."""

    WHOLE = "whole GPU"
    MIG = "MIG device"
    MPS = "MPS share"
    TIME_SLICED = "time-sliced share"
    MONITOR = "monitor"
    NONE = "nothing"
    """Its selectors contradict each other."""
    FOREIGN = "another driver's device"
    UNKNOWN = "device"


Classes = Mapping[str, device_classes.DeviceClass]

_SHARES = {names.SHARING_MPS: Face.MPS, names.SHARING_TIME_SLICING: Face.TIME_SLICED}
_TYPES = {
    names.TYPE_GPU: Face.WHOLE,
    names.TYPE_MIG: Face.MIG,
    names.TYPE_MONITOR: Face.MONITOR,
}


@dataclass(frozen=True, slots=True)
class CandidateWay:
    """One way of a request with what it gets; `request` is the request itself.

    `is_named`: its selectors demand our driver, or an attribute of it.
    """

    name: str
    face: Face
    count: int
    request: dra_requests.Request
    is_named: bool = False

    @property
    def ours(self) -> bool:
        """Return whether it may be a device of this driver."""
        return self.face is not Face.FOREIGN


def candidate_ways(
    request: dra_requests.Request, device_class: Classes, driver: str
) -> tuple[CandidateWay, ...]:
    """The ways of a request, in their order. `device_class` finds a class by its name."""
    return tuple(_way(item, device_class, driver) for item in request.alternatives_or_self)


def _way(request: dra_requests.Request, class_: Classes, driver: str) -> CandidateWay:
    device_class = class_.get(request.device_class)
    expressions = (*(device_class.selectors if device_class else ()), *request.selectors)
    demands: dict[str, set[object]] = {}
    for expression in expressions:
        for key, value in _demands(expression):
            demands.setdefault(key, set()).add(value)
    ours = demands.get("driver") == {driver}
    named = ours or any(key.startswith(f"{driver}/") for key in demands)
    return CandidateWay(request.name, _face(demands, driver), request.count, request, named)


def _face(demands: Mapping[str, AbstractSet[object]], driver: str) -> Face:
    if any(len(values) > 1 for values in demands.values()):
        return Face.NONE
    demanded = {key: next(iter(values)) for key, values in demands.items()}
    if demanded.get("driver", driver) != driver:
        return Face.FOREIGN
    kind, sharing = demanded.get(f"{driver}/{names.ATTR_TYPE}"), demanded.get(f"{driver}/sharing")
    if kind == names.TYPE_SHARE or (kind is None and sharing is not None):
        return _SHARES.get(str(sharing), Face.UNKNOWN)
    return _TYPES.get(str(kind), Face.UNKNOWN)


@functools.lru_cache(maxsize=1024)
def _demands(expression: str) -> tuple[tuple[str, object], ...]:
    """Return the literal demands: `driver` or `<domain>/<attribute>` is a value.

    Empty if it does not compile: the API server or the allocator reports that.
    """
    if len(expression.encode(errors="replace")) > MAX_EXPRESSION_BYTES:
        return ()
    try:
        root = checked_expr.read(environment.checking_env().compile(expression)).root
    except (RuntimeError, ValueError, TypeError, RecursionError, errors.BadInput):
        return ()
    return tuple(result for term in _terms(root) if (result := _demand(term)) is not None)


def _terms(root: checked_expr.Node) -> Iterator[checked_expr.Node]:
    waiting = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, checked_expr.Call) and item.function == "_&&_":
            waiting += item.arguments
        else:
            yield item


def _demand(term: checked_expr.Node) -> tuple[str, object] | None:
    match term:
        case checked_expr.Call(
            function="_==_", arguments=(left, checked_expr.Constant(value=value))
        ):
            name = _name(left)
        case checked_expr.Call(
            function="_==_", arguments=(checked_expr.Constant(value=value), right)
        ):
            name = _name(right)
        case _:
            return None
    return None if name is None else (name, value)


def _name(node: checked_expr.Node) -> str | None:
    """`driver`, or `<domain>/<attribute>`, of what is read of the device."""
    match node:
        case checked_expr.Select(
            operand=checked_expr.Name(name="device"), field="driver", test=False
        ):
            return "driver"
        case checked_expr.Select(
            operand=checked_expr.Call(
                function="_[_]",
                arguments=(
                    checked_expr.Select(
                        operand=checked_expr.Name(name="device"), field="attributes"
                    ),
                    checked_expr.Constant(value=str(domain)),
                ),
            ),
            field=attribute,
            test=False,
        ):
            return f"{domain}/{attribute}"
        case _:
            return None
