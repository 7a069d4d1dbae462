"""The controller beside an API server that forbids kinds which few pods need, or lacks them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from driver.kube import gvr
from tests.fakes import controller_process, waiting
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects

OPTIONAL = (
    gvr.NAMESPACES,
    gvr.PVCS,
    gvr.PVS,
    gvr.PDBS,
    gvr.STORAGE_CLASSES,
    gvr.CSI_NODES,
    gvr.CSI_DRIVERS,
    gvr.STORAGE_CAPACITIES,
    gvr.VOLUME_ATTACHMENTS,
    gvr.POD_GROUPS,
    gvr.COSCHEDULING_POD_GROUPS,
)


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with controller_process.api_with_a_node() as running:
        yield running


@pytest.fixture
def controllers() -> Iterator[list[controller_process.Process]]:
    with controller_process.killed_at_the_end() as running:
        yield running


def of(*kinds: gvr.Resource) -> Callable[[faults.Request], bool]:
    return lambda request: any(
        f"/{kind.group or 'api'}/" in request.path and request.path.endswith(f"/{kind.plural}")
        for kind in kinds
    )


def forbid(api: api_server.ApiServer, *kinds: gvr.Resource) -> None:
    for kind in kinds:
        words = (
            f'{kind.plural} is forbidden: User "ration" cannot list resource "{kind.plural}" in '
            f'API group "{kind.group}" at the cluster scope'
        )
        api.faults.add(faults.Answer(403, "Forbidden", message=words), of(kind))


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(one) for one in log.read_text().splitlines() if one.startswith("{")]


def readiness(log: Path) -> tuple[int, str]:
    port = next((one["metrics_port"] for one in lines(log) if one["event"] == "started"), 0)
    answer = urllib3.request("GET", f"http://localhost:{port}/readyz", retries=False, timeout=5)
    return answer.status, answer.data.decode()


def ask_with_a_volume(api: api_server.ApiServer) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim("stored"))
    api.put(gvr.PODS, objects.a_pod("pod-stored", "stored", volumes=[volume]))


def events(api: api_server.ApiServer, name: str) -> str:
    return "; ".join(
        str(one["note"]) for one in api.all(gvr.EVENTS) if one["regarding"]["name"] == name
    )


@pytest.mark.parametrize("answer", [403, 404])
def test_pods_that_need_no_kind_that_is_left_out_are_placed(
    api: api_server.ApiServer,
    controllers: list[controller_process.Process],
    tmp_path: Path,
    answer: int,
) -> None:
    if answer == 403:
        forbid(api, *OPTIONAL)
    else:
        api.faults.add(faults.Answer(404, "NotFound"), of(*OPTIONAL))
    flags = ("--pod-groups", "--metrics-address=127.0.0.1:0")
    controller_process.start(controllers, api, tmp_path, *flags)
    controller_process.ask(api, "plain")
    ask_with_a_volume(api)
    waiting.until(lambda: controller_process.status_of(api, "plain").get("allocation"), within_s=25)
    waiting.until(lambda: "pod-stored" in str(api.all(gvr.EVENTS)))
    assert "volume claims may not be listed" in events(api, "pod-stored")
    assert "allocation" not in controller_process.status_of(api, "stored")
    assert readiness(tmp_path / "log-0") == (200, "caches: ok\n")
    left_out = [one for one in lines(tmp_path / "log-0") if "left out" in one["event"]]
    named = {one["kind"] for one in left_out if one["level"] == "warning"}
    assert named == ({kind.plural for kind in OPTIONAL} if answer == 403 else set())
    assert all(f'cannot list resource "{one["kind"]}"' in one["error"] for one in left_out)


def test_a_kind_that_every_pod_needs_keeps_it_unready_and_is_named(
    api: api_server.ApiServer, controllers: list[controller_process.Process], tmp_path: Path
) -> None:
    forbid(api, gvr.DEVICE_TAINT_RULES)
    controller_process.start(controllers, api, tmp_path, "--metrics-address=127.0.0.1:0")
    controller_process.ask(api, "plain")

    def denied() -> list[dict[str, Any]]:
        there = lines(tmp_path / "log-0")
        return [one for one in there if "cannot list" in str(one) and one["level"] == "warning"]

    waiting.until(denied, within_s=25)
    assert denied()[0]["kind"] == "devicetaintrules"
    status, text = readiness(tmp_path / "log-0")
    assert status == 503
    assert "devicetaintrules" in text
    assert "allocation" not in controller_process.status_of(api, "plain")
