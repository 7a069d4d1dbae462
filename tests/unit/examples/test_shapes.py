"""The files of examples/shapes: what the webhook says of them, and that they can be had at all."""

import re
from pathlib import Path
from typing import Any

import pytest

from driver.devices import attributes as device_attributes
from driver.resources.cel import selector
from driver.resources.dra import claims, device_classes
from driver.resources.publish import slice_builder
from driver.scheduling.snapshot import cluster_state
from driver.webhook import admission_review
from driver.webhook.validation import claims as validation_claims
from driver.webhook.validation import configs
from hack.chart import helm
from tests.fakes import simulated_pool
from tests.support import snapshots
from tests.support.allocation import decide, placed
from tests.support.builders import objects

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "shapes.md").read_text()
FILES = sorted((ROOT / "examples" / "shapes").glob("*.yaml"))
MACHINES = {"node-a": "dgx-a100", "node-h": "hgx-h100"}


def installed() -> list[device_classes.DeviceClass]:
    return [device_classes.parse(entry) for entry in helm.usual("DeviceClass")]


@pytest.fixture(scope="module")
def view() -> cluster_state.ClusterState:
    """Eight idle A100 and eight idle H100."""
    pools = [
        (name, simulated_pool.of_machine(name, "controller", machine))
        for name, machine in MACHINES.items()
    ]
    results = [
        entry
        for name, pool in pools
        for entry in slice_builder.render(
            pool, slice_builder.Owner(simulated_pool.node_name(name), "uid"), 1
        )
    ]
    more = [
        device_class
        for device_class in installed()
        if device_class.name != objects.device_class().name
    ]
    return snapshots.view(*results, found_classes=more)


def in_it(file: Path, *kinds: str) -> list[Any]:
    return [obj for obj in helm.objects(file.read_text()) if obj["kind"] in kinds]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_webhook_takes_a_shape_as_it_stands(file: Path) -> None:
    cluster_facts = configs.ClusterFacts(
        snapshots.DRIVER, {device_class.name: device_class for device_class in installed()}
    )
    results = in_it(file, "ResourceClaimTemplate", "ResourceClaim")
    assert results
    for raw in results:
        kind = admission_review.ObjectKind("resource.k8s.io", "v1", raw["kind"])
        assert validation_claims.check(kind, raw, cluster_facts) == validation_claims.NOTHING


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shape_has_a_place_on_idle_machines(file: Path, view: cluster_state.ClusterState) -> None:
    templates = {entry["metadata"]["name"]: entry for entry in in_it(file, "ResourceClaimTemplate")}
    users = in_it(file, "Pod", "Job", "Deployment", "StatefulSet")
    assert users
    for user in users:
        spec = user["spec"] if user["kind"] == "Pod" else user["spec"]["template"]["spec"]
        request = []
        for resource_claim in spec["resourceClaims"]:
            claim = objects.a_claim(resource_claim["resourceClaimTemplateName"])
            claim["spec"] = templates[resource_claim["resourceClaimTemplateName"]]["spec"]["spec"]
            request.append(claims.parse(claim))
        named = [
            {"name": entry["name"], "resourceClaimName": entry["resourceClaimTemplateName"]}
            for entry in spec["resourceClaims"]
        ]
        assert placed(decide(view, *request, **{**spec, "resourceClaims": named})).assignments


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_page_names_a_shape(file: Path) -> None:
    assert f"`{file.name}`" in PAGE


CAPABILITIES = ("7.5.0", "8.0.0", "8.6.0", "8.9.0", "9.0.0", "10.0.0", "10.3.0", "12.0.0")


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        ("BF16", CAPABILITIES[1:]),
        ("FP8, a scale per tensor", CAPABILITIES[3:]),
        ("FP8, scales per block", CAPABILITIES[4:]),
        ("MXFP8, NVFP4", ("10.0.0", "10.3.0")),
        ("FlashAttention-2", CAPABILITIES[1:]),
        ("FlashAttention-3", ("9.0.0",)),
    ],
)
def test_the_pages_selectors_find_the_capabilities_it_says(
    expected: str, names: tuple[str, ...]
) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {expected} |")]
    (after,) = re.findall(r"`(\..+?)`", row)
    text = f'device.attributes["gpu.ration.dev"].cudaComputeCapability{after}'
    assert tuple(name for name in CAPABILITIES if holds(text, name) is True) == names


def test_a_capability_is_no_text_to_compare() -> None:
    question = 'device.attributes["gpu.ration.dev"].cudaComputeCapability >= "8.9.0"'
    assert isinstance(holds(question, "10.0.0"), selector.EvaluationFailure)


def holds(expression: str, capability: str) -> bool | selector.EvaluationFailure:
    compiled = selector.compile_selector(expression)
    assert isinstance(compiled, selector.Selector), compiled
    attributes = {"cudaComputeCapability": device_attributes.Version(capability)}
    return compiled.matches(selector.Device("gpu.ration.dev", attributes, {}))
