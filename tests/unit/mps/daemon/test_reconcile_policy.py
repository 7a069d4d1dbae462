import dataclasses

import pytest

from driver.devices import mps_files
from driver.mps.daemon import control, reconcile_policy

GIB = 1 << 30
DESIRED = mps_files.Desired(
    key="k", devices=("GPU-a",), pinned_memory=(30 * GIB,), active_thread_percentage=50
)
WANTED = reconcile_policy.DesiredDaemon(DESIRED, "d1")
SHAPE = reconcile_policy.DaemonShape.from_desired(DESIRED)
LIMITS = control.Limits("50.0", ("30G",))
BAD = reconcile_policy.UnreadableFile("k.json is no JSON")
GOALS = [WANTED, reconcile_policy.NoDaemon(), BAD]


def living(
    answer: control.DaemonStatus | None = None, *, settled: bool = True
) -> reconcile_policy.Running:
    servers = frozenset(server.pid for server in answer.servers) if answer else frozenset()
    done = reconcile_policy.AppliedLimits("d1", servers, since_s=0.0, tries=1)
    empty = reconcile_policy.AppliedLimits()
    clients = answer.clients if answer else ()
    settled_now = done if settled and answer else empty
    return reconcile_policy.Running(SHAPE, answer, clients=clients, limits=settled_now)


def answer(
    *clients: int, limits: control.Limits = LIMITS, status: str = "ACTIVE"
) -> control.DaemonStatus:
    servers = (control.Server(7, status, limits, clients),) if clients else ()
    return control.DaemonStatus(limits, servers)


def test_a_desired_missing_daemon_is_started() -> None:
    decided = reconcile_policy.decide(WANTED, reconcile_policy.Absent())
    assert decided == reconcile_policy.Decision(
        reconcile_policy.Start(DESIRED), mps_files.State.STARTING
    )


def test_leftovers_of_an_undesired_daemon_are_removed() -> None:
    left = reconcile_policy.Absent(lingering=(11,), failure="it died", wait_s=5)
    assert reconcile_policy.decide(reconcile_policy.NoDaemon(), left).act == "clear"


def test_nothing_is_started_for_a_file_that_cannot_be_read() -> None:
    decided = reconcile_policy.decide(BAD, reconcile_policy.Absent())
    assert decided == reconcile_policy.Decision("rest", mps_files.State.FAILED, "k.json is no JSON")


def test_a_dead_daemon_is_not_replaced_while_a_client_of_it_lives() -> None:
    decided = reconcile_policy.decide(WANTED, reconcile_policy.Absent((11, 12), "it died"))
    assert (decided.act, decided.state) == ("rest", mps_files.State.FAILED)
    assert decided.problem == "it died; it is started again when its clients end: 11, 12"


def test_a_start_that_failed_is_tried_again_after_its_wait_only() -> None:
    waiting = reconcile_policy.Absent(failure="no such GPU", wait_s=0.5)
    decided = reconcile_policy.decide(WANTED, waiting)
    assert decided == reconcile_policy.Decision("rest", mps_files.State.FAILED, "no such GPU")
    again = reconcile_policy.decide(WANTED, dataclasses.replace(waiting, wait_s=0.0))
    assert again.act == reconcile_policy.Start(DESIRED)
    assert again.problem == "no such GPU"


def test_a_daemon_that_has_not_answered_is_starting() -> None:
    decided = reconcile_policy.decide(WANTED, living())
    assert decided == reconcile_policy.Decision("rest", mps_files.State.STARTING)


def test_limits_are_set_as_soon_as_it_answers() -> None:
    first = answer(limits=control.Limits("100.0", ("",)))
    decided = reconcile_policy.decide(WANTED, living(first))
    assert decided.act == "rest"  # they were set just now
    decided = reconcile_policy.decide(WANTED, living(first, settled=False))
    assert (decided.act, decided.state) == (
        reconcile_policy.Limit(WANTED),
        mps_files.State.STARTING,
    )


def test_it_is_ready_when_it_answers_with_what_was_set() -> None:
    decided = reconcile_policy.decide(WANTED, living(answer(11)))
    assert decided == reconcile_policy.Decision("rest", mps_files.State.READY, serves=True)


def test_limits_that_only_look_right_are_set_all_the_same() -> None:
    """4606M and 4700M are both shown as 4G."""
    seen = dataclasses.replace(
        living(answer()), limits=reconcile_policy.AppliedLimits("other"), served=True
    )
    decided = reconcile_policy.decide(WANTED, seen)
    assert decided == reconcile_policy.Decision(
        reconcile_policy.Limit(WANTED), mps_files.State.READY, serves=False
    )


def test_a_server_that_nobody_has_told_is_told() -> None:
    seen = dataclasses.replace(
        living(answer(11)), limits=reconcile_policy.AppliedLimits("d1"), served=True
    )
    assert reconcile_policy.decide(WANTED, seen).act == reconcile_policy.Limit(WANTED)


def test_a_server_that_keeps_other_limits_is_told_of_and_tried_again() -> None:
    other = control.Server(7, "ACTIVE", control.Limits("40.0", ("30G",)), (11,))
    seen = dataclasses.replace(living(control.DaemonStatus(LIMITS, (other,))), served=True)
    decided = reconcile_policy.decide(WANTED, seen)
    words = "active thread percentage 40.0 instead of 50 of server 7"
    assert decided == reconcile_policy.Decision("rest", mps_files.State.READY, words, serves=False)
    later = dataclasses.replace(seen.limits, since_s=reconcile_policy.AGAIN_S)
    again = reconcile_policy.decide(WANTED, dataclasses.replace(seen, limits=later))
    assert again.act == reconcile_policy.Limit(WANTED)


def test_a_daemon_that_never_takes_its_limits_is_failed() -> None:
    seen = living(answer(limits=control.Limits("100.0", ("",))))
    tried = dataclasses.replace(seen.limits, tries=reconcile_policy.TRIES)
    decided = reconcile_policy.decide(WANTED, dataclasses.replace(seen, limits=tried))
    assert decided.state is mps_files.State.FAILED
    assert "pinned memory none instead of 30720M on device 0" in decided.problem


def test_a_fault_in_a_server_is_told_while_the_daemon_is_ready() -> None:
    decided = reconcile_policy.decide(WANTED, living(answer(11, status="FAULT")))
    assert (decided.state, decided.serves) == (mps_files.State.READY, True)
    assert decided.problem.startswith("MPS server 7 is FAULT")


def test_a_file_that_became_unreadable_changes_nothing() -> None:
    seen = dataclasses.replace(living(answer(11)), served=True)
    decided = reconcile_policy.decide(BAD, seen)
    assert decided == reconcile_policy.Decision("rest", mps_files.State.READY, "k.json is no JSON")


@pytest.mark.parametrize(
    "changed",
    [
        {"devices": ("GPU-b",)},
        {"multi_user": True},
        {"shm_bytes": GIB},
    ],
)
def test_a_change_that_needs_a_new_daemon_waits_for_clients(changed: dict[str, object]) -> None:
    goal = reconcile_policy.DesiredDaemon(DESIRED.model_copy(update=changed), "d2")
    with_client = dataclasses.replace(living(answer(11)), served=True)
    decided = reconcile_policy.decide(goal, with_client)
    assert (decided.act, decided.state) == ("rest", mps_files.State.READY)
    assert decided.problem.endswith("when the clients of this one end: 11")
    without = dataclasses.replace(living(answer()), served=True)
    assert reconcile_policy.decide(goal, without).act == reconcile_policy.Quit()


def test_shared_memory_of_another_size_is_set_like_a_limit() -> None:
    goal = reconcile_policy.DesiredDaemon(DESIRED.model_copy(update={"shm_bytes": GIB}), "d1")
    shape = reconcile_policy.DaemonShape.from_desired(goal.desired)
    seen = dataclasses.replace(living(answer()), shape=shape, shm_bytes=GIB // 2, served=True)
    decided = reconcile_policy.decide(goal, seen)
    assert decided.problem == f"shared memory {GIB // 2} bytes instead of {GIB}"
    assert reconcile_policy.decide(goal, dataclasses.replace(seen, shm_bytes=GIB)).serves


@pytest.mark.parametrize("goal", [WANTED, BAD])
def test_a_daemon_that_hangs_is_ended_unless_clients_work_with_it(
    goal: reconcile_policy.Goal,
) -> None:
    silent = dataclasses.replace(living(), silent_s=reconcile_policy.ANSWER_S)
    decided = reconcile_policy.decide(goal, silent)
    assert isinstance(decided.act, reconcile_policy.Kill)
    assert decided.state is mps_files.State.FAILED
    busy = dataclasses.replace(silent, clients=(11,))
    decided = reconcile_policy.decide(goal, busy)
    assert (decided.act, decided.state) == ("rest", mps_files.State.FAILED)
    assert "it is ended when its clients have" in decided.problem


def test_an_undesired_daemon_is_stopped_with_its_clients() -> None:
    decided = reconcile_policy.decide(reconcile_policy.NoDaemon(), living(answer(11)))
    assert decided == reconcile_policy.Decision(reconcile_policy.Quit(), mps_files.State.STOPPING)


@pytest.mark.parametrize("goal", GOALS)
def test_a_daemon_that_was_told_to_go_has_its_time_and_is_then_killed(
    goal: reconcile_policy.Goal,
) -> None:
    going = dataclasses.replace(living(answer(11)), quit_s=0.0)
    assert reconcile_policy.decide(goal, going) == reconcile_policy.Decision(
        "rest", mps_files.State.STOPPING
    )
    late = dataclasses.replace(going, quit_s=reconcile_policy.KILL_S)
    assert reconcile_policy.decide(goal, late) == reconcile_policy.Decision(
        reconcile_policy.Kill(), mps_files.State.STOPPING
    )


def test_an_mps_server_without_clients_is_renewed_before_its_next_client() -> None:
    idle = control.DaemonStatus(LIMITS, (control.Server(7, "ACTIVE", LIMITS),))
    fresh = living(idle)
    assert reconcile_policy.decide(WANTED, fresh).act == "rest"
    used = dataclasses.replace(fresh, used_servers=frozenset({7}))
    decision = reconcile_policy.Decision(
        reconcile_policy.Renew((7,)), mps_files.State.READY, serves=True
    )
    assert reconcile_policy.decide(WANTED, used) == decision
    leaving = dataclasses.replace(used, ending_servers=frozenset({7}))
    assert reconcile_policy.decide(WANTED, leaving).act == "rest"
    busy = dataclasses.replace(living(answer(11)), used_servers=frozenset({7}))
    assert reconcile_policy.decide(WANTED, busy).act == "rest"


def test_a_client_that_came_as_its_server_was_told_to_end_is_named() -> None:
    late = dataclasses.replace(
        living(answer(11)), used_servers=frozenset({7}), ending_servers=frozenset({7})
    )
    decided = reconcile_policy.decide(WANTED, late)
    assert (decided.act, decided.state) == ("rest", mps_files.State.READY)
    assert decided.problem.endswith("new ones may wait until these end: 11")


def test_limits_are_not_set_for_a_server_that_ends() -> None:
    other = answer(limits=LIMITS)
    ending = control.Server(7, "", control.Limits("1.0", ("",)))
    seen = dataclasses.replace(
        living(dataclasses.replace(other, servers=(ending,))), ending_servers=frozenset({7})
    )
    assert reconcile_policy.decide(WANTED, seen).act == "rest"
