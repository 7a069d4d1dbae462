import threading
from collections.abc import Callable

import pytest

from driver import errors
from driver.kubeletplugin.nvml import session as nvml_session
from tests.fakes import waiting


class Library:
    """Counts what is done to it; `broken` keeps it from starting."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.broken = False

    def start(self) -> None:
        if self.broken:
            raise errors.DeviceFault("", "nvmlInitWithFlags", 9, "Driver Not Loaded")
        self.acts.append("start")

    def end(self) -> None:
        self.acts.append("end")


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def session(library: Library) -> nvml_session.Session:
    return nvml_session.Session(library.start, library.end)


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_uses_share_one_start(session: nvml_session.Session, library: Library) -> None:
    with session.use() as first, session.use() as second:
        assert first == second == session.number == 1
    with session.use() as third:
        assert third == 1
    assert library.acts == ["start"]


def test_a_failed_start_is_told_and_tried_again_by_the_next_use(
    session: nvml_session.Session, library: Library
) -> None:
    library.broken = True
    for _ in range(2):
        with pytest.raises(errors.DeviceFault), session.use():
            pass
    assert session.number == 0
    library.broken = False
    with session.use() as number:
        assert number == 1


def test_the_library_ends_only_when_nobody_uses_it_and_starts_under_a_new_number(
    session: nvml_session.Session, library: Library
) -> None:
    later: list[int] = []

    def use() -> None:
        with session.use() as number:
            later.append(number)

    with session.use() as number:
        ending = in_thread(lambda: session.drop(number))
        waiting.until(lambda: session.number == 0)
        using = in_thread(use)
        assert library.acts == ["start"]
        assert later == []
    ending.join(5)
    using.join(5)
    assert later == [2]
    assert library.acts == ["start", "end", "start"]


def test_a_start_that_is_over_is_not_dropped_again(
    session: nvml_session.Session, library: Library
) -> None:
    with session.use() as old:
        pass
    session.drop(old)
    with session.use() as new:
        pass
    session.drop(old)
    assert session.number == new
    session.close()
    session.close()
    assert library.acts == ["start", "end", "start", "end"]


def test_while_it_is_paused_the_library_is_ended_and_who_comes_waits(
    session: nvml_session.Session, library: Library
) -> None:
    later: list[int] = []

    def use() -> None:
        with session.use() as number:
            later.append(number)

    with session.use() as first:
        pass
    with session.paused(5):
        assert library.acts == ["start", "end"]
        assert session.number == 0
        using = in_thread(use)
        using.join(0.05)
        assert (later, library.acts) == ([], ["start", "end"])
    using.join(5)
    assert later == [first + 1]


def test_resources_of_an_nvml_init_are_freed_before_every_shutdown(
    session: nvml_session.Session, library: Library
) -> None:
    session.on_end(lambda number: library.acts.append(f"free of {number}"))
    with session.paused(1):
        assert library.acts == []
    with session.use():
        pass
    session.close()
    with session.use():
        pass
    with session.paused(1):
        pass
    assert library.acts == ["start", "free of 1", "end", "start", "free of 2", "end"]


def test_a_call_that_does_not_return_keeps_the_library_and_nobody_waits_for_good(
    session: nvml_session.Session, library: Library
) -> None:
    with session.use() as number:
        with pytest.raises(errors.NodeFault, match=r"in use for 0\.05 s"), session.paused(0.05):
            pass
        with session.use() as same:
            assert same == number
    assert library.acts == ["start"]
    with session.paused(1):
        assert library.acts == ["start", "end"]


# Covers L-2.
def test_a_call_that_hangs_in_a_dropped_start_keeps_nobody_out(
    session: nvml_session.Session, library: Library
) -> None:
    hangs, entered = threading.Event(), threading.Event()

    def hang() -> None:
        with session.use():
            entered.set()
            hangs.wait(20)

    hanging = in_thread(hang)
    assert entered.wait(5)
    session.drop(1)
    assert session.is_open(1)
    with session.use() as number:
        assert number == 2
    session.close()
    assert library.acts == ["start", "start", "end"]
    with session.use() as number:
        assert number == 3
    hangs.set()
    hanging.join(5)
    assert library.acts == ["start", "start", "end", "start", "end"]
    assert not session.is_open(1)


def test_a_pause_honours_its_patience_behind_a_dropped_start_too(
    session: nvml_session.Session, library: Library
) -> None:
    with session.use() as number:
        session.drop(number)
        with pytest.raises(errors.NodeFault, match=r"in use for 0\.05 s"), session.paused(0.05):
            pass
    assert library.acts == ["start", "end"]


def test_a_start_that_hangs_locks_nobody_who_only_asks_how_things_are(library: Library) -> None:
    hangs, entered = threading.Event(), threading.Event()

    def start() -> None:
        entered.set()
        hangs.wait(20)

    session = nvml_session.Session(start, library.end)

    def use() -> None:
        with session.use():
            pass

    starting = in_thread(use)
    assert entered.wait(5)
    session.drop(1)
    session.close()
    with pytest.raises(errors.NodeFault), session.paused(0.05):
        pass
    assert session.number == 0
    hangs.set()
    starting.join(5)
    assert session.number == 1
