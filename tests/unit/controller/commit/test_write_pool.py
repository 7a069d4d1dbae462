"""A write ends its item's failures, or brings the item back."""

from collections.abc import Callable

import pytest

from driver import errors, ids
from driver.controller.commit import write_pool
from driver.kube import workqueue
from tests.fakes import clock, deciding

ITEM = write_pool.WorkItem("claim", ids.Key("default/claim"))


class Pool:
    """A pool that writes at once, and its queue."""

    def __init__(self) -> None:
        self.clock = clock.FakeClock()
        self.items = workqueue.WorkQueue[write_pool.WorkItem](
            self.clock, lambda: 0.0, write_pool.RETRIES
        )
        self.pool = write_pool.WritePool(deciding.Inline(), deciding.Inline(), self.items)

    def retries_after(self, seconds: float) -> bool:
        self.clock.advance(seconds)
        return self.items.get(0.0) == ITEM


def raising(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_a_write_that_succeeds_resets_the_back_off() -> None:
    tried = Pool()
    tried.items.retry(ITEM)
    tried.items.retry(ITEM)
    tried.pool.submit(ITEM, lambda: None)
    assert tried.items.retry(ITEM) == write_pool.RETRIES.base_s


def test_a_write_that_is_refused_brings_its_item_back() -> None:
    tried = Pool()
    tried.pool.submit(ITEM, raising(errors.Conflict(409, "Conflict", "changed")))
    assert tried.retries_after(write_pool.RETRIES.base_s)


def test_a_server_that_says_when_to_come_back_is_obeyed() -> None:
    tried = Pool()
    busy = errors.TooManyRequests(429, "TooManyRequests", "busy", retry_after_s=7.0)
    tried.pool.submit(ITEM, raising(busy))
    assert not tried.retries_after(6.0)
    assert tried.retries_after(1.5)


def test_an_object_that_is_gone_is_not_written_again() -> None:
    tried = Pool()
    tried.pool.submit(ITEM, raising(errors.NotFound(404, "NotFound", "claim")))
    assert not tried.retries_after(60.0)


@pytest.mark.parametrize("error", [ValueError("ours"), errors.Conflict(409, "Conflict", "x")])
def test_a_write_of_its_own_kind_is_not_retried_by_the_pool(error: Exception) -> None:
    tried = Pool()
    tried.pool.run(raising(error))
    assert not tried.retries_after(60.0)


def test_what_runs_meanwhile_has_ended_when_the_block_has() -> None:
    threads, side = deciding.Inline(), deciding.Inline()
    side.slow = True
    pool = write_pool.WritePool(threads, side, Pool().items)
    order: list[str] = []

    def write() -> None:
        with pool.meanwhile(lambda: order.append("meanwhile")):
            order.append("block")
            side.catch_up()
        order.append("after")

    pool.run(write)
    assert order == ["block", "meanwhile", "after"]
