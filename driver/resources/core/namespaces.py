"""Namespaces: their labels, by which affinity terms choose among them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver.resources import fields


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


def parse(obj: fields.Raw) -> Namespace:
    """Read a Namespace."""
    meta = fields.mapping(obj, "metadata")
    return Namespace(
        fields.required_text(meta, "name", "metadata"),
        fields.text_map(meta, "labels", "metadata"),
    )
