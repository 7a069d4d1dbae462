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
    (one,) = [raw for raw in found(name) if raw["kind"] == kind]
    return one


def document() -> node_shapes.NodeShapes:
    told = {key: value for key, value in NODES.items() if key != "enabled"}
    return node_shapes.read(told, "values.yaml")


def test_the_document_of_the_values_is_read_by_the_controller() -> None:
    assert [one.name for one in document().shapes] == ["h100-8"]


@pytest.mark.parametrize("file", ["nodepool.yaml", "nodepool-aws.yaml"])
def test_a_node_of_the_pool_has_the_labels_and_taints_of_the_shape(file: str) -> None:
    template = of_kind("NodePool", file)["spec"]["template"]
    single = {
        one["key"]: one["values"][0]
        for one in template["spec"]["requirements"]
        if one["operator"] == "In" and len(one["values"]) == 1
    }
    (one,) = document().shapes
    assert one.labels.items() <= {**template["metadata"]["labels"], **single}.items()
    assert [taint.model_dump() for taint in one.taints] == template["spec"]["taints"]


def test_the_pool_on_aws_differs_only_by_whose_nodes_they_are() -> None:
    ours, aws = (of_kind("NodePool", name) for name in ("nodepool.yaml", "nodepool-aws.yaml"))
    for one in (ours, aws):
        one["spec"]["template"]["spec"].pop("nodeClassRef")
        one["spec"]["disruption"].pop("consolidateAfter")
    assert ours == aws


def test_what_the_pool_asks_for_can_be_bought_and_holds_what_the_shape_says() -> None:
    pool = of_kind("NodePool", "nodepool.yaml")["spec"]["template"]["spec"]["requirements"]
    asked = {one["key"]: one["values"] for one in pool}
    sold = {
        one["name"]: one
        for one in json.loads((FOLDER / "install" / "instance-types.json").read_text())
    }
    (name,) = asked[shapes.INSTANCE]
    kinds = {
        value
        for offering in sold[name]["offerings"]
        for one in offering["Requirements"]
        if one["key"] == "karpenter.sh/capacity-type"
        for value in one["values"]
    }
    assert {*asked["karpenter.sh/capacity-type"]} <= kinds
    assert int(sold[name]["resources"]["cpu"]) > int(document().shapes[0].allocatable["cpu"])


def waiting(owner: str) -> provisioning_demand.NodeDemand:
    """The pods of a Deployment or Job of work.yaml, with claims by its template."""
    raw = next(
        one for one in found("work.yaml") if one["metadata"]["name"] == owner and "spec" in one
    )
    count = raw["spec"].get("replicas") or raw["spec"]["completions"]
    asked = of_kind("ResourceClaimTemplate", "work.yaml")["spec"]["spec"]["devices"]["requests"]
    template = raw["spec"]["template"]["spec"]
    members = tuple(a_member(f"{owner}-{at}", asked, template) for at in range(count))
    return provisioning_demand.NodeDemand(f"gang/on-demand/{owner}", members)


def a_member(name: str, asked: list[Any], template: Any) -> allocator_types.Workload:
    claim = objects.claim(f"{name}-gpus", *asked)
    entries = [{"name": "gpus", "resourceClaimName": claim.name}]
    return allocator_types.Workload(
        objects.pod(name, **{**template, "resourceClaims": entries}), (claim,)
    )


def brought(*found: provisioning_demand.NodeDemand) -> planner.Plan:
    made = tuple(node_template.from_document(one, names.DRIVER) for one in document().shapes)
    return shapes.plan(*found, shapes=made, most=document().maxInFlight)


def test_the_work_brings_a_node_for_the_server_and_two_for_the_gang() -> None:
    assert len(brought(waiting("serve")).requests) == 1
    assert len(brought(waiting("train")).requests) == 2
    assert len(brought(waiting("serve"), waiting("train")).requests) == 3


def test_the_how_to_shows_the_examples_as_they_stand() -> None:
    shown = [
        one
        for text in re.findall(r"```yaml\n(.*?)```", HOW_TO, re.DOTALL)
        for one in yaml.safe_load_all(text)
    ]
    assert VALUES in shown
    assert all(one in shown for one in itertools.chain(found("nodepool.yaml")))
