"""`ration doctor` against an API server."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from driver import clock
from driver.cli.lazy import app
from driver.kube import gvr
from tests.fakes import doctored
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support import golden
from tests.support.builders import objects

Doctor = Callable[..., tuple[int, list[dict[str, str]]]]


def current_lease() -> doctored.Object:
    lease = doctored.a_lease()
    lease["spec"]["renewTime"] = clock.SystemClock().now().isoformat()
    return lease


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        running.put(gvr.NODES, doctored.a_node())
        running.put(gvr.RESOURCE_SLICES, objects.a_slice("node-a", [doctored.a_device()]))
        running.put(gvr.DEVICE_CLASSES, doctored.a_class())
        running.put(gvr.LEASES, current_lease())
        for component in ("controller", "kubeletplugin"):
            running.put(gvr.PODS, doctored.a_pod(component))
        running.put(gvr.VALIDATING_WEBHOOKS, doctored.a_webhook(doctored.a_bundle()))
        yield running


@pytest.fixture
def doctor(api: api_server.ApiServer, tmp_path: Path) -> Doctor:
    def run(*flags: str) -> tuple[int, list[dict[str, str]]]:
        named = f"--kubeconfig={api.kubeconfig(tmp_path)}"
        answer = CliRunner().invoke(app, ["doctor", named, "-o", "json", *flags])
        return answer.exit_code, json.loads(answer.output)

    return run


def told(rows: list[dict[str, str]], **fields: Any) -> list[str]:
    return [row["found"] for row in rows if fields.items() <= row.items()]


def test_a_healthy_cluster_is_fine(doctor: Doctor) -> None:
    code, rows = doctor()
    assert code == 0, rows
    assert {row["state"] for row in rows} == {"ok"}
    assert told(rows, where="node-a", check="devices") == ["1 device, generation 1"]
    assert told(rows, check="webhook") == [
        "validatingwebhookconfiguration r has valid certificates"
    ]


def test_nothing_but_what_is_wrong_when_that_is_asked_for(
    doctor: Doctor, api: api_server.ApiServer
) -> None:
    assert doctor("--problems-only") == (0, [])
    api.pretend("v1.36.2")
    code, rows = doctor("--problems-only")
    assert (code, [row["check"] for row in rows]) == (1, ["kubernetes"])


def test_a_single_node_can_be_checked(doctor: Doctor, api: api_server.ApiServer) -> None:
    api.put(gvr.NODES, doctored.a_node("node-b", {"nvidia.com/gpu": "8"}))
    code, rows = doctor("--node=node-a")
    assert (code, {row["where"] for row in rows}) == (0, {"cluster", "node-a"})
    code, rows = doctor("--node=node-b", "--problems-only")
    assert (code, {row["where"] for row in rows}) == (1, {"node-b"})


def test_rights_that_lack_are_named_and_the_rest_is_looked_at(
    doctor: Doctor, api: api_server.ApiServer
) -> None:
    api.faults.add(faults.Answer(403), lambda request: "webhook" in request.path, times=9)
    code, rows = doctor()
    assert code == 3
    (text,) = told(rows, state="not seen")
    right = "list validatingwebhookconfigurations.admissionregistration.k8s.io"
    assert text == f"you may not {right}"
    assert told(rows, check="devices") == ["1 device, generation 1"]


def test_a_server_that_is_away_is_told_as_such(doctor: Doctor, api: api_server.ApiServer) -> None:
    api.down()
    code, rows = doctor()
    assert code == 3
    assert {row["state"] for row in rows} == {"not seen"}


def test_nothing_is_ever_written(doctor: Doctor, api: api_server.ApiServer) -> None:
    doctor()
    requests = [request for request in api.requests if request.method != "GET"]
    assert {request.path for request in requests} == {
        "/apis/authorization.k8s.io/v1/subjectaccessreviews"  # a question, of which nothing is kept
    }


def test_accounts_and_gates_are_looked_at_where_that_is_allowed(
    doctor: Doctor, api: api_server.ApiServer
) -> None:
    api.lack("get nodes")
    api.say("/metrics", 'kubernetes_feature_enabled{name="DRAConsumableCapacity",stage=""} 0\n')
    code, rows = doctor("--problems-only")
    assert (code, [row["found"] for row in rows]) == (
        1,
        [
            "feature gate DRAConsumableCapacity is off in the API server: no shares by amount",
            "kubeletplugin may not get nodes",
        ],
    )


def test_people_get_a_table_with_the_fixes(
    api: api_server.ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path)))
    api.pretend("v1.36.2")
    answer = CliRunner().invoke(app, ["doctor"])
    assert answer.exit_code == 1
    assert "Kubernetes is v1.36.2, below 1.36.4" in answer.output
    assert "upgrade" in answer.output


def test_the_output_equals_the_golden_file(
    api: api_server.ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    api.pretend("v1.36.2")
    api.lack("patch resourceclaims")
    api.put(gvr.NODES, doctored.a_node("node-b", {"nvidia.com/gpu": "8"}))
    api.put(gvr.DAEMON_SETS, doctored.a_daemon_set("nvidia-device-plugin-daemonset"))
    answer = CliRunner().invoke(app, ["doctor", f"--kubeconfig={api.kubeconfig(tmp_path)}"])
    assert answer.exit_code == 1
    golden.same("doctor.txt", answer.output)


def test_a_controller_without_the_plugin_equals_its_golden_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with api_server.ApiServer() as api:
        api.put(gvr.LEASES, current_lease())
        for kind, obj in doctored.managed_cluster("gpu.example.com", "nic.example.com"):
            api.put(kind, obj)
        answer = CliRunner().invoke(app, ["doctor", f"--kubeconfig={api.kubeconfig(tmp_path)}"])
    assert answer.exit_code == 1
    golden.same("doctor-controller-only.txt", answer.output)


def test_without_a_cluster_the_flag_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    answer = CliRunner().invoke(app, ["doctor"])
    assert answer.exit_code == 2
    assert "name a kubeconfig with --kubeconfig" in answer.output
