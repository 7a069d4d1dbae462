import dataclasses

import pytest

from driver.devices import mps
from driver.mps import control, decision

GIB = 1 << 30
DESIRED = mps.Desired(
    key="k", devices=("GPU-a",), pinned_memory=(30 * GIB,), active_thread_percentage=50
)
WANTED = decision.Wanted(DESIRED, "d1")
SHAPE = decision.Shape.of(DESIRED)
LIMITS = control.Limits("50.0", ("30G",))
BAD = decision.Unreadable("k.json is no JSON")
GOALS = [WANTED, decision.Unwanted(), BAD]


def living(answer: control.Answer | None = None, *, settled: bool = True) -> decision.Living:
    servers = frozenset(server.pid for server in answer.servers) if answer else frozenset()
    done = decision.Settled("d1", servers, since_s=0.0, tries=1)
    empty = decision.Settled()
    clients = answer.clients if answer else ()
    settled_now = done if settled and answer else empty
    return decision.Living(SHAPE, answer, clients=clients, settled=settled_now)


def answer(
    *clients: int, limits: control.Limits = LIMITS, status: str = "ACTIVE"
) -> control.Answer:
    servers = (control.Server(7, status, limits, clients),) if clients else ()
    return control.Answer(limits, servers)


def test_what_is_wanted_and_missing_is_started() -> None:
    decided = decision.decide(WANTED, decision.Missing())
    assert decided == decision.Decision(decision.Start(DESIRED), mps.State.STARTING)


def test_what_is_neither_wanted_nor_there_is_cleared_away() -> None:
    left = decision.Missing(left=(11,), failure="it died", wait_s=5)
    assert decision.decide(decision.Unwanted(), left).act == "clear"


def test_nothing_is_started_for_a_file_that_cannot_be_read() -> None:
    decided = decision.decide(BAD, decision.Missing())
    assert decided == decision.Decision("rest", mps.State.FAILED, "k.json is no JSON")


def test_a_dead_daemon_is_not_replaced_while_a_client_of_it_lives() -> None:
    decided = decision.decide(WANTED, decision.Missing((11, 12), "it died"))
    assert (decided.act, decided.state) == ("rest", mps.State.FAILED)
    assert decided.problem == "it died; it is started again when its clients end: 11, 12"


def test_a_start_that_failed_is_tried_again_after_its_wait_only() -> None:
    waiting = decision.Missing(failure="no such GPU", wait_s=0.5)
    decided = decision.decide(WANTED, waiting)
    assert decided == decision.Decision("rest", mps.State.FAILED, "no such GPU")
    again = decision.decide(WANTED, dataclasses.replace(waiting, wait_s=0.0))
    assert again.act == decision.Start(DESIRED)
    assert again.problem == "no such GPU"


def test_a_daemon_that_has_not_answered_is_starting() -> None:
    decided = decision.decide(WANTED, living())
    assert decided == decision.Decision("rest", mps.State.STARTING)


def test_limits_are_set_as_soon_as_it_answers() -> None:
    first = answer(limits=control.Limits("100.0", ("",)))
    decided = decision.decide(WANTED, living(first))
    assert decided.act == "rest"  # they were set just now
    decided = decision.decide(WANTED, living(first, settled=False))
    assert (decided.act, decided.state) == (decision.Limit(WANTED), mps.State.STARTING)


def test_it_is_ready_when_it_answers_with_what_was_set() -> None:
    decided = decision.decide(WANTED, living(answer(11)))
    assert decided == decision.Decision("rest", mps.State.READY, serves=True)


def test_limits_that_only_look_right_are_set_all_the_same() -> None:
    """4606M and 4700M are both shown as 4G."""
    seen = dataclasses.replace(living(answer()), settled=decision.Settled("other"), served=True)
    decided = decision.decide(WANTED, seen)
    assert decided == decision.Decision(decision.Limit(WANTED), mps.State.READY, serves=False)


def test_a_server_that_nobody_has_told_is_told() -> None:
    seen = dataclasses.replace(living(answer(11)), settled=decision.Settled("d1"), served=True)
    assert decision.decide(WANTED, seen).act == decision.Limit(WANTED)


def test_a_server_that_keeps_other_limits_is_told_of_and_tried_again() -> None:
    other = control.Server(7, "ACTIVE", control.Limits("40.0", ("30G",)), (11,))
    seen = dataclasses.replace(living(control.Answer(LIMITS, (other,))), served=True)
    decided = decision.decide(WANTED, seen)
    words = "active thread percentage 40.0 instead of 50 of server 7"
    assert decided == decision.Decision("rest", mps.State.READY, words, serves=False)
    later = dataclasses.replace(seen.settled, since_s=decision.AGAIN_S)
    again = decision.decide(WANTED, dataclasses.replace(seen, settled=later))
    assert again.act == decision.Limit(WANTED)


def test_a_daemon_that_never_takes_its_limits_is_failed() -> None:
    seen = living(answer(limits=control.Limits("100.0", ("",))))
    tried = dataclasses.replace(seen.settled, tries=decision.TRIES)
    decided = decision.decide(WANTED, dataclasses.replace(seen, settled=tried))
    assert decided.state is mps.State.FAILED
    assert "pinned memory none instead of 30720M on device 0" in decided.problem


def test_a_fault_in_a_server_is_told_while_the_daemon_is_ready() -> None:
    decided = decision.decide(WANTED, living(answer(11, status="FAULT")))
    assert (decided.state, decided.serves) == (mps.State.READY, True)
    assert decided.problem.startswith("MPS server 7 is FAULT")


def test_a_file_that_became_unreadable_changes_nothing() -> None:
    seen = dataclasses.replace(living(answer(11)), served=True)
    decided = decision.decide(BAD, seen)
    assert decided == decision.Decision("rest", mps.State.READY, "k.json is no JSON")


@pytest.mark.parametrize(
    "changed",
    [
        {"devices": ("GPU-b",)},
        {"multi_user": True},
        {"shm_bytes": GIB},
    ],
)
def test_what_takes_a_new_daemon_waits_for_the_clients(changed: dict[str, object]) -> None:
    goal = decision.Wanted(DESIRED.model_copy(update=changed), "d2")
    with_client = dataclasses.replace(living(answer(11)), served=True)
    decided = decision.decide(goal, with_client)
    assert (decided.act, decided.state) == ("rest", mps.State.READY)
    assert decided.problem.endswith("when the clients of this one end: 11")
    without = dataclasses.replace(living(answer()), served=True)
    assert decision.decide(goal, without).act == decision.Quit()


def test_shared_memory_of_another_size_is_set_like_a_limit() -> None:
    goal = decision.Wanted(DESIRED.model_copy(update={"shm_bytes": GIB}), "d1")
    shape = decision.Shape.of(goal.desired)
    seen = dataclasses.replace(living(answer()), shape=shape, shm_bytes=GIB // 2, served=True)
    decided = decision.decide(goal, seen)
    assert decided.problem == f"shared memory {GIB // 2} bytes instead of {GIB}"
    assert decision.decide(goal, dataclasses.replace(seen, shm_bytes=GIB)).serves


@pytest.mark.parametrize("goal", [WANTED, BAD])
def test_a_daemon_that_hangs_is_ended_unless_clients_work_with_it(goal: decision.Goal) -> None:
    silent = dataclasses.replace(living(), silent_s=decision.ANSWER_S)
    decided = decision.decide(goal, silent)
    assert isinstance(decided.act, decision.Kill)
    assert decided.state is mps.State.FAILED
    busy = dataclasses.replace(silent, clients=(11,))
    decided = decision.decide(goal, busy)
    assert (decided.act, decided.state) == ("rest", mps.State.FAILED)
    assert "it is ended when its clients have" in decided.problem


def test_what_nobody_wants_is_told_to_go_with_its_clients() -> None:
    decided = decision.decide(decision.Unwanted(), living(answer(11)))
    assert decided == decision.Decision(decision.Quit(), mps.State.STOPPING)


@pytest.mark.parametrize("goal", GOALS)
def test_a_daemon_that_was_told_to_go_has_its_time_and_is_then_killed(
    goal: decision.Goal,
) -> None:
    going = dataclasses.replace(living(answer(11)), quit_s=0.0)
    assert decision.decide(goal, going) == decision.Decision("rest", mps.State.STOPPING)
    late = dataclasses.replace(going, quit_s=decision.KILL_S)
    assert decision.decide(goal, late) == decision.Decision(decision.Kill(), mps.State.STOPPING)


def test_a_server_that_its_last_client_left_is_ended_before_the_next_one_has_it() -> None:
    idle = control.Answer(LIMITS, (control.Server(7, "ACTIVE", LIMITS),))
    fresh = living(idle)
    assert decision.decide(WANTED, fresh).act == "rest"
    used = dataclasses.replace(fresh, used=frozenset({7}))
    told = decision.Decision(decision.Renew((7,)), mps.State.READY, serves=True)
    assert decision.decide(WANTED, used) == told
    leaving = dataclasses.replace(used, leaving=frozenset({7}))
    assert decision.decide(WANTED, leaving).act == "rest"
    busy = dataclasses.replace(living(answer(11)), used=frozenset({7}))
    assert decision.decide(WANTED, busy).act == "rest"


def test_a_client_that_came_as_its_server_was_told_to_end_is_named() -> None:
    late = dataclasses.replace(living(answer(11)), used=frozenset({7}), leaving=frozenset({7}))
    decided = decision.decide(WANTED, late)
    assert (decided.act, decided.state) == ("rest", mps.State.READY)
    assert decided.problem.endswith("new ones wait until these end: 11")


def test_limits_are_not_set_for_a_server_that_ends() -> None:
    other = answer(limits=LIMITS)
    ending = control.Server(7, "", control.Limits("1.0", ("",)))
    seen = dataclasses.replace(
        living(dataclasses.replace(other, servers=(ending,))), leaving=frozenset({7})
    )
    assert decision.decide(WANTED, seen).act == "rest"
