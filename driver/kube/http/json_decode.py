"""Decodes the API server's JSON, however deeply nested. Pure.

A claim's opaque configuration may be any JSON object of 10 KiB, such as five thousand nested lists,
and Python's parser gives up at a thousand. One claim would make the listing of all claims fail,
repeatedly.
"""

import json
import re
from collections.abc import Callable

MOST_DEPTH = 400
"""Deeper than any object of the API, and than the accepted opaque parts (`fields.MOST_NESTED`), so
that a truncated part is never accepted.
"""
Bulk = Callable[[bytes], object]
"""Decodes lists of one kind, and frames of its watch, sooner and for one parser; None for another
message.
"""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"


def decode(raw: bytes, bulk: Bulk | None = None) -> object:
    """Return the value. In one that cannot be parsed, levels below MOST_DEPTH are null.

    Raises:
        ValueError: it is no JSON.
    """
    value = None if bulk is None else bulk(raw)
    if value is not None:
        return value
    try:
        return json.loads(raw)
    except RecursionError:
        return json.loads(_cut_depth(raw))


def _cut_depth(raw: bytes) -> bytes:
    parts: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(raw):
        bracket = token[0]
        if bracket in _OPENING:
            if depth == MOST_DEPTH:
                parts += (raw[start : token.start()], b"null")
            depth += 1
        elif bracket in _CLOSING:
            depth -= 1
            if depth == MOST_DEPTH:
                start = token.end()
    if depth <= MOST_DEPTH:
        parts.append(raw[start:])
    return b"".join(parts)
