"""The controller as a process, against an API server in memory."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from driver import clock, names
from driver.kube import gvr, lease
from tests.fakes import controller_process, waiting
from tests.fakes.apiserver import server as api_server
from tests.fakes.controller_process import HERE, Process, ask, start, status_of
from tests.support.builders import objects

TIME = clock.SystemClock()


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with controller_process.api_with_a_node() as running:
        yield running


@pytest.fixture
def controllers() -> Iterator[list[Process]]:
    with controller_process.killed_at_the_end() as running:
        yield running


def leaders_term(api: api_server.ApiServer) -> str:
    spec = (api.read(gvr.LEASES, "ration-controller", "ration-system") or {})["spec"]
    return f"{spec['holderIdentity']}/{spec['leaseTransitions']}"


def test_an_invalid_workload_mix_stops_the_controller_and_names_the_field(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    told = {
        "workloads: [{gpus: 8}, {face: mps}]": "workloads.1: face mps has no size",
        "workloads: 8": "workload-mix.yaml.workloads: Input should be a valid tuple",
        "- gpus: 8": f"{tmp_path / 'workload-mix.yaml'}: is list; expected a YAML mapping",
    }
    for text, words in told.items():
        (tmp_path / "workload-mix.yaml").write_text(text)
        process = start(
            controllers, api, tmp_path, f"--workload-mix={tmp_path / 'workload-mix.yaml'}"
        )
        assert process.wait(timeout=25) == 1
        assert words in (tmp_path / f"log-{len(controllers) - 1}").read_text()


def test_a_claim_is_allocated_under_the_leaders_name(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    start(controllers, api, tmp_path)
    ask(api, "mine")
    waiting.until(lambda: status_of(api, "mine").get("allocation"), within_s=25)
    assert [one["resource"] for one in status_of(api, "mine")["reservedFor"]] == ["holds"]
    term = leaders_term(api)
    written = [
        one for one in api.requests if one.method == "PATCH" and "resourceclaims" in one.path
    ]
    assert {one.field_manager for one in written} == {f"ration-controller/{term}"}
    waiting.until(lambda: len(api.all(gvr.EVENTS)) == 2)


def test_nodes_are_listed_with_the_lease_and_claims_once_writes_of_others_ended(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    start(controllers, api, tmp_path)
    ask(api, "mine")
    waiting.until(lambda: status_of(api, "mine").get("allocation"), within_s=25)
    by_kind = {request.path.rpartition("/")[2]: request.at for request in reversed(api.requests)}
    acquired_at = min(
        request.at
        for request in api.requests
        if request.method == "POST" and request.path.endswith("/leases")
    )
    assert acquired_at < by_kind["nodes"] < by_kind["resourceclaims"]
    assert by_kind["resourceclaims"] - acquired_at >= lease.Timings().settle_s
    assert by_kind["devicetaintrules"] - acquired_at >= lease.Timings().settle_s


def test_a_managed_driver_is_handed_over_by_the_process_that_leads(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    path = tmp_path / "managed.yaml"
    path.write_text("drivers: [{name: gpu.example.com}]")
    start(controllers, api, tmp_path, f"--managed-drivers={path}")
    waiting.until(lambda: api.all(gvr.DEVICE_TAINT_RULES), within_s=25)
    (rule,) = api.all(gvr.DEVICE_TAINT_RULES)
    assert rule["spec"]["taint"] == {"key": names.HANDOVER_TAINT, "effect": "NoSchedule"}
    term = leaders_term(api)
    assert rule["metadata"]["annotations"] == {names.FENCE: f"ration-controller/{term}"}
    waiting.until(
        lambda: {event["reason"] for event in api.all(gvr.EVENTS)} == {"AllocatorChanging"}
    )


def gates(api: api_server.ApiServer, name: str) -> list[str]:
    found = api.read(gvr.PODS, name, "default") or {}
    return [one["name"] for one in found["spec"].get("schedulingGates", ())]


def test_the_gate_goes_after_the_claim_is_written_under_the_leaders_name(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    start(controllers, api, tmp_path)
    ours = [{"name": names.ALLOCATION_GATE}]
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim("mine"))
    api.put(gvr.PODS, objects.a_pod("pod-mine", "mine", schedulingGates=ours))
    waiting.until(lambda: not gates(api, "pod-mine"), within_s=25)
    writes = [one for one in api.requests if one.method == "PATCH"]
    paths = [one.path.rpartition("/default/")[2] for one in writes]
    assert paths.index("resourceclaims/mine/status") < paths.index("pods/pod-mine")
    assert len({one.field_manager for one in writes}) == 1


@pytest.mark.slow
def test_the_next_leader_takes_the_gate_away_that_the_last_one_could_not(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    first = start(controllers, api, tmp_path)
    opened = threading.Event()
    api.deny_with(lambda one: None if opened.is_set() or "/pods/" not in one.path else "no")
    ours = [{"name": names.ALLOCATION_GATE}]
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim("mine"))
    api.put(gvr.PODS, objects.a_pod("pod-mine", "mine", schedulingGates=ours))
    waiting.until(lambda: status_of(api, "mine").get("allocation"), within_s=25)
    first.kill()
    first.wait()
    assert gates(api, "pod-mine") == [names.ALLOCATION_GATE]
    written = status_of(api, "mine")
    opened.set()
    start(controllers, api, tmp_path)
    waiting.until(lambda: not gates(api, "pod-mine"), within_s=40)
    assert status_of(api, "mine") == written


def refused(api: api_server.ApiServer, name: str, *conditions: tuple[str, str, str]) -> None:
    """A pod of a ReplicaSet, on a node that says this of its claim."""
    entry = {"resource": "pods", "name": f"pod-{name}", "uid": objects.uid_of(f"pod-{name}")}
    said = [
        {"type": kind, "status": is_so, "reason": reason, "message": "in words",
         "lastTransitionTime": "2026-11-21T09:00:00Z"}
        for kind, is_so, reason in conditions
    ]  # fmt: skip
    device = {"driver": "gpu.ration.dev", "pool": "node-a", "device": "gpu-0"}
    status = objects.allocated("node-a", "gpu-0", reserved=[entry])
    pod = objects.a_pod(f"pod-{name}", name, nodeName="node-a")
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "web-uid", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    api.put(gvr.PODS, pod)
    devices = [{**device, "conditions": said}]
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim(name, status={**status, "devices": devices}))


def test_a_passed_refusal_retries_prepare_and_a_permanent_one_evicts_the_pod(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    start(controllers, api, tmp_path)
    refused(api, "late", ("Ready", "Unknown", "RefusalCleared"))
    refused(api, "never", ("Ready", "False", "ConfigInvalid"), ("Stalled", "True", "ConfigInvalid"))

    def meta(name: str) -> dict[str, Any]:
        found = api.read(gvr.PODS, f"pod-{name}", "default") or {}
        return dict(found.get("metadata") or {})

    waiting.until(lambda: "annotations" in meta("late"), within_s=25)
    assert meta("late")["annotations"] == {"ration.dev/prepare-again": "2026-11-21T09:00:00Z"}
    waiting.until(lambda: "deletionTimestamp" in meta("never"))
    assert "deletionTimestamp" not in meta("late")
    term = leaders_term(api)
    written = [one for one in api.requests if one.method != "GET" and "/pods/" in one.path]
    assert {one.field_manager for one in written} == {f"ration-controller/{term}"}
    waiting.until(lambda: {one["reason"] for one in api.all(gvr.EVENTS)} == {"PodEvicted"})


def test_a_pod_over_its_share_is_evicted_where_the_flag_asks_for_it(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    start(controllers, api, tmp_path, "--evict-over-share")
    refused(api, "greedy", ("Ready", "True", "Prepared"), ("WithinShare", "False", "ShareExceeded"))
    pod = api.read(gvr.PODS, "pod-greedy", "default") or {}
    api.put(gvr.PODS, {**pod, "status": {"phase": "Running"}})

    def leaves() -> bool:
        found = api.read(gvr.PODS, "pod-greedy", "default") or {}
        return "deletionTimestamp" in found["metadata"]

    waiting.until(leaves, within_s=25)


def test_sigterm_ends_it_cleanly_and_the_next_leads_at_once(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    first = start(controllers, api, tmp_path)
    ask(api, "one")
    waiting.until(lambda: status_of(api, "one").get("allocation"), within_s=25)
    start(controllers, api, tmp_path)
    first.send_signal(signal.SIGTERM)
    assert first.wait(12) == 0
    log = (tmp_path / "log-0").read_text()
    assert "did not stop" not in log
    assert "lease not released" not in log
    ask(api, "two")
    waiting.until(lambda: status_of(api, "two").get("allocation"), within_s=15)


def test_a_leader_whose_lease_is_taken_ends_itself(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    process = start(controllers, api, tmp_path)
    ask(api, "one")
    waiting.until(lambda: status_of(api, "one").get("allocation"), within_s=25)
    taken = api.read(gvr.LEASES, "ration-controller", "ration-system") or {}
    taken["spec"]["holderIdentity"] = "somebody-else"
    api.put(gvr.LEASES, taken)
    began = TIME.monotonic()
    assert process.wait(20) == 1
    assert TIME.monotonic() - began < 15


def test_a_flag_that_makes_no_sense_is_named() -> None:
    command = [sys.executable, "-m", "driver.controller", "--policies=best", "--metrics-address=x"]
    done = subprocess.run(
        command, cwd=HERE, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 1
    assert "'best' is no policy; expected some of fragmentation, islands," in done.stderr
    assert "'x' is not address:port" in done.stderr


def page_port(log: Path) -> int:
    """The page's port, as a process says it at its start."""
    lines = (json.loads(one) for one in log.read_text().splitlines() if one.startswith("{"))
    return next((int(one["page_port"]) for one in lines if one["event"] == "started"), 0)


def page(port: int, path: str) -> urllib3.BaseHTTPResponse:
    return urllib3.request("GET", f"http://localhost:{port}{path}", retries=False, timeout=5)


def test_the_leader_shows_what_it_allocated_and_a_standby_who_leads(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    start(controllers, api, tmp_path)
    ask(api, "mine")
    waiting.until(lambda: status_of(api, "mine").get("allocation"), within_s=25)
    leader = page_port(tmp_path / "log-0")

    def shown() -> dict[str, Any]:
        return dict(json.loads(page(leader, "/api/v1/claims/default/mine").data))

    waiting.until(lambda: shown()["state"] != "pending")
    assert shown()["devices"][0]["gpu"]
    waiting.until(lambda: b"Allocated" in page(leader, "/timeline").data)
    why = json.loads(page(leader, "/api/v1/pods/default/pod-mine").data)
    assert why["explanation"]["node"] == why["node"]
    metrics = page(leader, "/").headers
    assert metrics["Cache-Control"] == "no-store"

    start(controllers, api, tmp_path)
    waiting.until(lambda: page_port(tmp_path / "log-1"), within_s=25)
    standby = page_port(tmp_path / "log-1")

    def leader_named() -> tuple[int, str]:
        answer = page(standby, "/api/v1/fleet")
        return answer.status, json.loads(answer.data).get("leader", "")

    waiting.value(leader_named, lambda named: named == (503, "replica-0"))


def test_a_page_that_others_reach_without_a_token_is_refused_at_the_start(
    api: api_server.ApiServer, controllers: list[Process], tmp_path: Path
) -> None:
    process = start(controllers, api, tmp_path, "--web-address=0.0.0.0:0")
    assert process.wait(timeout=25) == 1
    assert (
        "--web-auth has to be token where others reach the page, at 0.0.0.0:0"
        in (tmp_path / "log-0").read_text()
    )
