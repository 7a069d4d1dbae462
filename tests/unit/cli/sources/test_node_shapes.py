"""The kinds of node that can be asked for, read of the release's ConfigMaps."""

import base64
from typing import Any

import pytest
import yaml

from driver import names
from driver.cli.sources import node_shapes
from driver.controller import config
from driver.scheduling.provisioning import observed_shapes, shape_status
from tests.support.builders import shapes


def a_map(name: str, **data: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ration-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **data}


def document(*results: dict[str, Any]) -> dict[str, Any]:
    text = yaml.safe_dump({"kind": "NodeShapes", "shapes": [*results]})
    return a_map(
        node_shapes.NAMES[0], data={"README": "of NodeShapes: see below", "any.yaml": text}
    )


def seen(text: str, key: str = "h100-8.json.gz") -> dict[str, Any]:
    return a_map(node_shapes.NAMES[1], binaryData={key: text})


def read(*results: dict[str, Any]) -> tuple[shape_status.ShapeStatus | None, list[str]]:
    problems: list[str] = []
    return node_shapes.parse_documents(results, names.DRIVER, problems), problems


def test_without_a_document_there_is_none() -> None:
    assert read(a_map("other", data={"a": "b"}), {"kind": "Node"}) == (None, [])


def test_the_document_is_known_by_its_kind_and_asks_in_its_namespace() -> None:
    status, problems = read(document(shapes.document("h100-8")))
    assert status is not None
    assert (status.namespace, [template.name for template in status.templates]) == (
        "ration-system",
        ["h100-8"],
    )
    assert status.measured == frozenset()
    assert problems == []


def test_observed_shapes_override_the_document() -> None:
    past = base64.b64encode(
        observed_shapes.encode(observed_shapes.ObservedShape(startup_s=(90.0, 80.0)))
    ).decode()
    status, problems = read(document(shapes.document("h100-8")), seen(past))
    assert status is not None
    assert (status.measured, status.templates[0].startup_s) == (frozenset({"h100-8"}), 90.0)
    assert problems == []


@pytest.mark.parametrize("text", ["no base64", base64.b64encode(b"no gzip").decode(), ""])
def test_unreadable_observed_shapes_are_named_and_the_document_counts(text: str) -> None:
    status, (problem,) = read(document(shapes.document("h100-8")), seen(text))
    assert status is not None
    assert status.measured == frozenset()
    assert "h100-8" in problem


def test_a_document_that_is_wrong_is_named_with_the_field() -> None:
    status, (problem,) = read(document(shapes.document("h100-8", gpus=0)))
    assert status is None
    assert "any.yaml" in problem
    assert "gpus" in problem


def test_the_names_are_those_of_the_chart_and_of_the_controllers_flag() -> None:
    assert node_shapes.NAMES[1] == config.ControllerConfig.model_fields["seen_shapes"].default
    assert node_shapes.NAMES[1] == f"{node_shapes.NAMES[0]}-seen"
