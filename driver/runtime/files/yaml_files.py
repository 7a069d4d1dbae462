"""YAML documents, by the path of a setting, or as texts."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from driver import errors

_UNREADABLE = (
    *(yaml.YAMLError, RecursionError),
    # Raised by PyYAML's own constructors: a 13th month, `!!bool x`, `!!timestamp x`.
    *(ValueError, KeyError, AttributeError, TypeError, IndexError),
)


def read_document(path: Path, kind: str) -> Mapping[str, object]:
    """Read the document at a path; `kind` describes what it should be.

    Raises:
        BadInput: it cannot be read, or is no document.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.BadInput(str(path), str(error), f"a {kind} document") from error
    return parse_document(text, str(path), kind)


def parse_document(text: str, location: str, kind: str) -> Mapping[str, object]:
    """Parse the document in a text. Raises BadInput."""
    try:
        document = yaml.safe_load(text)
    except _UNREADABLE as error:
        problem = f"{type(error).__name__}: {error}"
        raise errors.BadInput(location, problem, f"a {kind} document") from error
    if not isinstance(document, dict):
        raise errors.BadInput(location, f"is {type(document).__name__}", "a YAML mapping")
    return document
