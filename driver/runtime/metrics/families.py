"""Metrics whose values live elsewhere: their names and labels, and figures by labels. Pure."""

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
    """A gauge: its name, what it says, and the names of its labels."""

    name: str
    description: str
    labels: Labels = ()

    def single(self, value: float) -> Figures:
        """The one series of a family without labels."""
        return {self.name: {NO_LABELS: value}}
