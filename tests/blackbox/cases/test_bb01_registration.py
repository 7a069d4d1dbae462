"""BB-1: the plugin registers, and is found again after whatever came between it and the kubelet."""

import time

import grpc

from tests.blackbox.catalogue import CLUSTER, NODE, case
from tests.blackbox.ground import room, seat
from tests.blackbox.proxy import faults
from tests.e2e import playground

until = playground.until
LONG = "a" * 90


def runs(field: room.Room, name: str) -> None:
    """A pod with a device of its own runs, and goes."""
    field.claim(name)
    field.pod(name, name)
    field.running(name)
    assert len(field.has(name)) == 1
    field.delete(name)
    field.unprepared(name)


@case("BB-1.1", f"{CLUSTER}: registers plugin")
def test_the_plugin_is_registered_and_serves(here: seat.Seat, field: room.Room) -> None:
    info = here.proxy.info()
    assert (info.type, info.name) == ("DRAPlugin", here.subject.driver)
    assert any(version.endswith("DRAPlugin") for version in info.versions)
    here.registered_after(0)
    runs(field, "plain")


@case("BB-1.2", f"{NODE}: must register after Kubelet restart")
def test_it_registers_after_the_kubelet_restarts(here: seat.Seat, field: room.Room) -> None:
    previous = here.registrations()
    here.restart_kubelet()
    here.registered_after(previous)
    here.wait_published()
    runs(field, "later")


@case("BB-1.3", f"{NODE}: must register after plugin restart")
def test_it_registers_after_it_restarts(here: seat.Seat, field: room.Room) -> None:
    previous = here.registrations()
    here.programs.stop()
    here.programs.start()
    here.registered_after(previous)
    runs(field, "stopped")
    previous = here.registrations()
    here.programs.kill()
    here.programs.start()
    here.registered_after(previous)
    runs(field, "killed")


@case("BB-1.4", f"{NODE}: must recover and register after registration failure")
def test_it_registers_once_get_info_works_again(here: seat.Seat, field: room.Room) -> None:
    previous = here.registrations()
    here.proxy.faults.plan("GetInfo", faults.Fail(), times=2)
    here.programs.stop()
    here.programs.start()
    here.registered_after(previous)
    calls = here.proxy.records.calls("GetInfo")
    assert [call.code for call in calls][-3:] == ["INTERNAL", "INTERNAL", "OK"]
    runs(field, "recovered")


@case("BB-1.5", f"{NODE}: must recover and register after NotifyRegistrationStatus failure")
def test_it_registers_once_it_can_be_told(here: seat.Seat, field: room.Room) -> None:
    fault = faults.Fail(grpc.StatusCode.UNAVAILABLE)
    here.proxy.faults.plan("NotifyRegistrationStatus", fault, times=1)
    previous = len(_heard(here))
    here.programs.stop()
    here.programs.start()
    until(lambda: len(_heard(here)) > previous, seat.REGISTERED_S, "the plugin is told")
    runs(field, "told")


def _heard(here: seat.Seat) -> list[object]:
    calls = here.proxy.records.calls("NotifyRegistrationStatus")
    return [call for call in calls if call.is_good()]


@case("BB-1.6", f"{NODE}: must process pod created when kubelet is not running")
def test_a_pod_that_came_without_a_kubelet_runs(here: seat.Seat, field: room.Room) -> None:
    here.stop_kubelet()
    field.claim("waiting")
    field.pod("waiting", "waiting")
    field.stays_pending("waiting", 3)
    here.start_kubelet()
    field.running("waiting", 90)
    assert len(field.has("waiting")) == 1


@case(
    "BB-1.7",
    f"{NODE}: must be functional when plugin starts to listen on a service socket after "
    "registration",
)
def test_the_service_may_come_after_the_registration(here: seat.Seat, field: room.Room) -> None:
    here.programs.stop()
    here.proxy.hide(service=True)
    previous = here.registrations()
    here.programs.start()
    here.registered_after(previous)
    field.claim("early")
    field.pod("early", "early")
    time.sleep(2)
    here.proxy.hide()
    here.wait_published()
    field.soon("early")


@case("BB-1.8", f"{NODE}: must be functional after service reconnect")
def test_a_pod_ends_well_after_the_service_was_away(here: seat.Seat, field: room.Room) -> None:
    field.claim("kept")
    field.pod("kept", "kept")
    field.running("kept")
    previous = here.proxy.records.connections()
    here.proxy.hide(service=True)
    time.sleep(1)
    here.proxy.hide()
    until(lambda: here.proxy.records.connections() > previous, 30, "the kubelet connects again")
    field.delete("kept")
    field.unprepared("kept")
    runs(field, "next")


@case("BB-1.9", f"{NODE}: must report gRPC serving error (for registrar)")
def test_a_plugin_that_cannot_register_ends_and_says_why(here: seat.Seat) -> None:
    _refuses_to_linger(here, "plugins_registry")


@case("BB-1.10", f"{NODE}: must report gRPC serving error (for DRA service)")
def test_a_plugin_that_cannot_serve_ends_and_says_why(here: seat.Seat) -> None:
    _refuses_to_linger(here, "plugins")


def _refuses_to_linger(here: seat.Seat, folder: str) -> None:
    """A file lies where the folder of its sockets should be."""
    root = here.places.root / f"odd-{folder}"
    root.mkdir(exist_ok=True)
    (root / folder).write_text("in the way")
    code, message = here.programs.try_once(
        30, kubelet=str(root), state=str(root / "s"), cdi=str(root / "c")
    )
    assert code not in {None, 0}, f"it went on: {code}\n{message}"
    assert message.strip(), "it said nothing"


@case("BB-1.11", f"{NODE}: must use one gRPC connection for all service calls")
def test_all_calls_come_over_one_connection(here: seat.Seat, field: room.Room) -> None:
    here.restart_kubelet()
    here.wait_published()
    runs(field, "first")
    previous = here.proxy.records.connections()
    for name in ("one", "two", "three"):
        runs(field, name)
    assert here.proxy.records.connections() == previous


@case("BB-1.12", "F-22: ours")
def test_a_socket_path_that_is_too_long_is_refused_at_once(here: seat.Seat) -> None:
    root = here.places.root / LONG
    code, message = here.programs.try_once(
        30, kubelet=str(root), state=str(root / "s"), cdi=str(root / "c")
    )
    assert code not in {None, 0}, f"it went on: {code}\n{message}"
    assert message.strip(), "it said nothing"


@case("BB-1.13", f"{CLUSTER}: work (with multiple drivers: v1beta1, v1)")
def test_every_version_that_it_offers_works(here: seat.Seat, field: room.Room) -> None:
    offered = [version for version in here.proxy.info().versions if version.endswith(".DRAPlugin")]
    assert offered
    try:
        for version in offered:
            here.offer(without=[name for name in offered if name != version])
            mark = here.proxy.records.mark()
            runs(field, version.partition(".")[0])
            calls = here.proxy.records.since(mark, "NodePrepareResources")
            assert {call.service.split(".")[-2] for call in calls} == {version.partition(".")[0]}
    finally:
        here.offer()
