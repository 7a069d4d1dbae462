"""Tests of the activity that a claim's status reports, beside its other conditions."""

import json

from driver import names
from driver.resources.dra import claims
from simulator import control
from tests.e2e import playground

NODE = "e2e-a"
WHOLE = "4294967295"
WITHIN_S = 100.0
"""A word a minute at most, by looks ten seconds apart."""


def test_a_claims_devices_are_told_to_be_at_work_and_the_conditions_stay(
    field: playground.Playground,
) -> None:
    field.create(playground.a_claim("works"))
    field.create(playground.a_pod("works", claims=("works",), nodeSelector=playground.on(NODE)))
    field.running("works")
    # Readiness is written at the plugin's next check, which may come after a look at activity.
    playground.until(
        lambda: any(
            status.condition(names.CONDITION_READY)
            for status in claims.parse(field.claim("works")).device_statuses
        ),
        WITHIN_S,
        "the claim is ready",
    )
    (uuid,) = field.uuids("works")
    base = field.cluster.node_dir(NODE) / "gpu"
    control.send(base, "process", uuid, "4711", str(6 << 30), WHOLE, WHOLE)
    control.send(base, "work", uuid, "4711", "40")
    try:

        def told() -> bool:
            device_statuses = claims.parse(field.claim("works")).device_statuses
            return any(
                device_status.activity and device_status.activity.utilization
                for device_status in device_statuses
            )

        playground.until(told, WITHIN_S, "the claim is told to be at work")
        (entry,) = claims.parse(field.claim("works")).device_statuses
        assert entry.activity is not None
        assert (entry.activity.utilization or 0) <= 40
        assert entry.activity.peak_bytes == 6 << 30
        assert entry.activity.idle_since == ""
        ready = entry.condition(names.CONDITION_READY)
        assert ready is not None
        assert ready.status == "True"
        assert entry.activity.last_busy >= ready.since
        raw = json.loads(field.cluster.kubectl("get", "--raw", field_path(field, "works")))
        data = raw["status"]["devices"][0]["data"]
        assert (data["peakMemory"], set(data)) == ("6Gi", {"lastBusy", "utilization", "peakMemory"})
    finally:
        control.send(base, "process", uuid, "4711", "0", WHOLE, WHOLE)


def field_path(field: playground.Playground, name: str) -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{field.namespace}/resourceclaims/{name}"
