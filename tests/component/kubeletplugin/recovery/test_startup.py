import threading

import pytest

from driver import clock, errors
from driver.kube import backoff
from driver.kubeletplugin.recovery import startup
from driver.runtime import lifecycle
from tests.fakes import waiting

FAST = backoff.Pace(base_s=0.01, max_s=0.01)


class Node:
    """Node with the leftovers, or the error, of each round of recovery."""

    def __init__(self, *rounds: tuple[str, ...] | errors.NodeFault) -> None:
        self._rounds = list(rounds)
        self.go_on = threading.Event()
        self.count = 0

    def recover(self) -> tuple[str, ...]:
        self.count += 1
        if self.count > 1:
            self.go_on.wait(5)
        popped = self._rounds.pop(0)
        if isinstance(popped, errors.NodeFault):
            raise popped
        return popped


def running(node: Node) -> tuple[startup.StartupRecovery, threading.Event, threading.Thread]:
    pause = backoff.Backoff(FAST, lambda: 0.0)
    startup_recovery, stop = (
        startup.StartupRecovery(node.recover, pause, clock.SystemClock()),
        threading.Event(),
    )
    thread = threading.Thread(target=startup_recovery.run, args=(stop,))
    thread.start()
    return startup_recovery, stop, thread


def test_claims_that_cannot_be_mended_yet_do_not_keep_the_kubelet_waiting() -> None:
    node = Node(("uid-a: no driver",), ())
    startup_recovery, stop, thread = running(node)
    assert startup_recovery.ran_once.wait(5)
    waiting.until(lambda: node.count == 2)
    assert startup_recovery.problem() == "not recovered: uid-a: no driver"
    node.go_on.set()
    waiting.until(lambda: startup_recovery.problem() is None)
    stop.set()
    thread.join(5)
    assert node.count == 2


def test_a_round_that_failed_lets_nobody_in() -> None:
    node = Node(errors.NodeFault("read", "records", "input/output error"), ())
    startup_recovery, stop, thread = running(node)
    waiting.until(lambda: node.count == 2)
    assert not startup_recovery.ran_once.is_set()
    assert startup_recovery.problem() == "recovery failed: read records: input/output error"
    node.go_on.set()
    assert startup_recovery.ran_once.wait(5)
    stop.set()
    thread.join(5)


def test_a_plugin_that_never_started_serving_ends_on_a_signal() -> None:
    stop = threading.Event()

    def never(_: threading.Event) -> None:
        raise AssertionError

    stop.set()
    lifecycle.start_after(threading.Event(), never, clock.SystemClock())(stop)


def test_a_dead_thread_of_a_library_is_raised_by_name() -> None:
    orphans = startup.LibraryThreadGuard(clock.SystemClock())
    fault = ValueError("out of luck")
    died = (ValueError, fault, None, threading.Thread(name="lost"))
    orphans.hook(threading.ExceptHookArgs(died))
    with pytest.raises(errors.NodeFault, match="thread lost"):
        orphans.run(threading.Event())
