import dataclasses

import pytest

from driver.resources.dra import device_status
from driver.resources.dra.device_status import Activity

DEVICE = device_status.Device("gpu.ration.dev", "node-a", "gpu-0")
BEFORE, NOW = "2026-11-21T09:00:00Z", "2026-11-21T09:05:00Z"


def a_condition(kind: str = "Ready", status: str = "True", **more: str) -> device_status.Condition:
    return device_status.Condition(
        kind, status, more.get("reason", "Prepared"), more.get("message", ""), more.get("since", "")
    )


def an_entry(*conditions: device_status.Condition) -> device_status.DeviceStatus:
    return device_status.DeviceStatus(DEVICE, conditions)


def test_a_rendered_status_reads_back_equal() -> None:
    share = device_status.Device("gpu.ration.dev", "node-a", "gpu-0-mps", "share-1")
    for device in (DEVICE, share):
        entry = device_status.DeviceStatus(device, (a_condition(since=NOW, message="fine"),))
        status = {"devices": [device_status.render(entry)]}
        assert device_status.parse(status) == (entry,)
    assert "shareID" not in device_status.render(an_entry())


def test_entries_of_others_and_fields_that_are_not_known_are_read_past() -> None:
    status = {
        "allocation": {},
        "devices": [
            {
                "driver": "nic.example.com",
                "pool": "p",
                "device": "d",
                "networkData": {"ips": ["1"]},
            },
            {"driver": "gpu.ration.dev", "pool": "p", "device": "d", "data": {"x": 1}, "novel": []},
        ],
    }
    assert [status.device.driver for status in device_status.parse(status)] == [
        "nic.example.com",
        "gpu.ration.dev",
    ]
    assert device_status.parse({}) == ()


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    entry = an_entry(a_condition(status="False", reason="DeviceOverlap", since=BEFORE))
    condition = a_condition(status="False", reason="DriverNotReady")
    (after,) = device_status.merge_conditions(entry, {"Ready": condition}, NOW).conditions
    assert (after.reason, after.since) == ("DriverNotReady", BEFORE)


def test_a_condition_gets_a_new_time_with_a_new_status() -> None:
    entry = an_entry(a_condition(status="False", since=BEFORE))
    (after,) = device_status.merge_conditions(entry, {"Ready": a_condition()}, NOW).conditions
    assert (after.status, after.since) == ("True", NOW)


def test_a_condition_is_taken_back_and_the_others_stay() -> None:
    entry = an_entry(a_condition(since=BEFORE), a_condition("Stalled", since=BEFORE))
    assert device_status.merge_conditions(entry, {"Stalled": None}, NOW) == an_entry(
        a_condition(since=BEFORE)
    )


def test_a_message_is_cut_and_a_cut_one_stays_as_it_is() -> None:
    expected = {"Ready": a_condition(message="x" * 5000)}
    once = device_status.merge_conditions(an_entry(), expected, NOW)
    assert len(once.conditions[0].message) == device_status.LONGEST_MESSAGE
    assert device_status.merge_conditions(once, expected, "2027-01-01T00:00:00Z") == once


def test_conditions_of_other_types_are_another_writers() -> None:
    entry = an_entry(a_condition("ration.dev/GangReady"), a_condition("Ready"))
    assert device_status.filter_types(entry, {"Ready"}) == an_entry(a_condition("Ready"))


@pytest.mark.parametrize(
    ("activity", "data"),
    [
        (Activity(NOW, 40, 6 << 30), {"lastBusy": NOW, "utilization": 40, "peakMemory": "6Gi"}),
        (Activity(NOW, 0, 0), {"lastBusy": NOW, "utilization": 0, "peakMemory": "0"}),
        (Activity(NOW), {"lastBusy": NOW}),
    ],
)
def test_activity_is_rendered_and_read_back(activity: Activity, data: dict[str, object]) -> None:
    entry = dataclasses.replace(an_entry(a_condition(since=NOW)), activity=activity)
    rendered = device_status.render(entry)
    assert rendered["data"] == data
    assert device_status.parse({"devices": [rendered]}) == (entry,)
    assert device_status.filter_types(entry, ()).activity == activity


@pytest.mark.parametrize(
    "data", [None, "text", [1], {}, {"lastBusy": 5}, {"utilization": 3}, {"lastBusy": None}]
)
def test_data_of_another_driver_is_no_activity(data: object) -> None:
    entry = {"driver": "other.example.com", "pool": "p", "device": "d", "data": data}
    assert device_status.parse({"devices": [entry]})[0].activity is None


def test_only_readable_activity_counts() -> None:
    data = {"lastBusy": NOW, "utilization": True, "peakMemory": "lots", "novel": 1}
    entry = {"driver": "gpu.ration.dev", "pool": "p", "device": "d", "data": data}
    assert device_status.parse({"devices": [entry]})[0].activity == Activity(NOW)


def test_a_device_is_idle_only_where_it_is_known_that_nothing_ran() -> None:
    assert Activity(NOW, 0).idle_since == NOW
    assert Activity(NOW, 1).idle_since == ""
    assert Activity(NOW).idle_since == ""
