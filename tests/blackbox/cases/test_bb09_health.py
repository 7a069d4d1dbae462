"""BB-9: a device's health reaches the pod's status; the driver's words reach the claim's."""

import time
from collections.abc import Iterator

import pytest

from tests.blackbox import subject
from tests.blackbox.catalogue import CLUSTER, NODE, case
from tests.blackbox.ground import room, seat
from tests.e2e import playground

until = playground.until
HEALTH, STATUS = subject.Feature.HEALTH, subject.Feature.STATUS
UNKNOWN_S = 150
PUBLISHED_S = 60
WATCH = "NodeWatchResources"
HEALTH_SERVICE = "DRAResourceHealth"


class Patient:
    """A pod with a device, and what the API says of the device's health."""

    def __init__(self, field: room.Room) -> None:
        self.field = field
        field.claim("patient")
        field.pod("patient", "patient")
        field.running("patient")
        (self.result,) = field.results("patient")
        health = field.seat.subject.health
        assert health is not None
        self.told = health
        name = self.result["device"]
        until(lambda: name in field.seat.devices(), PUBLISHED_S, f"{name} is published")
        device = field.seat.devices()[name]
        self.attribute = _value(device["attributes"], health.attribute)

    def suffer(self, command: tuple[str, ...]) -> None:
        device = self.result["device"]
        places = {"attribute": self.attribute, "device": device}
        self.field.seat.programs.run_all([command], **places)

    def health(self) -> list[str]:
        return [resource["health"] for resource in self._resources()]

    def messages(self) -> list[str]:
        return [resource.get("message", "") for resource in self._resources()]

    def _resources(self) -> list[dict[str, str]]:
        statuses = self.field.ground.pod("patient")["status"].get("containerStatuses", ())
        return [
            resource
            for status in statuses
            for entry in status.get("allocatedResourcesStatus", ())
            for resource in entry["resources"]
        ]

    def becomes(self, health: str, within_s: float | None = None) -> None:
        most = within_s or self.told.within_s
        until(lambda: self.health() == [health], most, f"the device is {health}: {self.health()}")


def _value(attributes: dict[str, dict[str, str]], name: str) -> str:
    bare = {key.rpartition("/")[2]: value for key, value in attributes.items()}
    return str(next(iter(bare[name].values())))


@pytest.fixture
def patient(field: room.Room) -> Iterator[Patient]:
    created = Patient(field)
    created.becomes("Healthy")
    yield created
    created.suffer(created.told.heal)


@case("BB-9.1", f"{NODE}: should reflect device health changes in the Pod's status", HEALTH)
def test_the_pod_tells_that_its_device_fails_and_recovers(patient: Patient) -> None:
    patient.suffer(patient.told.fail)
    patient.becomes("Unhealthy")
    patient.suffer(patient.told.heal)
    patient.becomes("Healthy")
    assert patient.field.phase("patient") == "Running"


@case("BB-9.2", f"{CLUSTER}: should report device health with custom messages", HEALTH)
def test_the_pod_tells_in_words_what_ails_its_device(patient: Patient) -> None:
    patient.suffer(patient.told.fail)
    patient.becomes("Unhealthy")
    until(lambda: all(patient.messages()), 30, "there is a message")


@case(
    "BB-9.3",
    f"{NODE}: must reuse one gRPC connection for service and health-monitoring calls",
    HEALTH,
)
def test_health_comes_over_the_same_connection(here: seat.Seat, patient: Patient) -> None:
    previous = here.proxy.records.connections()
    patient.field.claim("other")
    patient.field.pod("other", "other")
    patient.field.running("other")
    assert here.proxy.records.calls(WATCH)
    assert here.proxy.records.connections() == previous


@case(
    "BB-9.4",
    f"{NODE}: should update health to Unknown when plugin stops and recover upon restart",
    HEALTH,
)
def test_health_is_unknown_while_the_plugin_is_down(here: seat.Seat, patient: Patient) -> None:
    here.programs.kill()
    patient.becomes("Unknown", UNKNOWN_S)
    here.programs.start()
    patient.becomes("Healthy", UNKNOWN_S)


@case(
    "BB-9.5",
    f"{NODE}: should automatically reconnect both DRA and Health API after connection drop",
    HEALTH,
)
def test_health_is_watched_again_after_the_connection_was_cut(
    here: seat.Seat, patient: Patient
) -> None:
    mark = here.proxy.records.mark()
    here.proxy.cut()
    until(lambda: here.proxy.records.since(mark, WATCH), 60, "health is watched again")
    patient.suffer(patient.told.fail)
    patient.becomes("Unhealthy")
    patient.suffer(patient.told.heal)
    patient.becomes("Healthy")
    patient.field.claim("other")
    patient.field.pod("other", "other")
    patient.field.running("other")


@case(
    "BB-9.6",
    f"{NODE}: should handle concurrent DRA operations and health monitoring without connection "
    "issues",
    HEALTH,
)
def test_devices_fail_and_recover_while_pods_come_and_go(here: seat.Seat, patient: Patient) -> None:
    field, previous = patient.field, here.proxy.records.connections()
    for round_ in range(2):
        names = [f"p{round_}-{number}" for number in range(3)]
        for name in names:
            field.claim(name)
            field.pod(name, name)
        patient.suffer(patient.told.fail)
        patient.becomes("Unhealthy")
        for name in names:
            field.running(name, 90)
        patient.suffer(patient.told.heal)
        field.delete(*names)
        patient.becomes("Healthy")
    assert here.proxy.records.connections() == previous


@case("BB-9.7", f"{CLUSTER}: driver may update the ResourceClaim.Status.Devices", STATUS)
def test_the_claim_tells_what_the_driver_says_of_its_device(field: room.Room) -> None:
    field.claim("told")
    field.pod("told", "told")
    field.running("told")

    def said() -> list[str]:
        return [
            entry["device"]
            for entry in field.ground.claim("told").get("status", {}).get("devices", ())
            if entry["driver"] == field.seat.subject.driver
        ]

    until(said, 60, "status.devices has the device")
    assert said() == [result["device"] for result in field.results("told")]
    field.delete("told")
    time.sleep(1)
    assert not field.ground.claim("told").get("status", {}).get("devices")


def told_by(here: seat.Seat, patient: Patient, version: str) -> None:
    """The pod tells of its device although the plugin offers health in one version alone."""
    offered = [
        version for version in here.proxy.info().versions if version.endswith(HEALTH_SERVICE)
    ]
    if version not in offered:
        pytest.skip(f"does not offer {version}")
    mark = here.proxy.records.mark()
    try:
        here.offer(without=[name for name in offered if name != version])
        until(lambda: here.proxy.records.since(mark, WATCH), 60, "health is watched")
        assert {call.service for call in here.proxy.records.since(mark, WATCH)} == {version}
        patient.suffer(patient.told.fail)
        patient.becomes("Unhealthy")
        patient.suffer(patient.told.heal)
        patient.becomes("Healthy")
    finally:
        here.offer()


@case(
    "BB-9.8",
    f"{NODE}: should reflect device health changes for a plugin which only supports the v1alpha1 "
    "health API",
    HEALTH,
)
def test_health_is_told_in_its_first_version_alone(here: seat.Seat, patient: Patient) -> None:
    told_by(here, patient, f"v1alpha1.{HEALTH_SERVICE}")


@case(
    "BB-9.9",
    f"{NODE}: should reflect device health changes for a plugin which only supports the v1 "
    "health API",
    HEALTH,
    since="1.37",
)
def test_health_is_told_in_its_second_version_alone(here: seat.Seat, patient: Patient) -> None:
    told_by(here, patient, f"v1.{HEALTH_SERVICE}")


@case(
    "BB-9.10",
    f"{NODE}: should not add health status to Pod when feature gate is disabled",
    HEALTH,
)
def test_no_health_is_told_when_the_kubelet_does_not_ask(here: seat.Seat, field: room.Room) -> None:
    with here.without_gates("ResourceHealthStatus", "ResourceHealthStatusMessage"):
        mark = here.proxy.records.mark()
        created = Patient(field)
        created.suffer(created.told.fail)
        here.stays(created.health, 15)
        created.suffer(created.told.heal)
        assert created.health() == []
        assert not here.proxy.records.since(mark, WATCH)
        field.delete("patient")
