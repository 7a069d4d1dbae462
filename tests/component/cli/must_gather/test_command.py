"""`ration must-gather` against an API server."""

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from driver.cli.lazy import app
from driver.kube import gvr
from tests.fakes import doctored
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support import golden
from tests.support.builders import objects

PODS = "/api/v1/namespaces/ration-system/pods"
SECRET = "hunter2"  # noqa: S105 - of nothing
Gather = Callable[..., Result]


def a_pod(component: str, restarts: int = 0) -> dict[str, Any]:
    pod = doctored.a_pod(component)
    env = [{"name": "TOKEN", "value": SECRET}]
    ports = [{"name": "metrics", "containerPort": 8080}]
    pod["spec"]["containers"] = [
        {"name": "main", "image": "ration:1", "env": env, "ports": ports},
    ]
    pod["status"]["containerStatuses"] = [{"name": "main", "restartCount": restarts}]
    pod["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": SECRET,
    }
    return pod


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        running.put(gvr.NODES, doctored.a_node())
        running.put(gvr.RESOURCE_SLICES, objects.a_slice("node-a", [doctored.a_device()]))
        running.put(gvr.DEVICE_CLASSES, doctored.a_class())
        running.put(gvr.LEASES, doctored.a_lease())
        running.put(gvr.PODS, a_pod("controller", restarts=1))
        running.put(gvr.PODS, a_pod("kubeletplugin"))
        running.put(gvr.SECRETS, {"metadata": objects.meta("s"), "data": {"password": SECRET}})
        for name, told_by in (("ours", "ration-controller"), ("theirs", "kubelet")):
            meta = objects.meta(name)
            running.put(gvr.EVENTS, {"metadata": meta, "reportingController": told_by})
        running.say(f"{PODS}/ration-controller-1/log?container=main", "now\n")
        running.say(f"{PODS}/ration-controller-1/log?container=main&previous", "before\n")
        running.say(f"{PODS}/ration-kubeletplugin-1/log?container=main", "plugin\n")
        running.say(f"{PODS}/ration-controller-1%3A8080/proxy/metrics", "up 1\n")
        yield running


@pytest.fixture
def gather(api: api_server.ApiServer, tmp_path: Path) -> Gather:
    def run(*words: str) -> Result:
        named = f"--kubeconfig={api.kubeconfig(tmp_path)}"
        to = tmp_path / "found.tar.gz"
        return CliRunner().invoke(app, ["must-gather", "-o", str(to), *words, named])

    return run


@pytest.fixture
def read(tmp_path: Path) -> Callable[[], dict[str, str]]:
    def files() -> dict[str, str]:
        with tarfile.open(tmp_path / "found.tar.gz") as tar:
            result = {}
            for member in tar.getmembers():
                file = tar.extractfile(member)
                assert file is not None
                result[member.name.partition("/")[2]] = file.read().decode()
        return result

    return files


Files = Callable[[], dict[str, str]]


def test_all_that_there_is_lies_in_one_archive(gather: Gather, read: Files, tmp_path: Path) -> None:
    answer = gather()
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith(f"{tmp_path}/found.tar.gz: 23 files, 1 could not be had")
    golden.same("must-gather.txt", answer.stderr)
    result = read()
    index = json.loads(result["index.json"])
    assert sorted(result) == sorted([*index["files"], "index.json"])
    assert result["logs/ration-controller-1/main.log"] == "now\n"
    assert result["logs/ration-controller-1/main.previous.log"] == "before\n"
    assert result["metrics/ration-controller-1.txt"] == "up 1\n"
    assert json.loads(result["versions.json"])["images"] == {
        "controller": ["ration:1"],
        "kubeletplugin": ["ration:1"],
    }
    assert [load["metadata"]["name"] for load in json.loads(result["events.json"])] == ["ours"]
    assert [entry["what"] for entry in index["missing"]] == ["metrics/ration-kubeletplugin-1.txt"]
    assert "kind: ResourceSlice" in result["cluster.yaml"]


def test_no_secret_is_asked_for_and_none_is_in_it(
    api: api_server.ApiServer, gather: Gather, read: Files
) -> None:
    gather()
    assert not any("secrets" in request.path for request in api.requests)
    paths = {request.path for request in api.requests if request.method != "GET"}
    assert paths == {"/apis/authorization.k8s.io/v1/subjectaccessreviews"}
    assert not [name for name, text in read().items() if SECRET in text]


def test_forbidden_objects_are_indexed_and_the_rest_is_gathered(
    api: api_server.ApiServer, gather: Gather, read: Files
) -> None:
    refused = faults.Answer(403, "Forbidden")
    api.faults.add(
        refused, lambda request: "/pods/" in request.path or "events" in request.path, times=99
    )
    assert gather().exit_code == 0
    missing = {entry["what"]: entry["why"] for entry in json.loads(read()["index.json"])["missing"]}
    assert missing.keys() == {
        "events",
        "logs/ration-controller-1/main.log",
        "logs/ration-controller-1/main.previous.log",
        "logs/ration-kubeletplugin-1/main.log",
        "metrics/ration-controller-1.txt",
        "metrics/ration-kubeletplugin-1.txt",
    }
    assert set(missing.values()) == {"API server: 403 Forbidden: injected"}


def test_without_a_server_there_is_no_archive(
    api: api_server.ApiServer, gather: Gather, tmp_path: Path
) -> None:
    api.down()
    answer = gather()
    assert (answer.exit_code, answer.stderr.count("\n")) == (3, 1)
    assert "the API server was not reached" in answer.stderr
    assert not (tmp_path / "found.tar.gz").exists()


def test_a_file_that_is_there_is_not_written_over(gather: Gather, tmp_path: Path) -> None:
    (tmp_path / "found.tar.gz").write_text("mine")
    answer = gather()
    assert (answer.exit_code, answer.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "found.tar.gz").read_text() == "mine"
