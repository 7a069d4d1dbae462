import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driver.cli.lazy import app
from driver.kube import gvr
from tests.fakes.apiserver import server

RUN = CliRunner()


@pytest.fixture
def api() -> Iterator[server.ApiServer]:
    with server.ApiServer() as running:
        yield running


def ask(api: server.ApiServer, folder: Path, name: str) -> tuple[int, str]:
    kubeconfig = str(api.kubeconfig(folder))
    words = ["migrate", "--configmap", name, "-n", "gpus", "--kubeconfig", kubeconfig, "-o", "json"]
    answer = RUN.invoke(app, words)
    return answer.exit_code, answer.output


def test_a_configmap_and_the_nodes_are_read_from_a_cluster(
    api: server.ApiServer, tmp_path: Path
) -> None:
    data = {
        "a": "version: v1",
        "b": "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 3}]}}",
    }
    api.put(gvr.CONFIG_MAPS, {"metadata": {"name": "old", "namespace": "gpus"}, "data": data})
    for name, config in (("one", "a"), ("two", "b")):
        labels = {"nvidia.com/device-plugin.config": config}
        api.put(gvr.NODES, {"metadata": {"name": name, "labels": labels}})
    code, text = ask(api, tmp_path, "old")
    assert code == 0
    document = json.loads(text)
    assert {node["name"]: node["config"] for node in document["nodes"]} == {"one": "a", "two": "b"}
    assert {r.method for r in api.requests} == {"GET"}


def test_a_configmap_that_is_not_there_exits_2(api: server.ApiServer, tmp_path: Path) -> None:
    code, text = ask(api, tmp_path, "none")
    assert code == 2
    assert "not found: look at the name" in text
