"""Documents in YAML, by the path that a setting names, or as texts."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from driver import errors

_UNREADABLE = (
    *(yaml.YAMLError, RecursionError),
    # What PyYAML lets out of its own constructors: a 13th month, `!!bool x`, `!!timestamp x`.
    *(ValueError, KeyError, AttributeError, TypeError, IndexError),
)


def read_document(path: Path, kind: str) -> Mapping[str, object]:
    """The document at a path; `kind` is what it should be, in words.

    Raises:
        BadInput: it cannot be read, or is none.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.BadInput(str(path), str(error), f"a {kind} document") from error
    return parse_document(text, str(path), kind)


def parse_document(text: str, where: str, kind: str) -> Mapping[str, object]:
    """The document in a text. Raises BadInput."""
    try:
        document = yaml.safe_load(text)
    except _UNREADABLE as error:
        problem = f"{type(error).__name__}: {error}"
        raise errors.BadInput(where, problem, f"a {kind} document") from error
    if not isinstance(document, dict):
        raise errors.BadInput(where, f"is {type(document).__name__}", "a YAML mapping")
    return document
