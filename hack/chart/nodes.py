"""Values of the chart for nodes on demand."""

from typing import Annotated

import pydantic

from driver.api import crd, node_shapes
from driver.controller.config import ControllerConfig
from hack.chart import parts

_TAINT = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"


class NodesOwn(parts.Part):
    """Node provisioning: requests nodes from an autoscaler for pending workloads."""

    enabled: bool = pydantic.Field(
        default=False,
        description="Request nodes from an autoscaler, protect nodes in use from scale-down, and "
        "move gangs off nodes that are removed.",
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
        description="Shapes of the NodeShapes document: the node shapes that the autoscaler can "
        "provision. Empty: no node is requested.",
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
