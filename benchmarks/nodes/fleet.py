"""The kinds of node of the simulated days, as a NodeShapes document has them. Pure.

A small node costs a little more for each GPU, and comes sooner.
"""

from dataclasses import replace

from driver import names
from driver.api import node_shapes
from driver.scheduling.provisioning import node_template

_DOCUMENT = node_shapes.NodeShapes(
    maxInFlight=200,
    shapes=tuple(
        node_shapes.NodeShape(
            name=f"gpu-{gpus}",
            labels={"node.kubernetes.io/instance-type": f"gpu-{gpus}"},
            gpus=gpus,
            product="NVIDIA H100 80GB HBM3",
            memory="80Gi",
            allocatable={"cpu": f"{24 * gpus}", "memory": f"{192 * gpus}Gi"},
            cost=cost,
            startup=startup,
        )
        for gpus, cost, startup in ((8, 8.0, "6m"), (4, 4.2, "5m"), (1, 1.1, "4m"))
    ),
)
MOST = _DOCUMENT.maxInFlight
GPUS = {one.name: one.gpus for one in _DOCUMENT.shapes}
SHAPES = tuple(node_template.from_document(one, names.DRIVER) for one in _DOCUMENT.shapes)
AT_ONCE = replace(SHAPES[0], startup_s=0.0)
"""The largest, as if it took no time to come."""


def milli(one: node_template.NodeTemplate) -> int:
    """Thousandths of GPUs that a node of it has."""
    return GPUS[one.name] * 1000
