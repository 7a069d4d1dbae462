"""The files of examples/placement, and that the pages say what is so."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from driver import names
from driver.api import workload_mix
from driver.cli.lazy import app
from driver.resources.core import nodes
from driver.resources.dra import device_classes
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import dra_allocator, policies
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import base, configured_mix, ranking
from driver.scheduling.allocator.policies import workload_mix as policy_mix
from driver.scheduling.snapshot import cluster_state
from driver.webhook import admission_review
from driver.webhook.validation import claims as validation_claims
from driver.webhook.validation import configs
from hack.chart import helm, values
from tests.fakes import simulated_pool
from tests.support import allocation, snapshots
from tests.support.builders import objects

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "placement"
CLASSES, PODS, USUAL = (str(FOLDER / f"{name}.yaml") for name in ("classes", "pods", "usual"))
CLUSTER = str(ROOT / "examples" / "simulate" / "cluster.yaml")
EXPLAINED = (ROOT / "docs" / "explanation" / "placement.md").read_text()
HOW_TO = (ROOT / "docs" / "how-to" / "placement-policies.md").read_text()


def found(name: str) -> list[Any]:
    return helm.objects(Path(name).read_text())


@pytest.mark.parametrize("raw", found(CLASSES), ids=lambda raw: str(raw["metadata"]["name"]))
def test_a_class_orders_policies_that_there_are(raw: Any) -> None:
    kind = admission_review.ObjectKind("resource.k8s.io", "v1", "DeviceClass")
    assert validation_claims.check(kind, raw, configs.ClusterFacts()) == validation_claims.NOTHING
    ordered = device_classes.parse(raw).policies
    assert ordered
    assert ranking.parse_policies(ordered).has_policies


def test_a_class_selects_what_a_class_of_the_chart_selects() -> None:
    installed = {
        device_class.name: device_class.selectors
        for device_class in map(device_classes.parse, helm.usual("DeviceClass"))
    }
    shared, whole = map(device_classes.parse, found(CLASSES))
    assert flat(shared.selectors) == flat(installed["gpu-mps.ration.dev"])
    assert flat(whole.selectors) == flat(installed[names.CLASS_GPU])


def flat(selectors: tuple[str, ...]) -> list[str]:
    return [" ".join(selector.split()) for selector in selectors]


def simulated(*words: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["simulate", *words, "--cluster", CLUSTER, "-o", "json"])
    pods: list[dict[str, Any]] = json.loads(result.stdout)["pods"]
    return pods


def test_replicas_are_spread_and_the_event_says_so() -> None:
    pods = simulated("-f", CLASSES, "-f", PODS)
    assert [pod["node"] for pod in pods] == ["gpu-2", "gpu-1", "gpu-2"]
    words = "on gpu-2: the emptiest node: 2 of 2 GPUs were free, 1 are left"
    assert pods[0]["why"].endswith(words)


def test_without_the_annotation_they_share_a_gpu(tmp_path: Path) -> None:
    plain = []
    for entry in found(CLASSES):
        del entry["metadata"]["annotations"]
        plain.append(entry)
    (tmp_path / "classes.yaml").write_text(yaml.safe_dump_all(plain))
    first, second, _ = simulated("-f", str(tmp_path / "classes.yaml"), "-f", PODS)
    assert first["devices"][0]["device"] == second["devices"][0]["device"]


def test_the_workload_mix_is_readable_and_fits_the_chart() -> None:
    (document,) = yaml.safe_load_all(Path(USUAL).read_text())
    read = workload_mix.read(document, "usual.yaml")
    assert len(configured_mix.build_mix(read).shapes) == len(document["workloads"])
    held = values.Values.model_validate({"controller": {"usual": document["workloads"]}})
    assert tuple(held.model_dump()["controller"]["usual"]) == tuple(
        workload.model_dump() for workload in read.workloads
    )


def test_the_how_to_shows_the_example_as_it_stands() -> None:
    (document,) = yaml.safe_load_all(Path(USUAL).read_text())
    shown = [yaml.safe_load(match) for match in re.findall(r"```yaml\n(.*?)```", HOW_TO, re.DOTALL)]
    assert {"controller": {"usual": document["workloads"]}} in shown
    assert found(CLASSES)[0] in shown


def chosen(
    view: cluster_state.ClusterState,
    order: str,
    usual: policy_mix.WorkloadMix = policy_mix.DEFAULT_MIX,
    **fields: Any,
) -> allocator_types.Placement:
    claim = objects.claim("c", objects.a_request("r", fields.pop("count", 1), **fields))
    deciding = replace(snapshots.DECIDING, policy_chain=ranking.parse_policies(order, usual))
    workload = allocation.workload(claim)
    return allocation.placed(dra_allocator.allocate(view, workload, deciding))


def devices(answer: allocator_types.Placement) -> list[str]:
    return [assignment.device.device for assignment in answer.assignments]


def machine(name: str, *taken: str) -> cluster_state.ClusterState:
    """One node, some of whose GPUs are in use."""
    pool = simulated_pool.of_machine("node-a", "controller", name)
    rendered = slice_builder.render(
        pool, slice_builder.Owner(simulated_pool.node_name("node-a"), "uid"), 1
    )
    held = [snapshots.holding(f"x-{name}", "node-a", name) for name in taken]
    installed = map(device_classes.parse, helm.usual("DeviceClass"))
    more = [
        device_class
        for device_class in installed
        if device_class.name != objects.device_class().name
    ]
    return snapshots.view(*rendered, taken=held, found_classes=more)


def test_a_small_instance_is_laid_where_the_large_one_still_fits() -> None:
    profile = 'device.attributes["gpu.ration.dev"].profile == "1g.10gb"'
    request: Any = {
        "deviceClassName": names.CLASS_MIG,
        "selectors": [{"cel": {"expression": profile}}],
    }
    view = machine("hgx-h100")
    assert devices(chosen(view, "", **request))[0].endswith("-mig-1g10gb-0")
    assert devices(chosen(view, "mig-layout", **request))[0].endswith("-mig-1g10gb-6")


def test_two_gpus_are_those_that_a_bridge_joins() -> None:
    view = machine("a30-bridged", "gpu-0000-17-00-0")
    assert devices(chosen(view, "", count=2)) == ["gpu-0000-28-00-0", "gpu-0000-39-00-0"]
    assert devices(chosen(view, "topology", count=2)) == ["gpu-0000-39-00-0", "gpu-0000-4a-00-0"]


def test_a_single_gpu_leaves_the_pair_whole() -> None:
    view = machine("a30-bridged", "gpu-0000-39-00-0")
    assert devices(chosen(view, "")) == ["gpu-0000-17-00-0"]
    assert devices(chosen(view, "islands")) == ["gpu-0000-4a-00-0"]


def test_a_small_claim_goes_where_gpus_are_stranded() -> None:
    usual = policy_mix.build_mix([(policy_mix.WorkloadShape(base.WHOLE, 1, cpu=8000), 1.0)])
    view = snapshots.view(objects.a_slice("node-a"), objects.a_slice("node-b"))
    for name, cpu in (("node-a", "128"), ("node-b", "4")):
        raw = objects.a_node(name)
        raw["status"]["allocatable"]["cpu"] = cpu
        node = nodes.parse(raw)
        view.set_node(node.name, node)
    assert chosen(view, "").node == "node-a"
    assert chosen(view, "fragmentation", usual).node == "node-b"


@pytest.mark.parametrize("policy", policies.POLICIES)
def test_every_policy_is_explained(policy: str) -> None:
    assert f"\n### {policy}\n" in EXPLAINED
