"""`ration simulate` and `ration dump` against an API server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from driver.cli.lazy import app
from driver.kube import gvr
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects

EXAMPLE = Path(__file__).parents[4] / "examples" / "simulate"
KINDS = {
    "Node": gvr.NODES,
    "ResourceSlice": gvr.RESOURCE_SLICES,
    "DeviceClass": gvr.DEVICE_CLASSES,
    "ResourceClaim": gvr.RESOURCE_CLAIMS,
    "Pod": gvr.PODS,
}
SECRET = "s3cret"  # noqa: S105 - none, a word to be looked for


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    """The cluster of the example, as a server has it."""
    with api_server.ApiServer() as running:
        for item in yaml.safe_load((EXAMPLE / "cluster.yaml").read_text())["items"]:
            running.put(KINDS[item["kind"]], item)
        yield running


def run(api: api_server.ApiServer, folder: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, f"--kubeconfig={api.kubeconfig(folder)}"])


def test_the_live_cluster_and_its_dump_answer_alike_and_nothing_is_written(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    words = ["simulate", "-f", str(EXAMPLE / "pods.yaml"), "-o", "json"]
    live = run(api, tmp_path, *words)
    dumped = run(api, tmp_path, "dump")
    (tmp_path / "cluster.yaml").write_text(dumped.output)
    again = CliRunner().invoke(app, [*words, "--cluster", str(tmp_path / "cluster.yaml")])
    assert (live.exit_code, json.loads(live.output)["total"]["placed"]) == (1, 4)
    assert again.output == live.output
    assert {request.method for request in api.requests} == {"GET"}


def test_a_dump_holds_nothing_of_pods_that_does_not_decide(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    pod = objects.a_pod("talkative")
    pod["spec"]["containers"][0] |= {"env": [{"name": "A", "value": SECRET}], "args": [SECRET]}
    api.put(gvr.PODS, pod)
    answer = run(api, tmp_path, "dump", "-o", "json")
    assert (answer.exit_code, SECRET in answer.output) == (0, False)
    names = {item["metadata"]["name"] for item in json.loads(answer.output)["items"]}
    assert "talkative" in names


def test_forbidden_objects_are_noted(api: api_server.ApiServer, tmp_path: Path) -> None:
    api.faults.add(faults.Answer(403), lambda request: "persistentvolumes" in request.path, times=2)
    words = ["simulate", "-f", str(EXAMPLE / "pods.yaml"), "-o", "json"]
    notes = json.loads(run(api, tmp_path, *words).output)["notes"]
    assert [note for note in notes if note.startswith("not seen of the cluster: persistentvolumes")]


@pytest.mark.parametrize("command", [["dump"], ["simulate", "-f", str(EXAMPLE / "pods.yaml")]])
def test_a_server_that_refuses_or_is_away_exits_3(
    api: api_server.ApiServer, tmp_path: Path, command: list[str]
) -> None:
    api.faults.add(faults.Answer(403), lambda request: request.path.endswith("/nodes"), times=1)
    refused = run(api, tmp_path, *command)
    assert (refused.exit_code, "403" in refused.output) == (3, True)
    api.down()
    assert run(api, tmp_path, *command).exit_code == 3
