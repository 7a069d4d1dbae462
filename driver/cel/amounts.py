"""Kubernetes' quantities in CEL (k8s.io/apiserver pkg/cel/library/quantity.go of v0.37.1). Pure.

A quantity is a message of a private pool, so that expressions are checked by type, and `==` is by
value. How an amount was written decides over `isInteger` there (`1.5Gi` is none, though it is a
whole number), and `==` must not see that: it is the sign of a zero.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from driver import errors
from driver.resources import quantity

_NANO: Final = 10**9
_DIGITS: Final = 18
_BINARY_DIGITS: Final = 15
"""As many fit the reference's fast way of holding an amount (resource.ParseQuantity)."""
_MOST: Final = 2**63 - 1
_LEAST: Final = -(2**63)


def _described() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(
        name="kubernetes.proto", package="kubernetes", syntax="proto3"
    )
    message = file.message_type.add(name="Quantity")
    field = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="nanos", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    message.field.add(
        name="zero",
        number=2,
        type=field.TYPE_DOUBLE,
        label=field.LABEL_OPTIONAL,
        proto3_optional=True,
        oneof_index=0,
    )
    message.oneof_decl.add(name="_zero")
    file.message_type.add(name="Nothing")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


POOL: Final = _described()
_Message: Final[Any] = message_factory.GetMessageClass(
    POOL.FindMessageTypeByName("kubernetes.Quantity")
)
TYPE: Final = cel.Type("kubernetes.Quantity")
NOTHING: Final = cel.Type("kubernetes.Nothing")
"""A type that no expression has a value of."""


def of(amount: quantity.Quantity) -> object:
    """A quantity as CEL sees it."""
    return _made(amount.nanos, whole=_is_whole(amount.text))


def _made(nanos: int, *, whole: bool) -> object:
    return _Message(nanos=str(nanos), zero=-0.0 if whole else 0.0)


def _nanos(of: Any) -> int:  # noqa: ANN401 - a message of a class made at run time
    return int(of.nanos)


def _whole(of: Any) -> bool:  # noqa: ANN401 - as above
    return math.copysign(1.0, of.zero) < 0


def _is_whole(text: str) -> bool:
    """Whether the reference keeps an amount that is so written as an int64."""
    match = quantity.PATTERN.fullmatch(text)
    if match is None:
        return False
    _, digits, suffix, exponent = match.groups()
    number, _, part = digits.partition(".")
    number = number.lstrip("0") or "0"
    binary = quantity.BINARY.get(suffix or "")
    if binary is not None:
        room = _BINARY_DIGITS - len(number) - binary * 3 // 10 - 1
        return not part and room >= 0
    power = int(exponent) if exponent is not None else quantity.DECIMAL.get(suffix or "", 0)
    fits = len(number) + len(part) <= _DIGITS and power >= len(part)
    return fits and int(number + part) * 10 ** (power - len(part)) <= _MOST


def _parsed(text: str) -> object:
    try:
        return of(quantity.parse(text))
    except errors.BadInput as e:
        raise ValueError(e.problem) from e


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except errors.BadInput:
        return False
    return True


def _as_integer(one: object) -> int:
    if not _whole(one):
        raise ValueError("cannot convert value to integer")
    return _nanos(one) // _NANO


def _compared(one: object, other: object) -> int:
    here, there = _nanos(one), _nanos(other)
    return (here > there) - (here < there)


def _sum(one: object, other: object, sign: int) -> object:
    """Held as an int64 while both are and it fits; a zero takes the other's way."""
    here, there = _nanos(one), sign * _nanos(other)
    total = here + there
    held = (_whole(one) or not here) and (_whole(other) or not there)
    return _made(total, whole=held and _LEAST <= total // _NANO <= _MOST)


def _of_integer(number: int) -> object:
    return _made(number * _NANO, whole=True)


def functions() -> list[cel.FunctionDecl]:
    """The library."""
    return [
        _function("quantity", TYPE, [cel.Type.STRING], _parsed, member=False),
        _function("isQuantity", cel.Type.BOOL, [cel.Type.STRING], _is_quantity, member=False),
        _function("sign", cel.Type.INT, [TYPE], _sign, member=False),
        _function("isGreaterThan", cel.Type.BOOL, [TYPE, TYPE], lambda a, b: _compared(a, b) > 0),
        _function("isLessThan", cel.Type.BOOL, [TYPE, TYPE], lambda a, b: _compared(a, b) < 0),
        _function("compareTo", cel.Type.INT, [TYPE, TYPE], _compared),
        _function("asApproximateFloat", cel.Type.DOUBLE, [TYPE], _as_float),
        _function("asInteger", cel.Type.INT, [TYPE], _as_integer),
        _function("isInteger", cel.Type.BOOL, [TYPE], _whole),
        _arithmetic("add", 1),
        _arithmetic("sub", -1),
    ]


def _sign(one: object) -> int:
    return _compared(one, _of_integer(0))


def _as_float(one: object) -> float:
    return float(Fraction(_nanos(one), _NANO))


def _function(
    name: str,
    gives: cel.Type,
    takes: Sequence[cel.Type],
    act: Callable[..., object],
    *,
    member: bool = True,
) -> cel.FunctionDecl:
    return cel.FunctionDecl(name, [_overload(f"quantity_{name}", gives, takes, act, member=member)])


def _arithmetic(name: str, sign: int) -> cel.FunctionDecl:
    both = _overload(f"quantity_{name}", TYPE, [TYPE, TYPE], lambda a, b: _sum(a, b, sign))
    whole = _overload(
        f"quantity_{name}_int",
        TYPE,
        [TYPE, cel.Type.INT],
        lambda a, b: _sum(a, _of_integer(b), sign),
    )
    return cel.FunctionDecl(name, [both, whole])


def _overload(
    identity: str,
    gives: cel.Type,
    takes: Sequence[cel.Type],
    act: Callable[..., object],
    *,
    member: bool = True,
) -> cel.Overload:
    return cel.Overload(
        id=identity, return_type=gives, parameters=takes, is_member=member, impl=act
    )
