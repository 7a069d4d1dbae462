"""`ration defrag` against an API server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driver import names
from driver.cli.__main__ import app
from driver.kube import resource
from tests import objects
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        running.put(resource.DEVICE_CLASSES, objects.a_class())
        for node, count in (("node-a", 2), ("node-b", 1)):
            running.put(resource.NODES, objects.a_node(node))
            running.put(resource.RESOURCE_SLICES, objects.a_slice(node, count))
        pod = objects.a_pod("web-1", "one", nodeName="node-a")
        pod["metadata"]["annotations"] = {names.DEFRAG: "true"}
        owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        reserved = [{"resource": "pods", "name": "web-1", "uid": pod["metadata"]["uid"]}]
        status = objects.allocated("node-a", "gpu-0", reserved=reserved)
        running.put(resource.PODS, pod)
        running.put(resource.RESOURCE_CLAIMS, objects.a_claim("one", status=status))
        yield running


def defrag(api: api_server.ApiServer, folder: Path, *flags: str) -> tuple[int, str]:
    named = f"--kubeconfig={api.kubeconfig(folder)}"
    answer = CliRunner().invoke(app, ["defrag", "--plan", "-o", "json", named, *flags])
    return answer.exit_code, answer.stdout


def test_the_live_cluster_is_planned_for_and_nothing_is_written(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    code, text = defrag(api, tmp_path, "--gpus", "2")
    found = json.loads(text)
    assert (code, found["node"]) == (0, "node-a")
    assert [(one["pod"], one["to"]["node"]) for one in found["evict"]] == [
        ("default/web-1", "node-b")
    ]
    assert {one.method for one in api.requests} == {"GET"}


def test_where_not_all_may_be_seen_no_plan_is_no_final_answer(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(faults.Answer(403), lambda one: one.path.endswith("persistentvolumes"), times=1)
    code, text = defrag(api, tmp_path, "--gpus", "3")
    assert code == 2
    assert "persistentvolumes" in json.loads(text)["unseen"][0]


def test_a_server_that_refuses_is_no_cluster_without_pods(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(faults.Answer(403), lambda one: one.path.endswith("/pods"), times=1)
    assert defrag(api, tmp_path, "--gpus", "2")[0] == 3
