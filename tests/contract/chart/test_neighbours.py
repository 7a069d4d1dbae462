"""Charts of those who share nodes with us, rendered beside ours.

They cannot be fetched by a package manager here: RATION_CHARTS names a folder that holds
`gpu-operator`, `node-feature-discovery` and `dcgm-exporter`, as their repositories have them.
"""

import functools
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver.resources import extended_resources, gpu_nodes
from hack.chart import helm
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM
CHARTS = ("gpu-operator", "node-feature-discovery", "dcgm-exporter")
VENDOR, CLASSES = "10de", ("0300", "0302")
"""NVIDIA, and what its GPUs are on PCI: VGA and 3D controllers."""


def folder(chart: str) -> Path:
    text = os.environ.get("RATION_CHARTS", "")
    path = Path(text) / chart
    if not text or not (path / "Chart.yaml").is_file():
        pytest.skip(f"no chart {chart}: RATION_CHARTS names the folder that has it")
    return path


@functools.cache
def objects(chart: str) -> list[rendered.Object]:
    """Return what a chart makes, hooks too, in the namespace that ours has."""
    text = helm.template(rendered.NEWEST, release=chart, hooks=True, chart=folder(chart))
    return helm.objects(text)


def pods(results: list[rendered.Object]) -> list[dict[str, Any]]:
    """The pods of its workloads."""
    return [
        result["spec"]["template"]
        for result in results
        if result["kind"] in {"DaemonSet", "Deployment", "Job", "StatefulSet"}
    ]


def values(chart: str) -> Any:
    return yaml.safe_load((folder(chart) / "values.yaml").read_text())


@pytest.mark.parametrize("chart", CHARTS)
def test_no_object_is_of_both_even_in_one_namespace(chart: str) -> None:
    theirs = {rendered_name(obj) for obj in objects(chart)}
    ours = {rendered_name(obj) for obj in rendered.objects(f"--values={rendered.EVERYTHING}")}
    assert theirs
    assert not theirs & ours


@pytest.mark.parametrize("chart", CHARTS)
def test_its_pods_pass_our_webhook_as_they_are(chart: str) -> None:
    results = pods(objects(chart))
    assert results
    for pod in results:
        assert extended_resources.convert(pod) == extended_resources.NOTHING


@pytest.mark.parametrize("chart", ["gpu-operator", "node-feature-discovery"])
def test_the_operators_gpu_node_labels_are_among_those_we_recognize(
    chart: str,
) -> None:
    inputs = values(chart)
    worker = inputs.get("node-feature-discovery", inputs)["worker"]
    pci = ((worker.get("config") or {}).get("sources") or {}).get("pci") or {}
    # Its own default, where the chart says nothing: class and vendor, of display controllers too.
    fields = pci.get("deviceLabelFields", ["class", "vendor"])
    classes = pci.get("deviceClassWhitelist", ["03", "0b40", "12"])
    seen = [name for name in CLASSES if name.startswith(tuple(classes))]
    assert seen
    for kind in seen:
        parts = {"class": kind, "vendor": VENDOR}
        label = f"feature.node.kubernetes.io/pci-{'_'.join(parts[x] for x in fields)}.present"
        assert gpu_nodes.has_gpu_label({label: "true"})


def test_the_operators_own_classes_are_nvidias_names_that_ours_has_only_when_told_to() -> None:
    classes = {entry["metadata"]["name"] for entry in helm.usual("DeviceClass")}
    assert not classes & {"gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"}


def rendered_name(entry: rendered.Object) -> tuple[str, str, str]:
    meta = entry["metadata"]
    return entry["kind"], meta.get("namespace", ""), meta["name"]
