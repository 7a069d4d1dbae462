"""`ration defrag` against an API server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driver import names
from driver.cli.lazy import app
from driver.kube import gvr
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        running.put(gvr.DEVICE_CLASSES, objects.a_class())
        for node, count in (("node-a", 2), ("node-b", 1)):
            running.put(gvr.NODES, objects.a_node(node))
            running.put(gvr.RESOURCE_SLICES, objects.a_slice(node, count))
        pod = objects.a_pod("web-1", "one", nodeName="node-a")
        pod["metadata"]["annotations"] = {names.DEFRAG: "true"}
        owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        reserved = [{"resource": "pods", "name": "web-1", "uid": pod["metadata"]["uid"]}]
        status = objects.allocated("node-a", "gpu-0", reserved=reserved)
        running.put(gvr.PODS, pod)
        running.put(gvr.RESOURCE_CLAIMS, objects.a_claim("one", status=status))
        yield running


def defrag(api: api_server.ApiServer, folder: Path, *flags: str) -> tuple[int, str]:
    named = f"--kubeconfig={api.kubeconfig(folder)}"
    answer = CliRunner().invoke(app, ["defrag", "--plan", "-o", "json", named, *flags])
    return answer.exit_code, answer.stdout


def test_the_live_cluster_is_planned_for_and_nothing_is_written(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    code, text = defrag(api, tmp_path, "--gpus", "2")
    document = json.loads(text)
    assert (code, document["node"]) == (0, "node-a")
    assert [(entry["pod"], entry["to"]["node"]) for entry in document["evict"]] == [
        ("default/web-1", "node-b")
    ]
    assert {request.method for request in api.requests} == {"GET"}


def test_without_full_read_rights_a_missing_plan_is_not_final(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(
        faults.Answer(403), lambda request: request.path.endswith("persistentvolumes"), times=1
    )
    code, text = defrag(api, tmp_path, "--gpus", "3")
    assert code == 2
    assert "persistentvolumes" in json.loads(text)["unseen"][0]


def test_a_server_that_refuses_is_no_cluster_without_pods(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(faults.Answer(403), lambda request: request.path.endswith("/pods"), times=1)
    assert defrag(api, tmp_path, "--gpus", "2")[0] == 3


def apply(api: api_server.ApiServer, folder: Path, *flags: str) -> tuple[int, str]:
    named = f"--kubeconfig={api.kubeconfig(folder)}"
    answer = CliRunner().invoke(app, ["defrag", "--apply", "--gpus", "2", named, *flags])
    return answer.exit_code, answer.stderr


def test_freed_devices_are_reserved_and_evicted_pods_are_followed(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(
        faults.Answer(404), lambda request: request.path.endswith("/pods/web-1"), times=1
    )
    code, text = apply(api, tmp_path, "--for", "gang/train", "--ttl", "10m")
    assert code == 0, text
    (document,) = api.all(gvr.RESERVATIONS)
    assert document["spec"]["for"] == {"gang": "train"}
    assert [entry["name"] for entry in document["spec"]["evicting"]] == ["web-1"]
    held = {(device["node"], device["device"]) for device in document["status"]["devices"]}
    assert held == {("node-a", "gpu-0"), ("node-a", "gpu-1")}
    assert "pod default/web-1 is gone, 0 to go" in text
    assert "delete reservation defrag-" in text
    assert not any(request.method == "DELETE" for request in api.requests)


def test_carrying_out_says_for_whom(api: api_server.ApiServer, tmp_path: Path) -> None:
    code, text = apply(api, tmp_path)
    assert code == 2
    assert text.strip() == "--apply: does not say for whom; expected --for, or a pod by -f"
    code, text = apply(api, tmp_path, "--for", "train")
    assert code == 2
    assert "'train' names nobody to keep it for" in text
    assert api.all(gvr.RESERVATIONS) == []


def test_a_missing_right_is_reported_and_no_pod_is_evicted(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(
        faults.Answer(403), lambda request: request.path.endswith("/reservations"), times=1
    )
    code, text = apply(api, tmp_path, "--for", "gang/train")
    assert code == 3
    assert "403" in text
