"""Inputs made of other inputs: JSON bent where it stands, or bytes. The same seed, the same input.

A fuzzer that knows nothing but bytes rarely gets beyond a parser; half of what it tries is made
here.
"""

import copy
import json
import random  # noqa: TID251 - a generator of its own, seeded
from collections.abc import Sequence
from typing import Any

_DEEP = 3000
_FLOATS = 2**53
_MOST_PLACES = 200
"""In a value of which a part is still repeated: it grows forty times by each."""
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**308, 0.5, 1e308, 5e-324),
    *("", "x", "0", "-1", "true", "1Gi", "1e64", "1e-64", "NaN", "\ud800", "\0", "é" * 40),
    *("../../etc", "/dev/sda", "a/b", "a" * 300, "9" * 80, "[" * 60, "\n", "\u2028"),
    *([], {}, [[]], [{}], {"": ""}, {"a": {"a": 1}}),
)
_TOKENS = (
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"NaN", b"Infinity", b"-0", b"1e999"),
    *(b"\xff", b"\xc0\x80", b"\0", b"\\ud800", b"\\u0000", b"9" * 400, b"(", b")", b"?", b"!"),
    *(b"&a ", b"*a", b"!!bool ", b"!!timestamp ", b"2024-13-45", b"<<: ", b"\xe2\x80\xa8"),
)


def mutated(data: bytes, others: Sequence[bytes], seed: int) -> bytes:
    """One input made of another, and of parts of others."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    if chance.random() < 0.6:
        value = _value(data)
        if value is not None:
            for _ in range(chance.choice((1, 1, 1, 2, 4))):
                value = _bent(value, others, chance)
            return _written(value, chance)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        data = _broken(data, others, chance)
    return data


def _value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _written(value: Any, chance: random.Random) -> bytes:
    text = json.dumps(value, ensure_ascii=chance.random() < 0.8)
    return text.encode(errors="surrogatepass")


def _bent(value: Any, others: Sequence[bytes], chance: random.Random) -> Any:
    """The value with something changed at a place of it, or itself replaced."""
    places = list(_places(value))
    if not places:
        return copy.deepcopy(chance.choice(_ODD))
    inside, key = chance.choice(places)
    match chance.randrange(7):
        case 0:
            del inside[key]
        case 1 | 2:
            inside[key] = copy.deepcopy(chance.choice(_ODD))
        case 3:
            inside[key] = _part(others, chance)
        case 4 if isinstance(inside, dict):
            other = chance.choice(("", "kind", f"{key}s", str(key).upper(), "\ud800"))
            inside[other] = copy.deepcopy(inside[key])
        case 5 if len(places) <= _MOST_PLACES:
            inside[key] = [inside[key]] * chance.choice((1, 2, 40))
        case _:
            inside[key] = _like(inside[key], chance)
    return value


def _like(value: Any, chance: random.Random) -> Any:
    """Return what is nearly the same: the type that a lax reader would take for it."""
    match value:
        case bool():
            return chance.choice((int(value), str(value).lower(), not value))
        case int() | float():
            return chance.choice(
                (str(value), value / 2 if abs(value) < _FLOATS else 0.5, -value, value + 1)
            )
        case str():
            return chance.choice((value + " ", value.upper(), value[:-1], value * 3, f"{value}\n"))
        case _:
            return str(value)


def _part(others: Sequence[bytes], chance: random.Random) -> Any:
    value = _value(chance.choice(others)) if others else None
    places = list(_places(value))
    if not places:
        return value
    inside, key = chance.choice(places)
    return inside[key]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value: what it is inside of, and under which key."""
    results: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        popped = waiting.pop()
        for key in _keys(popped):
            results.append((popped, key))
            if isinstance(popped[key], dict | list):
                waiting.append(popped[key])
    return results


def _keys(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value)
        case list():
            return list(range(len(value)))
        case _:
            return []


def _broken(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    index = chance.randint(0, len(data))
    to = min(len(data), index + chance.choice((0, 1, 1, 4, 32)))
    match chance.randrange(6):
        case 0:
            return data[:index] + data[to:]
        case 1:
            return data[:index] + chance.randbytes(max(1, to - index)) + data[to:]
        case 2:
            return data[:index] + chance.choice(_TOKENS) + data[to:]
        case 3 if others:
            other = chance.choice(others)
            return data[:index] + other[chance.randint(0, len(other)) :]
        case 4:
            around = chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")))
            times = chance.choice((1, 90, _DEEP))
            return data[:index] + around[0] * times + data[index:to] + around[1] * times + data[to:]
        case _:
            return data[:index] + data[index:to] * chance.choice((2, 100)) + data[to:]
