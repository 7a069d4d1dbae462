"""Values of the chart for nodes on demand."""

from typing import Annotated

import pydantic

from driver.api import crd, node_shapes
from driver.controller.config import ControllerConfig
from hack.chart import parts

_TAINT = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"


class NodesOwn(parts.Part):
    """Nodes on demand: what finds no place has nodes asked for, which an autoscaler brings."""

    enabled: bool = pydantic.Field(
        default=False,
        description="Ask for nodes, mark those there are, and move gangs off those that go.",
    )
    ttl: crd.Duration = pydantic.Field(
        default=node_shapes.NodeShapes().ttl,
        description=node_shapes.NodeShapes.model_fields["ttl"].description,
    )
    max_in_flight: Annotated[int, pydantic.Field(ge=1, le=node_shapes.MOST_NODES)] = pydantic.Field(
        default=node_shapes.NodeShapes().maxInFlight,
        description=node_shapes.NodeShapes.model_fields["maxInFlight"].description,
    )
    shapes: list[node_shapes.NodeShape] = pydantic.Field(
        default=[],
        description="Shapes of a NodeShapes document: the kinds of node that the autoscaler can "
        "bring; empty: none is asked for.",
    )


Nodes = parts.table(
    "Nodes",
    NodesOwn,
    parts.flags(
        ControllerConfig,
        "placeholder_image",
        interruption_taints=list[Annotated[str, pydantic.Field(pattern=_TAINT)]],
    ),
)
