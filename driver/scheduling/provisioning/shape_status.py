"""What is to be seen of the kinds of node that an autoscaler can bring, as it is now. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver.api import node_shapes
from driver.scheduling.provisioning import node_template, observed_shapes


@dataclass(frozen=True, slots=True)
class Offer:
    """`measured` are the shapes whose start-up is that of nodes that came, by name.

    `resting` are those that are left alone for a while, with the reason in words. Nodes are asked
    for by pods in `namespace`.
    """

    namespace: str
    shapes: tuple[node_template.Shape, ...] = ()
    measured: frozenset[str] = frozenset()
    resting: Mapping[str, str] = field(default_factory=dict)


def of(
    document: node_shapes.NodeShapes,
    seen: Mapping[str, observed_shapes.Seen],
    namespace: str,
    driver: str,
) -> Offer:
    """By the document, and by what was learned of its shapes, by name."""
    known = (
        (node_template.of_document(one, driver), seen.get(one.name, observed_shapes.Seen()))
        for one in document.shapes
    )
    return Offer(
        namespace,
        tuple(observed_shapes.applied(one, past) for one, past in known),
        frozenset(name for name, past in seen.items() if past.starts_s),
    )
