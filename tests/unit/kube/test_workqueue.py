import pytest

from driver.kube import workqueue
from tests.fakes import clock
from tests.fakes.clock import no_jitter


@pytest.fixture
def time() -> clock.FakeClock:
    return clock.FakeClock()


@pytest.fixture
def queue(time: clock.FakeClock) -> workqueue.WorkQueue[str]:
    return workqueue.WorkQueue(time, no_jitter)


def test_keys_come_out_in_the_order_they_came_in(queue: workqueue.WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["a", "b", None]


def test_a_key_that_waits_is_not_added_twice(queue: workqueue.WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a")
    assert len(queue) == 1
    assert [queue.get(0), queue.get(0)] == ["a", None]


def test_a_key_added_while_it_is_looked_at_comes_again_once_after_done(
    queue: workqueue.WorkQueue[str],
) -> None:
    queue.add("a")
    queue.get(0)
    queue.add("a")
    queue.add("a")
    assert queue.get(0) is None
    queue.done("a")
    assert queue.get(0) == "a"
    queue.done("a")
    assert queue.get(0) is None


def test_a_key_for_later_comes_when_it_is_due(
    queue: workqueue.WorkQueue[str], time: clock.FakeClock
) -> None:
    queue.add_after("a", 5)
    assert queue.get(4.5) is None
    assert len(queue) == 0
    assert queue.get(10) == "a"
    assert time.elapsed_s == pytest.approx(5, abs=0.01)


def test_the_earlier_of_two_times_for_a_key_counts(queue: workqueue.WorkQueue[str]) -> None:
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 9)
    assert queue.get(2.1) == "a"
    queue.done("a")
    assert queue.get(60) is None


def test_a_key_due_while_it_is_looked_at_comes_again_after_done(
    queue: workqueue.WorkQueue[str], time: clock.FakeClock
) -> None:
    queue.add("a")
    queue.get(0)
    queue.add_after("a", 1)
    time.advance(2)
    assert queue.get(0) is None
    queue.done("a")
    assert queue.get(0) == "a"


def test_retries_of_a_key_come_ever_later_until_it_goes_well(
    queue: workqueue.WorkQueue[str],
) -> None:
    assert [queue.retry("a") for _ in range(4)] == [0.05, 0.1, 0.2, 0.4]
    assert queue.retry("b") == 0.05
    assert [queue.retry("a") for _ in range(10)][-1] == 60
    queue.forget("a")
    assert queue.retry("a") == 0.05


def test_a_retry_waits_at_least_as_long_as_the_server_asked(
    queue: workqueue.WorkQueue[str],
) -> None:
    assert queue.retry("a", at_least_s=3) == 3
    assert queue.get(2.9) is None
    assert queue.get(1) == "a"


def test_a_queue_that_is_shut_down_gives_nothing_out(queue: workqueue.WorkQueue[str]) -> None:
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    queue.add_after("c", 0)
    assert queue.get() is None


def test_nothing_waits_in_a_queue_that_is_shut_down(queue: workqueue.WorkQueue[str]) -> None:
    queue.add("a")
    queue.add_after("b", 0)
    queue.shut_down()
    assert len(queue) == 0
