"""Documents of shapes: what is wrong is told at its field."""

from typing import Any

import pytest

from driver import errors
from driver.api import node_shapes
from tests.support.builders import shapes


def read(*results: dict[str, Any], **document: Any) -> node_shapes.NodeShapes:
    return node_shapes.read({"shapes": [*results], **document}, "shapes.yaml")


def test_a_shape_costs_its_gpus_where_nothing_else_is_said() -> None:
    node_shape, other = read(shapes.document("a", 8), shapes.document("b", 8, cost=0.5)).shapes
    assert (node_shape.price, other.price) == (8.0, 0.5)


@pytest.mark.parametrize(
    ("more", "location"),
    [
        ({"cost": -1}, "shapes.yaml.shapes.0.cost: .*greater than or equal to 0"),
        ({"gpus": 0}, "shapes.yaml.shapes.0.gpus: "),
        ({"startup": "soon"}, "shapes.yaml.shapes.0.startup: "),
        ({"gpu": 8}, "shapes.yaml.shapes.0.gpu: is not a field"),
        ({"labels": {}}, "shapes.yaml.shapes.0.labels: "),
        (
            {"labels": {"kubernetes.io/gpu": "x"}},
            "kubernetes.io/gpu: is unknown: .*expected one of",
        ),
        ({"labels": {"kubernetes.io/hostname": "x"}}, "is another on each node"),
        ({"labels": {"ration.dev/pool-complete": "true"}}, "is a label that Ration writes"),
        ({"labels": {"a/b/c": "x"}}, "a/b/c: is no label's key"),
        ({"labels": {"pool": "no blanks"}}, "'no blanks' is no label's value"),
        ({"taints": [{"key": "a", "effect": "Never"}]}, "shapes.yaml.shapes.0.taints.0.effect"),
        ({"allocatable": {"cpu": "many"}}, "shapes.yaml.shapes.0.allocatable.cpu"),
    ],
)
def test_a_field_that_is_wrong_is_named(more: dict[str, Any], location: str) -> None:
    with pytest.raises(errors.BadInput, match=location):
        read(shapes.document("a") | more)


@pytest.mark.parametrize(
    "label",
    [
        *("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "example.com/pool"),
        *("karpenter.sh/capacity-type", "ration.dev/allocator", "pool"),
    ],
)
def test_labels_that_node_groups_give_are_taken(label: str) -> None:
    assert read(shapes.document("a") | {"labels": {label: "x"}}).shapes


def test_two_shapes_that_no_node_tells_apart_are_refused() -> None:
    twin = shapes.document("a") | {"name": "b"}
    with pytest.raises(errors.BadInput, match="of shape a too"):
        read(shapes.document("a"), twin)


def test_two_shapes_of_one_name_are_refused() -> None:
    twin = shapes.document("b") | {"name": "a"}
    with pytest.raises(errors.BadInput, match="there are two shapes a"):
        read(shapes.document("a"), twin)


def test_half_a_surrogate_pair_is_refused() -> None:
    """YAML can write it, and what is wrong with it could not be said."""
    with pytest.raises(errors.BadInput):
        read(shapes.document("a", labels={"\ud800": "x"}))
