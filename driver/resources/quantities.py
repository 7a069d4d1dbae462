"""Kubernetes quantities, exactly: `80Gi`, `1500m`, `1e3`, never a float.

The grammar is that of apimachinery's resource.Quantity, which takes a suffix without digits for
none of it. Amounts finer than a nano round up, as there, and binary ones end at 2**63 - 1; the text
that was read is kept, so that writing gives back what was read.
"""

import functools
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from driver import errors

_NANO = 10**9
_MOST_BINARY = 2**63 - 1
PATTERN = re.compile(
    r"(?!$)([+-]?)([0-9]*(?:\.[0-9]*)?)(?:(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?[0-9]+))?",
    re.ASCII,
)
DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MAX_EXPONENT = 64
_MAX_LENGTH = 64
_MOST_TEXTS = 4096


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount in nano-units, and the text it was read from or is written as."""

    nanos: int
    text: str

    def __lt__(self, other: Self) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Self) -> bool:
        return self.nanos <= other.nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    @property
    def units(self) -> int:
        """Whole units (bytes, cores), rounded up."""
        return -(-self.nanos // _NANO)

    @property
    def millis(self) -> int:
        """Thousandths, rounded up: milli-cores."""
        return -(-self.nanos // (_NANO // 1000))


_TOO_FAR = Quantity(0, "")


def parse(text: object, path: str = "quantity") -> Quantity:
    """Read a quantity; equal texts give the same object, as long as it is remembered.

    Raises:
        BadInput: the text is not a quantity.
    """
    raw = str(text) if isinstance(text, int | str) and not isinstance(text, bool) else ""
    quantity = _read(raw) if len(raw) <= _MAX_LENGTH else None
    if quantity is None:
        raise errors.BadInput(path, f"{text!r} is not a quantity", "such as 80Gi, 1500m or 1e3")
    if quantity is _TOO_FAR:
        raise errors.BadInput(
            path, f"{raw!r} is out of range", f"an exponent within {_MAX_EXPONENT}"
        )
    return quantity


@functools.lru_cache(maxsize=_MOST_TEXTS)
def _read(raw: str) -> Quantity | None:
    match = PATTERN.fullmatch(raw)
    if match is None:
        return None
    sign, digits, suffix, exponent = match.groups()
    if exponent is not None and abs(int(exponent)) > _MAX_EXPONENT:
        return _TOO_FAR
    amount = Fraction(f"0{digits}0" if "." in digits else f"0{digits}") * _scale(suffix, exponent)
    nanos = -(-amount.numerator * _NANO // amount.denominator)
    if suffix in BINARY:
        nanos = min(nanos, _MOST_BINARY * _NANO)
    return Quantity(-nanos if sign == "-" else nanos, raw)


def _scale(suffix: str | None, exponent: str | None) -> Fraction:
    if suffix in BINARY:
        return Fraction(2 ** BINARY[suffix])
    power = int(exponent) if exponent is not None else DECIMAL.get(suffix or "", 0)
    return Fraction(10) ** power


def format_like(nanos: int, form: Quantity) -> Quantity:
    """An amount with a binary or a decimal suffix, as `form` has one: the canonical text."""
    if any(form.text.endswith(suffix) for suffix in BINARY) and nanos % _NANO == 0:
        return from_bytes(nanos // _NANO)
    power = max((p for p in (-9, *DECIMAL.values(), 0) if nanos % 10 ** (p + 9) == 0), default=0)
    suffix = (
        next((word for word, exponent in DECIMAL.items() if exponent == power), "") if nanos else ""
    )
    return Quantity(nanos, f"{nanos // 10 ** (power + 9) if suffix else nanos // _NANO}{suffix}")


def from_bytes(count: int) -> Quantity:
    """Bytes in the largest binary suffix that divides them: `81559Mi`."""
    for suffix, shift in sorted(BINARY.items(), key=lambda item: -item[1]):
        if 0 < abs(count) <= _MOST_BINARY and count % (1 << shift) == 0:
            return Quantity(count * _NANO, f"{count >> shift}{suffix}")
    return from_units(count)


def from_units(count: int) -> Quantity:
    """A plain whole number."""
    return Quantity(count * _NANO, str(count))
