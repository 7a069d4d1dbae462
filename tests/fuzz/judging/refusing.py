"""Judge of our errors, for any input."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from driver import errors

LONGEST = 100_000
"""Bytes: more than any input has, times what escapes cost."""


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """A refusal of ours is an answer, if it can be told: in an event, a condition, a gRPC error."""
    message = ""
    try:
        yield
    except errors.RationError as error:
        message = str(error)
    assert len(message.encode()) <= LONGEST, f"a refusal of {len(message)} characters"


def json_of(data: bytes) -> Any:
    """The JSON value of bytes; None for what is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
