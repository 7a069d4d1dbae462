"""BB-3: two drivers on one node; what goes wrong with one is no matter of the other."""

from collections.abc import Iterator

import pytest

from tests.blackbox.catalogue import NODE, case
from tests.blackbox.ground import room, seat
from tests.blackbox.proxy import faults
from tests.e2e import playground

until = playground.until
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
IN_USE = "dra_resource_claims_in_use"
OPERATIONS = "dra_operations_duration_seconds_count"


@pytest.fixture
def both(field: room.Room, neighbour: seat.Seat) -> Iterator[room.Room]:
    """Every pod has a claim of either driver: `mine-NAME` and `other-NAME`."""
    yield field
    neighbour.mend()


def ask(field: room.Room, neighbour: seat.Seat, name: str) -> tuple[str, str]:
    """A pod with a device of either driver; its claims."""
    mine, other = f"mine-{name}", f"other-{name}"
    field.claim(mine)
    field.claim(other, {"name": "one", "exactly": {**neighbour.subject.device.request}})
    field.pod(name, mine, other, look=f"{field.seat.subject.device.look}; env | grep OTHER")
    return mine, other


def devices(field: room.Room, pod: str) -> set[str]:
    """Return what it has of both; the minimal driver's look shows the neighbour's too."""
    return set(field.has(pod))


def good(source: seat.Seat, method: str, claim: str) -> bool:
    """Return whether a call for the claim ended well."""
    return any(call.is_good() for call in source.proxy.records.calls(method, claim))


@case("BB-3.1", f"{NODE}: must prepare and unprepare resources")
def test_a_pod_has_devices_of_both(both: room.Room, neighbour: seat.Seat) -> None:
    mine, other = ask(both, neighbour, "pair")
    both.running("pair")
    assert len(devices(both, "pair")) == 2
    assert len([device for device in devices(both, "pair") if "OTHER" in device]) == 1
    both.delete("pair")
    assert good(both.seat, UNPREPARE, mine)
    assert good(neighbour, UNPREPARE, other)
    assert not both.seat.proxy.records.calls("", other)
    assert not neighbour.proxy.records.calls("", mine)


@case("BB-3.2", f"{NODE}: must provide metrics")
def test_the_kubelet_counts_claims_of_both(both: room.Room, neighbour: seat.Seat) -> None:
    previous = in_use(both.seat)
    ask(both, neighbour, "counted")
    both.running("counted")
    drivers = (both.seat.subject.driver, neighbour.subject.driver)
    now = in_use(both.seat)
    assert [now.get(name) for name in drivers] == [previous.get(name, 0) + 1 for name in drivers]
    counted = [metric for metric in both.seat.metrics() if metric.name == OPERATIONS]
    assert any(sample.labels["operation_name"] == "PrepareResources" for sample in counted)
    both.delete("counted")

    def fewer() -> bool:
        left = in_use(both.seat)
        return all(left.get(name, 0) == previous.get(name, 0) for name in drivers)

    until(fewer, 30, "the claims are in use no more")


def in_use(here: seat.Seat) -> dict[str, int]:
    """Claims in use, by driver."""
    samples = (metric for metric in here.metrics() if metric.name == IN_USE)
    return {sample.labels["driver_name"]: int(sample.value) for sample in samples}


@case(
    "BB-3.3", f"{NODE}: must run pod if NodePrepareResources fails for one plugin and then succeeds"
)
def test_a_pod_waits_until_both_have_prepared(both: room.Room, neighbour: seat.Seat) -> None:
    neighbour.proxy.faults.plan(PREPARE, faults.Fail())
    both.proxy.faults.plan(PREPARE, faults.Fail(), claim="mine-second")
    _, other = ask(both, neighbour, "first")
    mine, _ = ask(both, neighbour, "second")
    both.refused("first")
    both.refused("second")
    assert (both.phase("first"), both.phase("second")) == ("Pending", "Pending")
    neighbour.proxy.faults.lift()
    both.proxy.faults.lift()
    both.soon("first", "second")
    assert good(neighbour, PREPARE, other)
    assert good(both.seat, PREPARE, mine)
    assert len(devices(both, "first")) == len(devices(both, "second")) == 2


@case(
    "BB-3.4",
    f"{NODE}: must run pod if NodeUnprepareResources fails for one plugin and then succeeds",
)
def test_a_pod_goes_once_both_have_unprepared(both: room.Room, neighbour: seat.Seat) -> None:
    neighbour.proxy.faults.plan(UNPREPARE, faults.Fail(), times=1)
    mine, other = ask(both, neighbour, "leaving")
    both.running("leaving")
    both.delete("leaving", within_s=150)
    assert good(both.seat, UNPREPARE, mine)
    calls = neighbour.proxy.records.calls(UNPREPARE, other)
    assert [call.is_good() for call in calls][:2] == [False, True]


@case(
    "BB-3.5",
    f"{NODE}: must run pod if NodePrepareResources is in progress for one plugin when Kubelet "
    "restarts",
)
def test_a_prepare_cut_by_the_kubelets_end_is_asked_again(
    both: room.Room, neighbour: seat.Seat
) -> None:
    neighbour.proxy.faults.plan(PREPARE, faults.Block())
    _, other = ask(both, neighbour, "cut")
    until(lambda: neighbour.proxy.records.calls(PREPARE, other), 30, "prepare is asked for")
    both.seat.restart_kubelet()
    neighbour.proxy.faults.lift()
    both.running("cut", 120)
    assert len(devices(both, "cut")) == 2


@case(
    "BB-3.6",
    f"{NODE}: must call NodeUnprepareResources again if it's in progress for one plugin when "
    "Kubelet restarts",
)
def test_an_unprepare_cut_by_the_kubelets_end_is_asked_again(
    both: room.Room, neighbour: seat.Seat
) -> None:
    mine, other = ask(both, neighbour, "cut")
    both.running("cut")
    neighbour.proxy.faults.plan(UNPREPARE, faults.Block())
    both.delete("cut", wait=False)
    until(lambda: neighbour.proxy.records.calls(UNPREPARE, other), 60, "unprepare is asked for")
    both.seat.restart_kubelet()
    neighbour.proxy.faults.lift()
    until(lambda: both.phase("cut") == "", 120, "the pod is gone")
    assert good(neighbour, UNPREPARE, other)
    assert good(both.seat, UNPREPARE, mine)
