"""What is to be seen of the kinds of node that an autoscaler can bring, as it is now. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver.api import node_shapes
from driver.scheduling.provisioning import node_template, observed_shapes


@dataclass(frozen=True, slots=True)
class ShapeStatus:
    """`measured` are the shapes whose start-up is that of nodes that came, by name.

    `resting` are those that are left alone for a while, with the reason in words. Nodes are asked
    for by pods in `namespace`.
    """

    namespace: str
    templates: tuple[node_template.NodeTemplate, ...] = ()
    measured: frozenset[str] = frozenset()
    paused: Mapping[str, str] = field(default_factory=dict)


def build_status(
    document: node_shapes.NodeShapes,
    seen: Mapping[str, observed_shapes.ObservedShape],
    namespace: str,
    driver: str,
) -> ShapeStatus:
    """By the document, and by what was learned of its shapes, by name."""
    known = (
        (
            node_template.from_document(one, driver),
            seen.get(one.name, observed_shapes.ObservedShape()),
        )
        for one in document.shapes
    )
    return ShapeStatus(
        namespace,
        tuple(observed_shapes.apply_observed(one, past) for one, past in known),
        frozenset(name for name, past in seen.items() if past.startup_s),
    )
