"""Current status of the shapes that an autoscaler can create. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver.api import node_shapes
from driver.scheduling.provisioning import node_template, observed_shapes


@dataclass(frozen=True, slots=True)
class ShapeStatus:
    """Status of all shapes. `measured` are those with observed startup times, by name.

    `paused` are those that are not requested for a while, with the reason in words. Nodes are
    requested by pods in `namespace`.
    """

    namespace: str
    templates: tuple[node_template.NodeTemplate, ...] = ()
    measured: frozenset[str] = frozenset()
    paused: Mapping[str, str] = field(default_factory=dict)


def build_status(
    document: node_shapes.NodeShapes,
    observed_by_name: Mapping[str, observed_shapes.ObservedShape],
    namespace: str,
    driver: str,
) -> ShapeStatus:
    """Return the status by the document, and by observed shapes."""
    templates = (
        (
            node_template.from_document(shape, driver),
            observed_by_name.get(shape.name, observed_shapes.ObservedShape()),
        )
        for shape in document.shapes
    )
    return ShapeStatus(
        namespace,
        tuple(observed_shapes.apply_observed(shape, observed) for shape, observed in templates),
        frozenset(name for name, observed in observed_by_name.items() if observed.startup_s),
    )
