import os
import signal
import threading

import pytest
import structlog

from driver import clock
from driver.runtime import lifecycle
from tests.fakes import waiting


class Exits:
    """Stands in for os._exit."""

    def __init__(self) -> None:
        self.codes: list[int] = []

    def __call__(self, code: int) -> None:
        self.codes.append(code)


@pytest.fixture
def exits() -> Exits:
    return Exits()


@pytest.fixture
def life(exits: Exits) -> lifecycle.Lifecycle:
    log = structlog.get_logger()
    return lifecycle.Lifecycle(log, clock.SystemClock(), exits, stop_s=0.6, death_s=0.6)


def until_told(stop: threading.Event) -> None:
    stop.wait()


def signal_soon(number: int) -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), number)).start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_in_reverse_order(life: lifecycle.Lifecycle, number: int) -> None:
    ended: list[str] = []

    def part(name: str) -> lifecycle.Target:
        def run(stop: threading.Event) -> None:
            stop.wait()
            ended.append(name)

        return run

    life.thread("reflector", part("reflector"))
    life.on_stop("server", lambda: ended.append("server"))
    life.thread("worker", part("worker"))
    signal_soon(number)
    assert life.run() == 0
    assert ended == ["worker", "server", "reflector"]


def test_a_signal_that_did_not_interrupt_the_main_thread_stops_everything_too(
    life: lifecycle.Lifecycle,
) -> None:
    def gets_it(stop: threading.Event) -> None:
        stop.wait(0.2)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        stop.wait()

    life.thread("worker", gets_it)
    rescue = threading.Timer(20.0, life.stop)
    rescue.start()
    assert life.run() == 0
    assert not rescue.finished.is_set()
    rescue.cancel()


def test_a_thread_that_raises_ends_the_process_with_its_cause(life: lifecycle.Lifecycle) -> None:
    def dies(_: threading.Event) -> None:
        raise ValueError("out of luck")

    life.thread("worker", until_told)
    life.thread("watcher", dies)
    with structlog.testing.capture_logs() as logs:
        assert life.run() == 1
    died = next(entry for entry in logs if entry["event"] == "thread died")
    assert died["thread"] == "watcher"
    assert died["exc_info"]


def test_a_thread_that_returns_untold_ends_the_process(life: lifecycle.Lifecycle) -> None:
    life.thread("worker", until_told)
    life.thread("brief", lambda _: None)
    assert life.run() == 1


def test_a_hanging_thread_does_not_hold_up_the_end(exits: Exits) -> None:
    never = threading.Event()
    life = lifecycle.Lifecycle(
        structlog.get_logger(), clock.SystemClock(), exits, stop_s=60, death_s=4
    )

    def dies(_: threading.Event) -> None:
        raise ValueError("out of luck")

    life.thread("deaf", lambda _: until_told(never))
    life.thread("watcher", dies)
    assert life.run() == 1
    assert not exits.codes  # after half of death_s, before the watchdog
    waiting.until(lambda: exits.codes == [1])
    never.set()


def test_a_hanging_thread_leaves_the_others_time_to_stop(life: lifecycle.Lifecycle) -> None:
    never, slow = threading.Event(), threading.Event()
    ended: list[str] = []

    def releases_late(stop: threading.Event) -> None:
        stop.wait()
        slow.wait(0.1)
        ended.append("elector")

    life.thread("elector", releases_late)
    life.thread("deaf", lambda _: until_told(never))
    life.stop()
    assert life.run() == 0
    assert ended == ["elector"]
    never.set()


def test_a_hanging_callback_is_cut_short(life: lifecycle.Lifecycle, exits: Exits) -> None:
    released = threading.Event()

    def dies(_: threading.Event) -> None:
        raise ValueError("out of luck")

    life.on_stop("stuck", lambda: until_told(released))
    life.thread("watcher", dies)

    def release() -> None:
        waiting.until(lambda: exits.codes)
        released.set()

    threading.Thread(target=release).start()
    assert life.run() == 1
    assert exits.codes == [1]


def test_a_failing_callback_does_not_keep_the_others_from_running(
    life: lifecycle.Lifecycle,
) -> None:
    ended: list[str] = []

    def broken() -> None:
        raise ValueError("out of luck")

    life.on_stop("first", lambda: ended.append("first"))
    life.on_stop("broken", broken)
    life.stop()
    assert life.run() == 0
    assert ended == ["first"]


def test_a_thread_is_woken_once_it_is_told(life: lifecycle.Lifecycle) -> None:
    woken = threading.Event()
    life.thread("sleeper", lambda _: until_told(woken), interrupt=woken.set)
    life.stop()
    assert life.run() == 0
