"""Tests of the values that `hack.kind` sets: node parts on workers alone, the image by digest."""

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
        entry["metadata"]["name"]: entry["spec"]["template"]["spec"]
        for entry in rendered
        if entry["kind"] == "DaemonSet"
    }
    assert set(daemons) == {"ration-kubeletplugin", "ration-mps"}
    for pod in daemons.values():
        assert pod["nodeSelector"] == {"ration.dev/allocator": "controller"}
        assert {container["image"] for container in pod["containers"]} == {
            f"{driver.repository()}@{DIGEST}"
        }
    nodes = yaml.safe_load((helm.ROOT / "kind-config.yaml").read_text())["nodes"]
    workers = [node for node in nodes if node["role"] == "worker"]
    labels = {"ration.dev/allocator": "controller", "nvidia.com/gpu.present": "true"}
    assert all(worker["labels"] == labels for worker in workers)
    values = yaml.safe_load((helm.CHART / "values.yaml").read_text())
    assert "nvidia.com/gpu.present=true" in values["gpuNodeLabels"]


@pytest.mark.skipif(shutil.which("go") is None, reason="Go builds it")
def test_kindnets_own_tests_pass() -> None:
    room = helm.ROOT / "hack/kind/programs/kindnet"
    environment = {**os.environ, "CGO_ENABLED": "0"}
    assert "ok" in shell.run(("go", "test", "./..."), cwd=room, env=environment, timeout=600)
