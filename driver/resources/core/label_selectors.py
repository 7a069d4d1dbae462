"""Label selectors (meta/v1): parsed once, matched against an object's labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from driver import errors
from driver.resources import fields
from driver.resources.core import node_selectors

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME}"
_PRESENCE = re.compile(rf"(!?)\s*({_KEY})")
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*((?:{_NAME})?)")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)")
_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; without any it matches every object."""

    requirements: tuple[node_selectors.Expression, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is required."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels satisfy every requirement."""
        return all(need.is_satisfied(labels.get(need.key)) for need in self.requirements)

    def with_labels(self, labels: Mapping[str, str]) -> "LabelSelector":
        """The selector that asks for these labels as well (`matchLabelKeys`, KEP-3243)."""
        return LabelSelector((*_equal(labels), *self.requirements))


def parse(obj: fields.Raw, key: str, prefix: str) -> LabelSelector | None:
    """Read a v1.LabelSelector field; None, which matches nothing, where it is absent."""
    if obj.get(key) is None:
        return None
    path = f"{prefix}.{key}"
    selector = fields.mapping(obj, key, prefix)
    equal = _equal(fields.text_map(selector, "matchLabels", path))
    return LabelSelector(
        (*equal, *node_selectors.parse_expressions(selector, "matchExpressions", path))
    )


def parse_text(text: str, path: str) -> LabelSelector:
    """Read a selector in kubectl's notation, such as `pool=gpu,zone in (a,b),!spot`.

    Raises:
        BadInput: the requirement that is invalid.
    """
    parts = (part.strip() for part in _OUTSIDE_PARENTHESES.split(text))
    return LabelSelector(tuple(_parse_requirement(part, path) for part in parts))


def _parse_requirement(text: str, path: str) -> node_selectors.Expression:
    if match := _PRESENCE.fullmatch(text):
        return node_selectors.Expression(match[2], "DoesNotExist" if match[1] else "Exists")
    if match := _EQUALITY.fullmatch(text):
        return node_selectors.Expression(match[1], _OPERATORS[match[2]], (match[3],))
    if match := _SET.fullmatch(text):
        values = tuple(value.strip() for value in match[3].split(","))
        return node_selectors.Expression(match[1], _OPERATORS[match[2]], values)
    expected = "a label selector such as `pool=gpu,zone in (a,b),!spot`"
    raise errors.BadInput(path, f"{text!r} is no requirement on labels", expected)


def _equal(labels: Mapping[str, str]) -> list[node_selectors.Expression]:
    return [node_selectors.Expression(key, "In", (value,)) for key, value in sorted(labels.items())]
