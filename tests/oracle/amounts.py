"""Quantities of Kubernetes as exact numbers, read here a second time: judges share no code."""

import re
from fractions import Fraction

_TEXT = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([KMGTPE]i)|([numkMGTPE]))?")
_BINARY: dict[str, int] = {
    f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)
}
_DECIMAL = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("MGTPE", start=2)},
}


def number(text: str) -> Fraction:
    """Return what a quantity says: "1500m" is 3/2."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    mantissa, exponent, binary, decimal = match.groups()
    if exponent is not None:
        return Fraction(f"{mantissa}e{exponent}")
    if binary is not None:
        return Fraction(mantissa) * _BINARY[binary]
    return Fraction(mantissa) * Fraction(_DECIMAL.get(decimal, 1))


def rounded(question: str | None, capacity: dict[str, object]) -> Fraction | None:
    """Return the consumed amount (KEP-5075); None where the request policy does not allow it."""
    policy = capacity.get("requestPolicy")
    value = number(str(capacity["value"]))
    if not isinstance(policy, dict):
        return value if question is None else number(question)
    if question is None:
        return number(policy["default"]) if "default" in policy else value
    fraction = number(question)
    if "validValues" in policy:
        return min(
            (share for share in map(number, policy["validValues"]) if share >= fraction),
            default=None,
        )
    if "validRange" in policy:
        return _in_range(fraction, policy["validRange"])
    return fraction


def _in_range(fraction: Fraction, allowed: dict[str, str]) -> Fraction | None:
    low = number(allowed["min"])
    share = max(fraction, low)
    if "step" in allowed:
        step = number(allowed["step"])
        share = low + -((low - share) // step) * step
    if "max" in allowed and share > number(allowed["max"]):
        return None
    return share
