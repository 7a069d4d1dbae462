from collections.abc import Callable
from concurrent import futures
from typing import Any

import pytest

from driver import ids
from driver.kubeletplugin.rpc import inflight

UID = ids.ClaimUid("uid-one")


class Later(futures.Executor):
    """Runs what it was given when told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> futures.Future[Any]:
        self.waiting.append(lambda: fn(*args))
        return futures.Future()

    def run(self) -> None:
        for function in self.waiting:
            function()
        self.waiting.clear()


@pytest.fixture
def pool() -> Later:
    return Later()


@pytest.fixture
def running(pool: Later) -> inflight.InflightJobs[str]:
    return inflight.InflightJobs[str](pool)


def says(word: str) -> inflight.Work[str]:
    return lambda cancelled: "cancelled" if cancelled() else word


def test_two_calls_share_one_job(pool: Later, running: inflight.InflightJobs[str]) -> None:
    first, second = running.join(UID, says("first")), running.join(UID, says("second"))
    assert running.count() == 1
    pool.run()
    assert first.future.result(0) == second.future.result(0) == "first"
    assert running.count() == 0


def test_a_call_after_the_end_begins_anew(pool: Later, running: inflight.InflightJobs[str]) -> None:
    running.join(UID, says("first"))
    pool.run()
    again = running.join(UID, says("again"))
    pool.run()
    assert again.future.result(0) == "again"


def test_the_last_caller_to_break_off_cancels(
    pool: Later, running: inflight.InflightJobs[str]
) -> None:
    job = running.join(UID, says("done"))
    assert running.join(UID, says("done")) is job
    running.leave(job, broken_off=True)
    assert not job.cancelled()
    running.leave(job, broken_off=True)
    pool.run()
    assert job.future.result(0) == "cancelled"


def test_a_caller_that_was_answered_cancels_nothing(
    pool: Later, running: inflight.InflightJobs[str]
) -> None:
    job = running.join(UID, says("done"))
    running.leave(job, broken_off=False)
    pool.run()
    assert job.future.result(0) == "done"


def test_abandoned_work_is_not_joined_and_its_end_leaves_the_new_job(
    pool: Later, running: inflight.InflightJobs[str]
) -> None:
    old = running.join(UID, says("old"))
    running.abandon(UID)
    new = running.join(UID, says("new"))
    assert new is not old
    pool.waiting.pop(0)()
    assert old.future.result(0) == "cancelled"
    assert running.join(UID, says("other")) is new
    pool.run()
    assert new.future.result(0) == "new"


def test_an_error_reaches_every_waiting_caller(
    pool: Later, running: inflight.InflightJobs[str]
) -> None:
    def fails(_: Callable[[], bool]) -> str:
        raise ValueError("out of luck")

    job = running.join(UID, fails)
    pool.run()
    with pytest.raises(ValueError, match="out of luck"):
        job.future.result(0)
    assert running.count() == 0


def test_everything_can_be_abandoned(pool: Later, running: inflight.InflightJobs[str]) -> None:
    jobs = [running.join(ids.ClaimUid(f"uid-{i}"), says("done")) for i in range(3)]
    running.abandon_all()
    pool.run()
    assert {job.future.result(0) for job in jobs} == {"cancelled"}
