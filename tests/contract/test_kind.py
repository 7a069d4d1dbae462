"""Tests of the values that `hack.kind` gives the chart: node parts on workers alone.

The image by its digest.
"""

import os
import shutil

import pytest
import yaml

from hack.chart import helm
from hack.cluster import chart, shell
from hack.kind import driver

DIGEST = f"sha256:{'0' * 64}"


def test_the_chart_takes_the_values_and_puts_the_node_parts_on_workers_only() -> None:
    flags = (f"--values={chart.VALUES}", *driver.WORKERS_ONLY, f"--set=image.digest={DIGEST}")
    rendered = helm.objects(helm.template(*flags))
    daemons = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in rendered
        if one["kind"] == "DaemonSet"
    }
    assert set(daemons) == {"ration-kubeletplugin", "ration-mps"}
    for pod in daemons.values():
        assert pod["nodeSelector"] == {"ration.dev/allocator": "controller"}
        assert {one["image"] for one in pod["containers"]} == {f"{driver.repository()}@{DIGEST}"}
    nodes = yaml.safe_load((helm.ROOT / "kind-config.yaml").read_text())["nodes"]
    workers = [one for one in nodes if one["role"] == "worker"]
    labels = {"ration.dev/allocator": "controller", "nvidia.com/gpu.present": "true"}
    assert all(one["labels"] == labels for one in workers)
    values = yaml.safe_load((helm.CHART / "values.yaml").read_text())
    assert "nvidia.com/gpu.present=true" in values["gpuNodeLabels"]


@pytest.mark.skipif(shutil.which("go") is None, reason="Go builds it")
def test_what_kindnet_plans_by_its_own_tests() -> None:
    room = helm.ROOT / "hack/kind/programs/kindnet"
    environment = {**os.environ, "CGO_ENABLED": "0"}
    assert "ok" in shell.run(("go", "test", "./..."), cwd=room, env=environment, timeout=600)
