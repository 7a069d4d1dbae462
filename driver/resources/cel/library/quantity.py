"""Kubernetes' quantities in CEL (k8s.io/apiserver pkg/cel/library/quantity.go of v0.37.1). Pure.

How an amount was written decides over `isInteger` there (`1.5Gi` is none, though it is a whole
number), and `==` must not see that: it is the sign of a zero (`messages`).
"""

import functools
import math
from fractions import Fraction
from typing import Final

from driver import errors
from driver.resources import quantities
from driver.resources.cel import messages
from driver.resources.cel.declarations import Overload

_NANO: Final = 10**9
_DIGITS: Final = 18
_BINARY_DIGITS: Final = 15
"""As many fit the reference's fast way of holding an amount (resource.ParseQuantity)."""
_MOST: Final = 2**63 - 1
_LEAST: Final = -(2**63)


def new_quantity(amount: quantities.Quantity) -> object:
    """Return a quantity as a CEL value."""
    return _of(amount.nanos, amount.text)


@functools.lru_cache(maxsize=4096)
def _of(nanos: int, text: str) -> object:
    return _made(nanos, whole=_is_whole(text))


def _made(nanos: int, *, whole: bool) -> object:
    return messages.new_value(messages.QUANTITY, str(nanos), sign=whole)


def _nanos(value: object) -> int:
    return int(messages.value_text(value))


def _whole(value: object) -> bool:
    return math.copysign(1.0, messages.value_sign(value)) < 0


def _is_whole(text: str) -> bool:
    """Return whether the reference stores an amount written like this as an int64."""
    match = quantities.PATTERN.fullmatch(text)
    if match is None:
        return False
    _, digits, suffix, exponent = match.groups()
    number, _, part = digits.partition(".")
    number = number.lstrip("0") or "0"
    binary = quantities.BINARY.get(suffix or "")
    if binary is not None:
        room = _BINARY_DIGITS - len(number) - binary * 3 // 10 - 1
        return not part and room >= 0
    power = int(exponent) if exponent is not None else quantities.DECIMAL.get(suffix or "", 0)
    fits = len(number) + len(part) <= _DIGITS and power >= len(part)
    return fits and int(number + part) * 10 ** (power - len(part)) <= _MOST


def _parsed(text: str) -> object:
    try:
        return new_quantity(quantities.parse(text))
    except errors.BadInput as e:
        raise ValueError(e.problem) from e


def _is_quantity(text: str) -> bool:
    try:
        quantities.parse(text)
    except errors.BadInput as e:
        if quantities.PATTERN.fullmatch(text):  # longer or larger than we read
            raise ValueError(e.problem) from e
        return False
    return True


def _as_integer(value: object) -> int:
    if not _whole(value):
        raise ValueError("cannot convert value to integer")
    return _nanos(value) // _NANO


def _compared(left: object, other: object) -> int:
    here, right = _nanos(left), _nanos(other)
    return (here > right) - (here < right)


def _sum(left: object, other: object, sign: int) -> object:
    """Held as an int64 while both are and it fits; a zero takes the other's way."""
    here, right = _nanos(left), sign * _nanos(other)
    total = here + right
    held = (_whole(left) or not here) and (_whole(other) or not right)
    return _made(total, whole=held and _LEAST <= total // _NANO <= _MOST)


def _of_int(number: int) -> object:
    return _made(number * _NANO, whole=True)


_Q: Final = messages.QUANTITY


def overloads() -> list[Overload]:
    """The library."""
    return [
        Overload("quantity", "string_to_quantity", ("string",), _Q, _parsed, member=False),
        Overload(
            "isQuantity", "is_quantity_string", ("string",), "bool", _is_quantity, member=False
        ),
        Overload("sign", "quantity_sign", (_Q,), "int", _sign, member=False),
        Overload("isGreaterThan", "quantity_is_greater_than", (_Q, _Q), "bool", _is_greater),
        Overload("isLessThan", "quantity_is_less_than", (_Q, _Q), "bool", _is_less),
        Overload("compareTo", "quantity_compare_to", (_Q, _Q), "int", _compared),
        Overload("asApproximateFloat", "quantity_get_float", (_Q,), "double", _as_float),
        Overload("asInteger", "quantity_get_int", (_Q,), "int", _as_integer),
        Overload("isInteger", "quantity_is_integer", (_Q,), "bool", _whole),
        Overload("add", "quantity_add", (_Q, _Q), _Q, lambda a, b: _sum(a, b, 1)),
        Overload("add", "quantity_add_int", (_Q, "int"), _Q, lambda a, b: _sum(a, _of_int(b), 1)),
        Overload("sub", "quantity_sub", (_Q, _Q), _Q, lambda a, b: _sum(a, b, -1)),
        Overload("sub", "quantity_sub_int", (_Q, "int"), _Q, lambda a, b: _sum(a, _of_int(b), -1)),
    ]


def _is_greater(left: object, other: object) -> bool:
    return _compared(left, other) > 0


def _is_less(left: object, other: object) -> bool:
    return _compared(left, other) < 0


def _sign(value: object) -> int:
    return _compared(value, _of_int(0))


def _as_float(value: object) -> float:
    return float(Fraction(_nanos(value), _NANO))
