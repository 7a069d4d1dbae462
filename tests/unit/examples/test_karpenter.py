"""The files of examples/karpenter agree with each other, and bring what the page says."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import names
from driver.api import node_shapes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import node_template, planner
from hack.chart import helm
from tests.support.builders import objects, shapes

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "karpenter"
VALUES: dict[str, Any] = yaml.safe_load((FOLDER / "install" / "values.yaml").read_text())
NODES = VALUES["controller"]["nodes"]
HOW_TO = (ROOT / "docs" / "how-to" / "karpenter.md").read_text()


def found(name: str) -> list[Any]:
    return helm.objects((FOLDER / name).read_text())


def of_kind(kind: str, name: str) -> Any:
    (raw,) = [raw for raw in found(name) if raw["kind"] == kind]
    return raw


def document() -> node_shapes.NodeShapes:
    reported = {key: value for key, value in NODES.items() if key != "enabled"}
    return node_shapes.read(reported, "values.yaml")


def test_the_document_of_the_values_is_read_by_the_controller() -> None:
    assert [shape.name for shape in document().shapes] == ["h100-8"]


@pytest.mark.parametrize("file", ["nodepool.yaml", "nodepool-aws.yaml"])
def test_a_node_of_the_pool_has_the_labels_and_taints_of_the_shape(file: str) -> None:
    template = of_kind("NodePool", file)["spec"]["template"]
    single = {
        requirement["key"]: requirement["values"][0]
        for requirement in template["spec"]["requirements"]
        if requirement["operator"] == "In" and len(requirement["values"]) == 1
    }
    (node_shape,) = document().shapes
    assert node_shape.labels.items() <= {**template["metadata"]["labels"], **single}.items()
    assert [taint.model_dump() for taint in node_shape.taints] == template["spec"]["taints"]


def test_the_pool_on_aws_differs_only_by_whose_nodes_they_are() -> None:
    ours, aws = (of_kind("NodePool", name) for name in ("nodepool.yaml", "nodepool-aws.yaml"))
    for entry in (ours, aws):
        entry["spec"]["template"]["spec"].pop("nodeClassRef")
        entry["spec"]["disruption"].pop("consolidateAfter")
    assert ours == aws


def test_the_node_pool_matches_offerings_and_its_shape() -> None:
    pool = of_kind("NodePool", "nodepool.yaml")["spec"]["template"]["spec"]["requirements"]
    request = {entry["key"]: entry["values"] for entry in pool}
    sold = {
        load["name"]: load
        for load in json.loads((FOLDER / "install" / "instance-types.json").read_text())
    }
    (name,) = request[shapes.INSTANCE]
    kinds = {
        value
        for offering in sold[name]["offerings"]
        for requirement in offering["Requirements"]
        if requirement["key"] == "karpenter.sh/capacity-type"
        for value in requirement["values"]
    }
    assert {*request["karpenter.sh/capacity-type"]} <= kinds
    assert int(sold[name]["resources"]["cpu"]) > int(document().shapes[0].allocatable["cpu"])


def waiting(owner: str) -> provisioning_demand.NodeDemand:
    """The pods of a Deployment or Job of work.yaml, with claims by its template."""
    raw = next(
        entry
        for entry in found("work.yaml")
        if entry["metadata"]["name"] == owner and "spec" in entry
    )
    count = raw["spec"].get("replicas") or raw["spec"]["completions"]
    requests = of_kind("ResourceClaimTemplate", "work.yaml")["spec"]["spec"]["devices"]["requests"]
    template = raw["spec"]["template"]["spec"]
    members = tuple(a_member(f"{owner}-{index}", requests, template) for index in range(count))
    return provisioning_demand.NodeDemand(f"gang/on-demand/{owner}", members)


def a_member(name: str, request: list[Any], template: Any) -> allocator_types.Workload:
    claim = objects.claim(f"{name}-gpus", *request)
    entries = [{"name": "gpus", "resourceClaimName": claim.name}]
    return allocator_types.Workload(
        objects.pod(name, **{**template, "resourceClaims": entries}), (claim,)
    )


def brought(*node_demands: provisioning_demand.NodeDemand) -> planner.Plan:
    node_templates = tuple(
        node_template.from_document(shape, names.DRIVER) for shape in document().shapes
    )
    return shapes.plan(*node_demands, shapes=node_templates, most=document().most)


def test_the_work_brings_a_node_for_the_server_and_two_for_the_gang() -> None:
    assert len(brought(waiting("serve")).requests) == 1
    assert len(brought(waiting("train")).requests) == 2
    assert len(brought(waiting("serve"), waiting("train")).requests) == 3


def test_the_how_to_shows_the_examples_as_they_stand() -> None:
    shown = [
        entry
        for text in re.findall(r"```yaml\n(.*?)```", HOW_TO, re.DOTALL)
        for entry in yaml.safe_load_all(text)
    ]
    assert VALUES in shown
    assert all(entry in shown for entry in itertools.chain(found("nodepool.yaml")))
