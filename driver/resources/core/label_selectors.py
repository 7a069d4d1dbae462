"""Label selectors (meta/v1): parsed once, matched against an object's labels."""

from collections.abc import Mapping
from dataclasses import dataclass

from driver.resources import fields
from driver.resources.core import node_selectors


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


def _equal(labels: Mapping[str, str]) -> list[node_selectors.Expression]:
    return [node_selectors.Expression(key, "In", (value,)) for key, value in sorted(labels.items())]
