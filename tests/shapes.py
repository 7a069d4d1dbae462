"""Shapes of nodes in tests, and what waits for such nodes."""

from typing import Any

from driver import names
from driver.api import node_shapes
from driver.controller import picture
from driver.controller.allocation import outcome
from driver.controller.provisioning import filling, planning, shape, wishes
from driver.resources import nodes
from tests import gangs, objects, worlds

INSTANCE = "node.kubernetes.io/instance-type"
H100 = "NVIDIA H100 80GB HBM3"


def document(name: str, gpus: int = 8, **more: Any) -> dict[str, Any]:
    """A shape as it is written."""
    labels = {INSTANCE: name}
    return {"name": name, "labels": labels, "gpus": gpus, "product": H100, "memory": "80Gi"} | more


def a_shape(name: str = "h100-8", gpus: int = 8, **more: Any) -> shape.Shape:
    read = node_shapes.read({"shapes": [document(name, gpus, **more)]}, "shapes.yaml")
    return shape.of_document(read.shapes[0], names.DRIVER)


EIGHT = a_shape("h100-8", 8)
FOUR = a_shape("h100-4", 4, cost=4.4)
ONE = a_shape("h100-1", 1, cost=1.2)


def empty(*there: nodes.Node) -> picture.Picture:
    """A cluster without a GPU."""
    return picture.build(names.DRIVER, worlds.caches(there or [objects.node("cpu-only")]))


def alone(name: str = "train", gpus: int = 1, leaf: str = "", **spec: Any) -> wishes.Wish:
    """A pod that waits."""
    return wishes.Wish(f"pod/default/{name}", (gangs.member(name, gpus, **spec),), leaf=leaf)


def gang(name: str, *members: outcome.Workload, leaf: str = "") -> wishes.Wish:
    return wishes.Wish(f"gang/default/{name}", members, leaf=leaf)


def alike(name: str, count: int, gpus: int = 8, **spec: Any) -> wishes.Wish:
    """A gang of members that only their names tell apart."""
    return gang(name, *(gangs.member(f"{name}-{at:02}", gpus, **spec) for at in range(count)))


def plan(
    *found: wishes.Wish,
    shapes: tuple[shape.Shape, ...] = (EIGHT,),
    in_flight: filling.Nodes | None = None,
    most: int = 16,
    on: picture.Picture | None = None,
    **more: Any,
) -> planning.Plan:
    supply = planning.Supply(shapes, in_flight or {}, most, **more)
    return planning.plan(on or empty(), supply, found, worlds.DECIDING)


def asked(of: planning.Plan) -> list[str]:
    """The shapes of the nodes that are asked for."""
    return sorted(one.shape.name for one in of.asks)
