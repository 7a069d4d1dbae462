"""The API server's JSON as Python values, however deeply it is nested. Pure.

Of a claim's opaque configuration the API server takes any JSON object of 10 KiB, which may be five
thousand lists in each other, and Python's parser gives up at a thousand. One claim would have the
listing of all claims fail, again and again.
"""

import json
import re

MOST_DEPTH = 400
"""Deeper than any object that the API defines, and than what is taken of opaque parts
(`fields.MOST_NESTED`), so that nothing that is cut off here is ever taken for read."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"


def decode(raw: bytes) -> object:
    """The value. What is nested deeper than MOST_DEPTH in one that cannot be parsed is null.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return json.loads(raw)
    except RecursionError:
        return json.loads(_cut_depth(raw))


def _cut_depth(raw: bytes) -> bytes:
    kept: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(raw):
        mark = token[0]
        if mark in _OPENING:
            if depth == MOST_DEPTH:
                kept += (raw[start : token.start()], b"null")
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
            if depth == MOST_DEPTH:
                start = token.end()
    if depth <= MOST_DEPTH:
        kept.append(raw[start:])
    return b"".join(kept)
