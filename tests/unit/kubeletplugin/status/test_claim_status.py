import threading
from typing import Any

import pytest
import structlog

from driver import errors, ids, names, reasons
from driver.kubeletplugin import ports
from driver.kubeletplugin.status import claim_status as claim_statuses
from driver.resources.dra import claims, device_status
from tests.fakes import claim_status
from tests.fakes import clock as clocks
from tests.support.builders import objects

REF = ports.ClaimRef("default", "claim", ids.ClaimUid(objects.uid_of("claim")))
READY = ports.ConditionUpdate(
    names.CONDITION_READY, holds=True, reason=reasons.Reason.PREPARED, message="ok"
)
FIRST, LATER = "2026-11-21T09:00:00Z", "2026-11-21T09:01:00Z"


def a_refusal(
    reason: reasons.Reason = reasons.Reason.DEVICE_OVERLAP, *, permanent: bool = False
) -> ports.ConditionUpdate:
    return ports.ConditionUpdate(
        names.CONDITION_READY, holds=False, reason=reason, message="no", permanent=permanent
    )


class World:
    """The conditions of a node's plugin, and the claim they are about."""

    def __init__(self) -> None:
        self.time = clocks.FakeClock()
        self.api = claim_status.ClaimStatus()
        self.api.put(objects.a_claim(status=objects.allocated("node-a", "gpu-0", "gpu-1")))
        self.conditions = self.plugin()

    def plugin(self) -> claim_statuses.ClaimStatusWriter:
        return claim_statuses.ClaimStatusWriter(
            names.DRIVER, "node-a", self.api, self.time, lambda: 0.0
        )

    def say(self, *words: ports.ConditionUpdate, ref: ports.ClaimRef = REF) -> None:
        for word in words:
            self.conditions.set_condition(ref, word)
        self.conditions.write_due()

    def found(self, device: str = "gpu-0") -> dict[str, tuple[str, str, str]]:
        return self.api.conditions("claim", device)


@pytest.fixture
def world() -> World:
    return World()


def test_a_word_is_written_for_every_device_of_ours(world: World) -> None:
    world.say(READY)
    for device in ("gpu-0", "gpu-1"):
        assert world.found(device) == {"Ready": ("True", "Prepared", FIRST)}


def test_the_latest_word_of_a_type_is_written_once(world: World) -> None:
    world.say(a_refusal(), READY, a_refusal(reasons.Reason.DRIVER_NOT_READY))
    assert world.found() == {"Ready": ("False", "DriverNotReady", FIRST)}
    assert world.api.applied == 1


def test_an_unchanged_status_is_not_rewritten_after_a_restart(world: World) -> None:
    world.say(READY)
    world.time.advance(60)
    world.conditions = world.plugin()
    world.say(READY)
    assert world.api.applied == 1
    assert world.found()["Ready"] == ("True", "Prepared", FIRST)


def test_conditions_from_before_a_restart_survive_new_ones(world: World) -> None:
    kind, reason = names.CONDITION_WITHIN_SHARE, reasons.Reason.GPU_NOTICE
    world.say(ports.ConditionUpdate(kind, holds=False, reason=reason, message="over"))
    world.conditions = world.plugin()
    world.time.advance(60)
    world.say(READY)
    assert world.found() == {
        "WithinShare": ("False", "GpuNotice", FIRST),
        "Ready": ("True", "Prepared", LATER),
    }


def test_a_refusal_that_will_not_pass_is_stalled_until_something_else_is_said(
    world: World,
) -> None:
    world.say(a_refusal(reasons.Reason.CONFIG_INVALID, permanent=True))
    assert world.found() == {
        "Ready": ("False", "ConfigInvalid", FIRST),
        "Stalled": ("True", "ConfigInvalid", FIRST),
    }
    world.say(READY)
    assert world.found().keys() == {"Ready"}


def test_a_refusal_is_not_said_to_be_cleared_of_what_another_plugin_has_prepared(
    world: World,
) -> None:
    reason = reasons.Reason.REFUSAL_CLEARED
    cleared = ports.ConditionUpdate(names.CONDITION_READY, holds=None, reason=reason, message="now")
    world.say(cleared)
    assert world.found() == {"Ready": ("Unknown", "RefusalCleared", FIRST)}
    next_one = world.plugin()
    next_one.set_condition(REF, READY)
    next_one.write_due()
    world.say(cleared)
    assert world.found() == {"Ready": ("True", "Prepared", FIRST)}


def test_entries_and_conditions_of_others_stay(world: World) -> None:
    raw = objects.a_claim(status=objects.allocated("node-a", "gpu-0"))
    nic = {"driver": "nic.example.com", "pool": "p", "device": "nic-0"}
    raw["status"]["allocation"]["devices"]["results"].append({"request": "nic", **nic})
    world.api.put(raw)
    gang = {
        "type": "ration.dev/GangReady",
        "status": "True",
        "reason": "Together",
        "message": "",
        "lastTransitionTime": FIRST,
    }
    ours = {"driver": names.DRIVER, "pool": "node-a", "device": "gpu-0"}
    theirs: list[dict[str, Any]] = [
        {**ours, "conditions": [gang]},
        {**nic, "conditions": [gang], "networkData": {"interfaceName": "eth1"}},
    ]
    world.api.apply_as("claim", "another", {"status": {"devices": theirs}})
    world.say(a_refusal(permanent=True))
    world.say(READY)
    ours_now, nic_now = world.api.raw("claim")["status"]["devices"]
    assert nic_now == theirs[1]
    assert [condition["type"] for condition in ours_now["conditions"]] == [
        "ration.dev/GangReady",
        "Ready",
    ]


@pytest.mark.parametrize(
    "claim",
    [
        objects.a_claim(),
        objects.a_claim(status=objects.allocated("node-b", "gpu-0")),
        {**objects.a_claim(), "metadata": {**objects.meta("claim"), "uid": "another"}},
    ],
    ids=["no allocation", "devices of another node", "another claim of the name"],
)
def test_a_claim_that_has_nothing_of_us_is_left_alone(world: World, claim: dict[str, Any]) -> None:
    world.api.put(claim)
    previous = world.api.raw("claim")
    world.say(READY)
    assert world.api.raw("claim") == previous
    world.time.advance(600)
    world.conditions.write_due()
    assert world.api.reads == 1


def test_a_claim_that_is_gone_is_forgotten(world: World) -> None:
    world.say(READY, ref=ports.ClaimRef("default", "gone", ids.ClaimUid("gone")))
    world.time.advance(600)
    world.conditions.write_due()
    assert world.api.reads == 1


def test_a_claim_that_changed_meanwhile_is_read_again_at_once(world: World) -> None:
    world.api.trouble = [None, errors.Conflict(409, "Conflict", "changed")]
    with structlog.testing.capture_logs() as logs:
        world.say(READY)
        world.time.advance(0.1)
        world.conditions.write_due()
    assert world.found()["Ready"][0] == "True"
    assert logs == []


def test_trouble_is_told_once_and_tried_again_ever_later(world: World) -> None:
    forbidden = errors.Forbidden(403, "Forbidden", "no rights")
    world.api.trouble = [forbidden] * 12
    with structlog.testing.capture_logs() as logs:
        world.say(READY)
        for _ in range(12):
            world.time.advance(70)
            world.conditions.write_due()
    assert world.found()["Ready"][0] == "True"
    assert [log["event"] for log in logs] == ["conditions not written"]


def test_a_newer_status_replaces_an_older_one_that_cannot_be_written(
    world: World,
) -> None:
    world.api.trouble = [errors.Unreachable(0, "", "connection refused")]
    world.say(a_refusal())
    world.say(READY)
    world.time.advance(60)
    world.conditions.write_due()
    assert world.found() == {"Ready": ("True", "Prepared", FIRST)}


def test_no_more_than_so_many_claims_are_remembered(world: World) -> None:
    for number in range(claim_statuses.MAX_PENDING + 10):
        world.conditions.set_condition(
            ports.ClaimRef("default", f"c{number}", ids.ClaimUid(f"{number}")), READY
        )
    world.conditions.write_due()
    assert world.api.reads == claim_statuses.MAX_PENDING


def test_the_thread_ends_when_it_is_told_to(world: World) -> None:
    stop = threading.Event()
    stop.set()
    world.conditions.interrupt()
    world.conditions.run(stop)


def seen(percent: int | None = 0, last_busy: str = "", gib: int = 1) -> ports.ObservedActivity:
    return ports.ObservedActivity(percent, gib << 30, last_busy, LATER)


def activity(world: World, device: str = "gpu-0") -> device_status.Activity | None:
    device_statuses = claims.parse(world.api.raw("claim")).device_statuses
    return next(status.activity for status in device_statuses if status.device.device == device)


def test_the_activity_of_each_device_is_beside_the_conditions(world: World) -> None:
    world.say(READY)
    keys = [ports.DeviceKey("gpu-0"), ports.DeviceKey("gpu-1"), ports.DeviceKey("gpu-2")]
    world.conditions.set_activity(
        REF, {keys[0]: seen(40, LATER, 6), keys[1]: seen(), keys[2]: seen()}
    )
    world.conditions.write_due()
    assert activity(world) == device_status.Activity(LATER, 40, 6 << 30)
    assert activity(world, "gpu-1") == device_status.Activity(FIRST, 0, 1 << 30), "since prepared"
    assert world.found() == {"Ready": ("True", "Prepared", FIRST)}
    assert world.api.raw("claim")["status"]["devices"][0]["data"] == {
        "lastBusy": LATER,
        "utilization": 40,
        "peakMemory": "6Gi",
    }


def test_a_later_word_of_either_kind_leaves_the_other(world: World) -> None:
    world.conditions.set_activity(REF, {ports.DeviceKey("gpu-0"): seen(40, LATER)})
    world.say(READY)
    world.conditions = world.plugin()
    world.say(a_refusal())
    assert activity(world) == device_status.Activity(LATER, 40, 1 << 30)
    world.conditions.set_activity(REF, {ports.DeviceKey("gpu-0"): seen(90, LATER)})
    world.conditions.write_due()
    assert world.found()["Ready"] == ("False", "DeviceOverlap", FIRST)


def test_activity_after_a_restart_continues_the_reported_one(world: World) -> None:
    world.say(READY)
    world.conditions.set_activity(REF, {ports.DeviceKey("gpu-0"): seen(0, FIRST, 6)})
    world.conditions.write_due()
    written = world.api.applied
    world.conditions = world.plugin()
    world.conditions.set_activity(REF, {ports.DeviceKey("gpu-0"): seen(gib=2)})
    world.conditions.write_due()
    assert activity(world) == device_status.Activity(FIRST, 0, 6 << 30)
    assert world.api.applied == written


def test_the_latest_status_counts_while_writes_fail(world: World) -> None:
    world.api.trouble = [errors.ServerError(500, "InternalError", "etcd")]
    key = ports.DeviceKey("gpu-0")
    world.conditions.set_activity(REF, {key: seen(10, FIRST)})
    world.conditions.write_due()
    world.conditions.set_activity(REF, {key: seen(90, LATER)})
    world.time.advance(100)
    world.conditions.write_due()
    assert activity(world) == device_status.Activity(LATER, 90, 1 << 30)
    assert world.api.applied == 1
