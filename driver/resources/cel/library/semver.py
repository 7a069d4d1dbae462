"""Kubernetes' versions in CEL (k8s.io/apiserver pkg/cel/library/semverlib.go of v0.37.1). Pure.

What comes after `+` says nothing about the order, so it is left out: `==` is by value.
"""

import functools
from collections.abc import Callable
from typing import Final

import semver

from driver.resources.cel import messages
from driver.resources.cel.declarations import Overload

_V: Final = messages.SEMVER
_MOST: Final = 2**64 - 1


@functools.lru_cache(maxsize=4096)
def new_version(text: str) -> object:
    """Return a version as a CEL value; ValueError if invalid (semver.org, 2.0.0)."""
    result = _parsed(text)
    return messages.new_value(_V, str(result.replace(build=None)))


def _parsed(text: str) -> semver.Version:
    if not text.isascii():
        raise ValueError(f"{text!r} is no semantic version")
    result = semver.Version.parse(text)
    numbers = [result.major, result.minor, result.patch]
    numbers += [int(part) for part in (result.prerelease or "").split(".") if part.isdecimal()]
    if max(numbers) > _MOST:
        raise ValueError(f"a number of {text!r} is out of range")
    return result


def _normal(text: str) -> str:
    """`v1.02` as `1.2.0`."""
    parts = text.removeprefix("v").split(".", 2)
    if len(parts) < 3 and set(parts[-1]) & set("+-"):  # noqa: PLR2004 - major, minor, patch
        raise ValueError("a short version has no pre-release and no build")
    return ".".join([*map(_without_zeros, parts), "0", "0"][: max(3, len(parts))])


def _without_zeros(part: str) -> str:
    if len(part) < 2:  # noqa: PLR2004 - a single digit stays
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isdecimal() else f"0{stripped}"


def _normalized(text: str, normalize: bool) -> object:  # noqa: FBT001 - as CEL calls it
    return new_version(_normal(text) if normalize else text)


def _is_version(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 - as above
    try:
        _normalized(text, normalize)
    except ValueError:
        return False
    return True


def _compared(left: object, other: object) -> int:
    here: int = _held(left).compare(_held(other))
    return here


def _held(value: object) -> semver.Version:
    return semver.Version.parse(messages.value_text(value))


def _part(name: str) -> Callable[[object], object]:
    def part(value: object) -> object:
        number: int = getattr(_held(value), name)
        # Kubernetes makes an int of a uint64.
        return number if number < 2**63 else number - 2**64

    return part


def overloads() -> list[Overload]:
    """The library."""
    both, text = (_V, _V), ("string",)
    return [
        Overload("semver", "string_to_semver", text, _V, new_version, member=False),
        Overload("semver", "string_bool_to_semver", (*text, "bool"), _V, _normalized, member=False),
        Overload("isSemver", "is_semver_string", text, "bool", _is_version, member=False),
        Overload(
            "isSemver", "is_semver_string_bool", (*text, "bool"), "bool", _is_version, member=False
        ),
        Overload(
            "isGreaterThan",
            "semver_is_greater_than",
            both,
            "bool",
            lambda a, b: _compared(a, b) > 0,
        ),
        Overload(
            "isLessThan", "semver_is_less_than", both, "bool", lambda a, b: _compared(a, b) < 0
        ),
        Overload("compareTo", "semver_compare_to", both, "int", _compared),
        Overload("major", "semver_major", (_V,), "int", _part("major")),
        Overload("minor", "semver_minor", (_V,), "int", _part("minor")),
        Overload("patch", "semver_patch", (_V,), "int", _part("patch")),
    ]
