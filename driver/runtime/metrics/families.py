"""Metric families whose values live elsewhere: names, labels, and figures by labels. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

Labels = tuple[str, ...]
"""A series' label values, in the order of its family's labels."""
Figures = Mapping[str, Mapping[Labels, float]]
"""The series of each family, by the family's name."""
NO_LABELS: Labels = ()
"""The labels of a family without any."""


@dataclass(frozen=True, slots=True)
class Family:
    """A gauge: its name, its description, and the names of its labels."""

    name: str
    description: str
    labels: Labels = ()

    def single(self, value: float) -> Figures:
        """Return the one series of a family without labels."""
        return {self.name: {NO_LABELS: value}}
