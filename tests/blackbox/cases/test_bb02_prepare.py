"""BB-2: Prepare and Unprepare fail, are slow, are lost, and are asked again."""

import time

from tests.blackbox.catalogue import CLUSTER, NODE, case
from tests.blackbox.ground import room, seat
from tests.blackbox.proxy import faults
from tests.e2e import playground

until = playground.until
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
TIMEOUT_S = 45
"""Of one call of the kubelet's."""


@case("BB-2.1", f"{NODE}: must keep pod in pending state if NodePrepareResources times out")
def test_a_pod_waits_while_prepare_is_not_answered(field: room.Room) -> None:
    field.proxy.faults.plan(PREPARE, faults.Block(), claim="slow")
    field.claim("slow")
    field.pod("slow", "slow")
    until(lambda: field.prepares("slow"), 30, "prepare is asked for")
    (first, *_) = field.prepares("slow")
    until(lambda: first.code, TIMEOUT_S + 10, "the kubelet gives up")
    assert field.phase("slow") == "Pending"
    assert not first.reached
    field.proxy.faults.lift()
    field.soon("slow")
    assert len(field.has("slow")) == 1


@case("BB-2.2", f"{NODE}: must run pod if NodePrepareResources fails and then succeeds")
def test_a_pod_runs_once_prepare_works(field: room.Room) -> None:
    field.proxy.faults.plan(PREPARE, faults.Fail(), claim="failing")
    field.claim("failing")
    field.pod("failing", "failing")
    assert "on purpose" in field.refused("failing")[0]
    assert field.phase("failing") == "Pending"
    field.proxy.faults.lift()
    field.soon("failing")
    assert len(field.has("failing")) == 1


@case("BB-2.3", f"{CLUSTER}: must retry NodePrepareResources")
def test_the_kubelet_tries_again_by_itself(field: room.Room) -> None:
    """Both ways of failing, side by side, as the kubelet's pause is long."""
    field.proxy.faults.plan(PREPARE, faults.Fail(), times=1, claim="asked-again")
    field.proxy.faults.plan(PREPARE, faults.Lose(), times=1, claim="answer-lost")
    for name in ("asked-again", "answer-lost"):
        field.claim(name)
        field.pod(name, name)
    for name in ("asked-again", "answer-lost"):
        field.running(name, 150)
        assert len(field.has(name)) == 1
        assert [prepared.code == "OK" for prepared in field.prepares(name)][:2] == [False, True]


@case("BB-2.4", f"{NODE}: must run pod if NodeUnprepareResources fails and then succeeds")
def test_a_pod_goes_once_unprepare_works(field: room.Room) -> None:
    field.proxy.faults.plan(UNPREPARE, faults.Fail(), times=1, claim="refused")
    field.proxy.faults.plan(UNPREPARE, faults.Lose(), times=1, claim="lost")
    for name in ("refused", "lost"):
        field.claim(name)
        field.pod(name, name)
    for name in ("refused", "lost"):
        field.running(name)
    field.delete("refused", "lost", within_s=150)
    for name in ("refused", "lost"):
        assert [unprepared.code == "OK" for unprepared in field.unprepares(name)] == [False, True]
        assert not field.seat.cdi_files(field.uid(name))


@case("BB-2.5", f"{NODE}: must retry NodePrepareResources after Kubelet restart")
def test_prepare_is_asked_again_after_the_kubelet_restarts(
    here: seat.Seat, field: room.Room
) -> None:
    field.proxy.faults.plan(PREPARE, faults.Fail(), claim="retried")
    field.claim("retried")
    field.pod("retried", "retried")
    until(lambda: field.prepares("retried"), 30, "prepare is asked for")
    here.stop_kubelet()
    mark = here.proxy.records.mark()
    field.proxy.faults.lift()
    here.start_kubelet()
    field.running("retried", 90)
    assert here.proxy.records.since(mark, PREPARE, "retried")
    assert len(field.has("retried")) == 1


@case("BB-2.6", f"{NODE}: must retry NodeUnprepareResources after Kubelet restart")
def test_unprepare_is_asked_again_after_the_kubelet_restarts(
    here: seat.Seat, field: room.Room
) -> None:
    field.claim("leaving")
    field.pod("leaving", "leaving")
    field.running("leaving")
    field.proxy.faults.plan(UNPREPARE, faults.Fail(), claim="leaving")
    field.delete("leaving", wait=False)
    until(lambda: field.unprepares("leaving"), 60, "unprepare is asked for")
    here.stop_kubelet()
    field.proxy.faults.lift()
    here.start_kubelet()
    field.unprepared("leaving", 90)
    until(lambda: field.phase("leaving") == "", 60, "the pod is gone")


@case("BB-2.7", f"{NODE}: must call NodeUnprepareResources for deleted pod")
def test_a_pod_deleted_before_it_ran_is_unprepared(field: room.Room) -> None:
    field.proxy.faults.plan(PREPARE, faults.Lose(), claim="deleted")
    field.claim("deleted")
    field.pod("deleted", "deleted")
    until(lambda: field.prepares("deleted"), 30, "prepare is asked for")
    uid = field.uid("deleted")
    field.delete("deleted", within_s=120)
    field.unprepared("deleted")
    assert not field.seat.cdi_files(uid)


@case("BB-2.8", f"{NODE}: must call NodeUnprepareResources for deleted pod after Kubelet restart")
def test_a_pod_deleted_without_a_kubelet_is_unprepared(here: seat.Seat, field: room.Room) -> None:
    field.claim("orphan")
    field.pod("orphan", "orphan")
    field.running("orphan")
    uid = field.uid("orphan")
    here.stop_kubelet()
    field.delete("orphan", wait=False)
    here.start_kubelet()
    field.unprepared("orphan", 120)
    until(lambda: field.phase("orphan") == "", 60, "the pod is gone")
    assert not here.cdi_files(uid)


@case("BB-2.9", f"{NODE}: must not call NodePrepareResources for deleted pod after Kubelet restart")
def test_a_pod_deleted_without_a_kubelet_is_not_prepared(here: seat.Seat, field: room.Room) -> None:
    field.proxy.faults.plan(PREPARE, faults.Fail(), claim="dropped")
    field.claim("dropped")
    field.pod("dropped", "dropped")
    until(lambda: field.prepares("dropped"), 30, "prepare is asked for")
    here.stop_kubelet()
    field.delete("dropped", wait=False)
    field.proxy.faults.lift()
    mark = here.proxy.records.mark()
    here.start_kubelet()
    here.wait_published()
    until(lambda: field.phase("dropped") == "", 90, "the pod is gone")
    time.sleep(5)
    assert not here.proxy.records.since(mark, PREPARE, "dropped")


@case("BB-2.10", f"{CLUSTER}: must not run a pod if a claim is not ready")
def test_a_pod_with_one_claim_that_is_not_ready_does_not_run(field: room.Room) -> None:
    field.claim("ready")
    never = {"cel": {"expression": "false"}}
    request = field.a_request(**{**field.seat.subject.device.request, "selectors": [never]})
    field.claim("never", request)
    field.pod("half", "ready", "never")
    field.stays_pending("half", 5)
    assert not field.prepares("ready")


@case("BB-2.11", f"{CLUSTER}: must call NodePrepareResources even if not used by any container")
def test_a_claim_that_no_container_names_is_prepared(field: room.Room) -> None:
    field.claim("unused")
    field.pod("idle", "unused", containers={"main": []})
    field.running("idle")
    assert [prepared for prepared in field.prepares("unused") if prepared.is_good()]
    assert field.has("idle") == []
    field.delete("idle")
    field.unprepared("unused")


@case("BB-2.12", "F-29: ours")
def test_each_claim_of_a_call_is_answered(here: seat.Seat, field: room.Room) -> None:
    for name in ("one", "two", "three"):
        field.claim(name)
    field.pod("all", "one", "two", "three")
    field.running("all")
    assert len(field.has("all")) == 3
    (call,) = [prepared for prepared in field.prepares("one") if prepared.is_good()]
    assert set(call.refused) == {field.uid(name) for name in ("one", "two", "three")}
    ids = [item for entry in call.cdi.values() for item in entry]
    assert len(set(ids)) == len(ids) >= 3
    assert here.proxy.records.calls(PREPARE, "two")
