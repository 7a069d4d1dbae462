"""The commands that look, against an API server: by a kubeconfig alone, and what it refuses."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from driver.cli.lazy import app
from driver.cli.sources import node_shapes
from driver.kube import gvr
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support.scenarios import fleets

KINDS = {
    "Node": gvr.NODES,
    "ResourceSlice": gvr.RESOURCE_SLICES,
    "DeviceClass": gvr.DEVICE_CLASSES,
    "ResourceClaim": gvr.RESOURCE_CLAIMS,
    "Pod": gvr.PODS,
    "Queue": gvr.QUEUES,
    "Reservation": gvr.RESERVATIONS,
}
Ration = Callable[..., Result]


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        for entry in fleets.raw():
            running.put(KINDS[entry["kind"]], entry)
        yield running


@pytest.fixture
def ration(api: api_server.ApiServer, tmp_path: Path) -> Ration:
    kubeconfig = str(api.kubeconfig(tmp_path))

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--kubeconfig", kubeconfig])

    return run


def refuse(api: api_server.ApiServer, verb: str, plural: str, group: str) -> None:
    """Refuse as the API server does where a role lacks the verb."""
    words = (
        f'{plural}.{group} is forbidden: User "ann" cannot {verb} resource "{plural}" in API '
        f'group "{group}" at the cluster scope'
    )
    refused = faults.Answer(403, "Forbidden", message=words)
    api.faults.add(refused, lambda request: request.path.endswith(f"/{plural}"))


def test_a_kubeconfig_alone_is_enough(ration: Ration) -> None:
    here = fleets.a_reading()
    answer = ration("devices", "-o", "json")
    assert answer.exit_code == 0, answer.output
    expected = [gpu for node in here.nodes().items for gpu in node.gpus]
    assert json.loads(answer.stdout) == [
        gpu.model_dump(mode="json", by_alias=True) for gpu in expected
    ]
    (note,) = answer.stderr.splitlines()
    assert note.startswith("not seen: whether GPUs shown as free are kept for pods that wait")


def test_pods_that_may_not_be_seen_may_have_gpus_kept(
    api: api_server.ApiServer, ration: Ration
) -> None:
    refuse(api, "list", "pods", "")
    answer = ration("devices")
    assert "not seen: pods: " in answer.stderr
    assert "not seen: whether GPUs shown as free are kept" in answer.stderr


def test_queues_and_reservations_are_read_too(ration: Ration) -> None:
    document = json.loads(ration("queues", "-o", "json").stdout)
    assert [load["name"] for load in document] == ["dev", "research", "nlp", "vision", "lost"]
    node = json.loads(ration("explain", "node", "gpu-2", "-o", "json").stdout)
    assert node["gpus"][0]["kept"][0]["reservation"] == "vision/nightly"


def test_a_pod_that_waits_is_explained_by_working_it_out(ration: Ration) -> None:
    answer = ration("explain", "pod", "big", "-n", "nlp", "-o", "json")
    assert answer.exit_code == 1
    explained = json.loads(answer.stdout)["explanation"]
    assert explained["nearest"]["ever"] is False
    assert {refusal["count"] for refusal in explained["refusals"]} == {1}


def test_a_right_that_lacks_is_named_in_one_line(api: api_server.ApiServer, ration: Ration) -> None:
    refuse(api, "list", "resourceslices", "resource.k8s.io")
    answer = ration("devices")
    assert answer.exit_code == 3
    assert answer.stderr.count("\n") == 1
    assert "list resourceslices.resource.k8s.io" in answer.stderr


def test_forbidden_objects_are_named_and_the_rest_is_shown(
    api: api_server.ApiServer, ration: Ration
) -> None:
    refuse(api, "list", "queues", "ration.dev")
    answer = ration("who")
    assert answer.exit_code == 0
    assert "vision/train" in answer.stdout
    assert "not seen: queues" in answer.stderr


def test_an_old_server_is_told(api: api_server.ApiServer, ration: Ration) -> None:
    api.pretend("v1.35.2")
    answer = ration("devices")
    assert answer.exit_code == 3
    assert answer.stderr.count("\n") == 1
    assert "1.35.2" in answer.stderr


def test_a_server_that_is_down_is_told(api: api_server.ApiServer, ration: Ration) -> None:
    api.down()
    answer = ration("who")
    assert answer.exit_code == 3
    assert answer.stderr.count("\n") == 1


def test_a_controller_that_is_asked_for_and_does_not_lead_is_told(ration: Ration) -> None:
    answer = ration("who", "--source", "controller")
    assert answer.exit_code == 3
    assert answer.stderr.count("\n") == 1
    assert "--source cluster does without it" in answer.stderr


def test_only_what_a_command_shows_is_read(api: api_server.ApiServer, ration: Ration) -> None:
    assert ration("claims", "-A", "--source", "cluster").exit_code == 0
    assert not [item for item in api.requests if "resourceslices" in item.path]
    assert ration("who", "gpu-1", "--source", "cluster").exit_code == 0
    (request,) = [item for item in api.requests if "resourceslices" in item.path]
    assert request.query["fieldSelector"] == "spec.nodeName=gpu-1"


@pytest.fixture
def demand(api: api_server.ApiServer) -> api_server.ApiServer:
    """With what there is of nodes on demand."""
    for entry in fleets.on_demand():
        kind = entry["kind"]
        if kind == "ConfigMap":
            api.put(gvr.CONFIG_MAPS, entry)
        elif kind in {"Node", "Pod"}:
            api.put(KINDS[kind], entry)
    return api


def test_kinds_of_node_are_read_of_the_releases_config_maps(
    demand: api_server.ApiServer, ration: Ration
) -> None:
    answer = ration("nodes", "-o", "json")
    assert answer.exit_code == 0, answer.output
    expected = fleets.a_reading(fleets.on_demand()).shapes().items
    assert json.loads(answer.stdout) == [
        shape.model_dump(mode="json", by_alias=True) for shape in expected
    ]
    assert not answer.stderr
    assert any(
        request.path.endswith(f"/configmaps/{node_shapes.NAMES[0]}") for request in demand.requests
    )


def test_config_maps_that_may_not_be_read_are_named(
    demand: api_server.ApiServer, ration: Ration
) -> None:
    refused = faults.Answer(403, "Forbidden", message="configmaps is forbidden")
    demand.faults.add(refused, lambda request: "/configmaps/" in request.path)
    answer = ration("nodes")
    assert answer.exit_code == 0
    assert "not seen: kinds of node: configmaps is forbidden" in answer.stderr


def test_other_commands_read_no_config_map(demand: api_server.ApiServer, ration: Ration) -> None:
    assert ration("who").exit_code == 0
    assert not [request for request in demand.requests if "configmaps" in request.path]
