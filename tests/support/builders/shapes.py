"""Shapes of nodes in tests, and what waits for such nodes."""

from typing import Any

from driver import names
from driver.api import node_shapes
from driver.resources.core import nodes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import fill_simulation, node_template, planner
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import gangs, objects

INSTANCE = "node.kubernetes.io/instance-type"
H100 = "NVIDIA H100 80GB HBM3"


def document(name: str, gpus: int = 8, **more: Any) -> dict[str, Any]:
    """A shape as it is written."""
    labels = {INSTANCE: name}
    return {"name": name, "labels": labels, "gpus": gpus, "product": H100, "memory": "80Gi"} | more


def a_shape(name: str = "h100-8", gpus: int = 8, **more: Any) -> node_template.NodeTemplate:
    read = node_shapes.read({"shapes": [document(name, gpus, **more)]}, "shapes.yaml")
    return node_template.from_document(read.shapes[0], names.DRIVER)


EIGHT = a_shape("h100-8", 8)
FOUR = a_shape("h100-4", 4, cost=4.4)
ONE = a_shape("h100-1", 1, cost=1.2)


def empty(*existing: nodes.Node) -> cluster_state.ClusterState:
    """A cluster without a GPU."""
    return cluster_state.build(
        names.DRIVER, snapshots.caches(existing or [objects.node("cpu-only")])
    )


def alone(
    name: str = "train", gpus: int = 1, leaf: str = "", **spec: Any
) -> provisioning_demand.NodeDemand:
    """A pod that waits."""
    return provisioning_demand.NodeDemand(
        f"pod/default/{name}", (gangs.member(name, gpus, **spec),), queue=leaf
    )


def gang(
    name: str, *members: allocator_types.Workload, leaf: str = ""
) -> provisioning_demand.NodeDemand:
    return provisioning_demand.NodeDemand(f"gang/default/{name}", members, queue=leaf)


def alike(name: str, count: int, gpus: int = 8, **spec: Any) -> provisioning_demand.NodeDemand:
    """A gang of members that only their names tell apart."""
    return gang(name, *(gangs.member(f"{name}-{index:02}", gpus, **spec) for index in range(count)))


def plan(
    *node_demands: provisioning_demand.NodeDemand,
    shapes: tuple[node_template.NodeTemplate, ...] = (EIGHT,),
    in_flight: fill_simulation.Nodes | None = None,
    most: int = 16,
    on: cluster_state.ClusterState | None = None,
    **more: Any,
) -> planner.Plan:
    supply = planner.Supply(shapes, in_flight or {}, most, **more)
    return planner.make_plan(on or empty(), supply, node_demands, snapshots.DECIDING)


def asked(source: planner.Plan) -> list[str]:
    """The shapes of the nodes that are asked for."""
    return sorted(request.template.name for request in source.requests)
