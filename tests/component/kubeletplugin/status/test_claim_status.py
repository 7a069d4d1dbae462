"""Tests of what the plugin says of claims, over real HTTP, beside what the kubelet is answered."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from driver import clock, ids, names, reasons
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import claims_api
from driver.kubeletplugin.status import claim_status
from tests.fakes import waiting
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects

REF = ports.ClaimRef("default", "claim", ids.ClaimUid(objects.uid_of("claim")))


@pytest.fixture
def conditions(
    api: api_server.ApiServer, kube: client.KubeClient
) -> Iterator[claim_status.ClaimStatusWriter]:
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim(status=objects.allocated("node-a", "gpu-0")))
    status_writer = claim_status.ClaimStatusWriter(
        names.DRIVER,
        "node-a",
        claims_api.KubeClaimStatus(kube),
        clock.SystemClock(),
        lambda: 0.0,
    )
    stop = threading.Event()
    thread = threading.Thread(target=status_writer.run, args=(stop,))
    thread.start()
    yield status_writer
    stop.set()
    status_writer.interrupt()
    thread.join(5)
    assert not thread.is_alive()


def a_word(
    reason: reasons.Reason, *, holds: bool, permanent: bool = False
) -> ports.ConditionUpdate:
    return ports.ConditionUpdate(names.CONDITION_READY, holds, reason, "words", permanent)


def found(api: api_server.ApiServer) -> dict[str, Any]:
    claim = api.read(gvr.RESOURCE_CLAIMS, "claim", "default") or {}
    (entry,) = claim["status"].get("devices") or [{"conditions": []}]
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in entry["conditions"]
    }


def test_the_status_is_applied_with_the_plugins_field_manager(
    api: api_server.ApiServer, conditions: claim_status.ClaimStatusWriter
) -> None:
    conditions.set_condition(
        REF, a_word(reasons.Reason.CONFIG_INVALID, holds=False, permanent=True)
    )
    both = {"Ready": ("False", "ConfigInvalid"), "Stalled": ("True", "ConfigInvalid")}
    waiting.until(lambda: found(api) == both)
    conditions.set_condition(REF, a_word(reasons.Reason.PREPARED, holds=True))
    waiting.until(lambda: found(api) == {"Ready": ("True", "Prepared")})
    (first, *_) = [request for request in api.requests if request.method == "PATCH"]
    assert first.path.endswith("/resourceclaims/claim/status")
    assert first.headers["Content-Type"] == "application/apply-patch+yaml"
    assert (first.field_manager, first.query["force"]) == ("ration-kubeletplugin", "true")


def test_the_latest_status_is_written_once_the_server_is_back(
    api: api_server.ApiServer, conditions: claim_status.ClaimStatusWriter
) -> None:
    api.faults.add(faults.Answer(403, "Forbidden"), faults.writes, times=2)
    conditions.set_condition(REF, a_word(reasons.Reason.DRIVER_NOT_READY, holds=False))
    waiting.until(lambda: sum(request.method == "PATCH" for request in api.requests) >= 2)
    api.down()
    conditions.set_condition(REF, a_word(reasons.Reason.PREPARED, holds=True))
    api.up()
    waiting.until(lambda: found(api) == {"Ready": ("True", "Prepared")}, within_s=15)
