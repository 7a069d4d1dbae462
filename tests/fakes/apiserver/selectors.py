"""Field and label selectors, as far as we use them, joined by commas.

`a=b`, `a!=b`, `a`, `!a`, and of labels `a in (b,c)`.
"""

import re
from typing import Any

Object = dict[str, Any]
_COMMA = re.compile(r",(?![^(]*\))")
_IN = re.compile(r"(\S+) in \((.*)\)")


def matches(obj: Object, field_selector: str, label_selector: str) -> bool:
    """Return whether both selectors, "" for none, choose the object."""
    labels = obj["metadata"].get("labels") or {}
    return all(_field(obj, t) for t in _terms(field_selector)) and all(
        _label(labels, t) for t in _terms(label_selector)
    )


def _terms(selector: str) -> list[str]:
    return [t.strip() for t in _COMMA.split(selector) if t.strip()]


def _field(obj: Object, term: str) -> bool:
    path, expected, equal = _split(term)
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return (str("" if value is None else value) == expected) is equal


def _label(labels: dict[str, str], term: str) -> bool:
    if match := _IN.fullmatch(term):
        key, values = match.groups()
        return labels.get(key) in {word.strip() for word in values.split(",")}
    if "=" not in term:
        return (term.removeprefix("!") in labels) is not term.startswith("!")
    key, expected, equal = _split(term)
    return (labels.get(key) == expected) is equal


def _split(term: str) -> tuple[str, str, bool]:
    if "!=" in term:
        key, expected = term.split("!=", 1)
        return key, expected, False
    key, expected = term.replace("==", "=").split("=", 1)
    return key, expected, True
