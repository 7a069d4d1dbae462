"""BB-11: what upstream has no test for: lost files, lost power, lost memory, two at once."""

import time
from collections.abc import Callable

from driver.kube import gvr
from tests.blackbox import subject
from tests.blackbox.catalogue import case
from tests.blackbox.ground import room, seat
from tests.blackbox.proxy import wire
from tests.e2e import playground

until = playground.until
RECLAIMED_S = 200
BOOT_S = 120
GARBAGE = b'{"half a rec'


def ours(failure: str) -> str:
    """Return the origin of a case that upstream has no test for, by the code of its failure."""
    return f"{failure}: ours"


def in_use(field: room.Room, name: str) -> str:
    """A pod runs with a device of its own; the UID of its claim."""
    field.claim(name)
    field.pod(name, name)
    field.running(name)
    assert len(field.has(name)) == 1
    return field.uid(name)


@case("BB-11.1", ours("F-4"))
def test_a_prepare_that_comes_after_unprepare_is_refused(field: room.Room) -> None:
    uid = in_use(field, "late")
    field.delete("late")
    field.unprepared("late")
    until(lambda: not field.results("late"), 60, "the claim is free")
    late = wire.Claim(field.namespace, "late", uid)
    assert field.proxy.ask("NodePrepareResources", late)[uid], "a free claim was prepared"
    field.kube.delete(gvr.RESOURCE_CLAIMS, "late", field.namespace)
    assert field.proxy.ask("NodePrepareResources", late)[uid], "a claim that is gone was prepared"
    assert not field.seat.cdi_files(uid)


@case("BB-11.2", ours("F-3"))
def test_unprepare_of_what_nobody_knows_is_no_failure(field: room.Room) -> None:
    unknown = wire.Claim(field.namespace, "nobody", "00000000-0000-4000-8000-000000000000")
    for _ in range(2):
        assert field.proxy.ask("NodeUnprepareResources", unknown) == {unknown.uid: ""}


@case("BB-11.3", ours("F-12"))
def test_a_claim_with_another_uid_is_not_prepared(field: room.Room) -> None:
    in_use(field, "real")
    other = wire.Claim(field.namespace, "real", "00000000-0000-4000-8000-000000000001")
    assert field.proxy.ask("NodePrepareResources", other)[other.uid], "prepared under a wrong UID"
    assert not field.seat.cdi_files(other.uid)


@case("BB-11.4", ours("F-1"))
def test_prepare_asked_again_changes_nothing(field: room.Room) -> None:
    uid = in_use(field, "twice")
    previous = _files(field.seat, uid)
    again = wire.Claim(field.namespace, "twice", uid)
    assert field.proxy.ask("NodePrepareResources", again) == {uid: ""}
    assert _files(field.seat, uid) == previous
    assert field.phase("twice") == "Running"


def _files(here: seat.Seat, uid: str) -> dict[str, bytes]:
    return {name: (here.places.cdi / name).read_bytes() for name in here.cdi_files(uid)}


@case("BB-11.5", ours("F-5"), subject.Feature.REBUILDS_CDI)
def test_cdi_files_that_were_lost_are_made_again(here: seat.Seat, field: room.Room) -> None:
    uid = in_use(field, "first")
    assert here.cdi_files(uid)
    here.programs.stop()
    for path in here.places.cdi.iterdir():
        path.unlink()
    here.programs.start()
    until(lambda: here.cdi_files(uid), 60, "the files are back")
    here.wait_published()
    field.pod("second", "first")
    field.running("second")
    assert field.has("second") == field.has("first")
    assert [prepared.is_good() for prepared in field.prepares("first")] == [True]


@case("BB-11.6", ours("F-6"))
def test_pods_run_again_after_the_node_lost_its_power(here: seat.Seat, field: room.Room) -> None:
    names = ("one", "two")
    for name in names:
        in_use(field, name)
    previous = {name: _container(field, name)[0] for name in names}
    here.reboot()

    def back() -> bool:
        now = {name: _container(field, name) for name in names}
        ids = {name: row[0] for name, row in now.items()}
        return all(ids[name] not in {"", previous[name]} and now[name][1] for name in names)

    until(back, BOOT_S, f"the pods run again\n{here.log()}")
    here.wait_published()
    seen = [text for name in names for text in field.has(name)]
    assert len(set(seen)) == len(seen) == 2


def _container(field: room.Room, name: str) -> tuple[str, bool]:
    result = field.ground.pod(name)["status"].get("containerStatuses") or [{}]
    return str(result[0].get("containerID", "")), "running" in result[0].get("state", {})


@case("BB-11.7", ours("F-10"), subject.Feature.REFUSES_OVERLAP)
def test_a_device_that_two_claims_name_is_given_to_one(field: room.Room) -> None:
    in_use(field, "first")
    allocation = field.ground.claim("first")["status"]["allocation"]
    field.claim("second")
    field.allocate("second", allocation)
    field.pod("second", "second")
    field.refused("second", 90)
    assert field.phase("second") == "Pending"
    assert field.phase("first") == "Running"
    field.delete("first")
    field.soon("second", within_s=90)
    assert len(field.has("second")) == 1


@case("BB-11.8", ours("F-11"), subject.Feature.RECLAIMS)
def test_claims_forgotten_by_the_kubelet_are_unprepared(here: seat.Seat, field: room.Room) -> None:
    uid = in_use(field, "forgotten")
    here.stop_kubelet()
    field.force_delete("forgotten")
    field.kube.delete(gvr.RESOURCE_CLAIMS, "forgotten", field.namespace)
    (here.places.where.node(here.node).kubelet / "dra_manager_state").unlink()
    here.start_kubelet()
    until(lambda: not here.cdi_files(uid), RECLAIMED_S, "the claim is taken back")
    assert not field.unprepares(uid)


@case("BB-11.9", ours("F-17"), subject.Feature.CHECKPOINT)
def test_records_that_were_damaged_stop_nothing(here: seat.Seat, field: room.Room) -> None:
    in_use(field, "kept")
    assert here.subject.checkpoint is not None
    here.programs.kill()
    damaged = [
        path for path in here.places.state.glob(here.subject.checkpoint.files) if path.is_file()
    ]
    assert damaged
    for item in damaged:
        item.write_bytes(GARBAGE)
    previous = here.registrations()
    here.programs.start()
    here.registered_after(previous)
    assert field.phase("kept") == "Running"
    field.delete("kept")
    field.unprepared("kept")
    everything = field.a_request(count=here.subject.device.count)
    field.claim("all", everything)
    field.pod("all", "all")
    field.soon("all", within_s=120)
    assert len(field.has("all")) == here.subject.device.count


@case("BB-11.10", ours("F-22"), subject.Feature.ONE_INSTANCE)
def test_a_second_process_on_the_same_sockets_ends(here: seat.Seat, field: room.Room) -> None:
    code, message = here.programs.try_once(30)
    assert code not in {None, 0}, f"it went on: {code}\n{message}"
    assert message.strip(), "it said nothing"
    in_use(field, "unharmed")


@case("BB-11.11", ours("F-2"))
def test_a_plugin_killed_while_it_prepares_is_asked_again(
    here: seat.Seat, field: room.Room
) -> None:
    names = [f"k{number}" for number in range(4)]
    for name in names:
        field.claim(name)
        field.pod(name, name)
    until(lambda: any(map(field.prepares, names)), 30, "prepare is asked for")
    _soon_after(here.programs.kill)
    here.programs.start()
    here.wait_published()
    field.soon(*names, within_s=90)
    seen = [text for name in names for text in field.has(name)]
    assert len(set(seen)) == len(seen) == len(names)


def _soon_after(act: Callable[[], None]) -> None:
    time.sleep(0.05)
    act()
