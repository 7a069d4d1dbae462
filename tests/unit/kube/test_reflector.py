"""Pacing and resuming, with a scripted source and a clock that never really waits."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from driver import errors
from driver.kube import client, reflector, store
from driver.kube.http import watch_stream
from tests.fakes import clock
from tests.fakes.watch_streams import Stream

Watch = Callable[[], Iterator[watch_stream.WatchEvent]]


def bookmark(version: int) -> watch_stream.WatchEvent:
    obj = {"metadata": {"resourceVersion": str(version)}}
    return watch_stream.WatchEvent(watch_stream.EventType.BOOKMARK, obj)


class Source:
    """Each watch runs the next script; after the last one the reflector is told to stop."""

    name = "things"

    def __init__(self, time: clock.FakeClock, scripts: list[Watch]) -> None:
        self.time = time
        self.scripts = scripts
        self.stop = threading.Event()
        self.lists: list[float] = []
        self.versions: list[str] = []
        self.watched: list[float] = []
        self.timeouts: list[int] = []
        self.unlistable: set[int] = set()

    def list(self) -> client.Walk:
        self.lists.append(self.time.elapsed_s)
        if len(self.lists) in self.unlistable:
            raise unreachable()
        return client.Walk(iter(()), "100")

    def watch(self, version: str, timeout_s: int, read_timeout_s: float) -> Stream:
        assert timeout_s > 0
        assert read_timeout_s > 0
        self.versions.append(version)
        self.watched.append(self.time.elapsed_s)
        self.timeouts.append(timeout_s)
        script = self.scripts.pop(0)
        if not self.scripts:
            self.stop.set()
        return Stream(script())

    def run(self) -> None:
        target: store.Store[dict[str, Any]] = store.Store()
        reflector.Reflector(self, target, dict, self.time).run(self.stop)


def failing(error: errors.ApiError) -> Watch:
    def refuse() -> Iterator[watch_stream.WatchEvent]:
        raise error

    return refuse


def unreachable() -> errors.ApiError:
    return errors.Unreachable(0, "Unreachable", "refused")


def ends() -> Iterator[watch_stream.WatchEvent]:
    return iter(())


def silent() -> Iterator[watch_stream.WatchEvent]:
    yield from ()
    raise unreachable()


def lives(time: clock.FakeClock, seconds: float, version: int) -> Watch:
    def live() -> Iterator[watch_stream.WatchEvent]:
        time.advance(seconds)
        yield bookmark(version)

    return live


def quiet(time: clock.FakeClock, seconds: float) -> Watch:
    def live() -> Iterator[watch_stream.WatchEvent]:
        time.advance(seconds)
        yield from ()

    return live


def test_steady_failure_costs_at_most_one_request_each_second() -> None:
    time = clock.FakeClock()
    busy = errors.TooManyRequests(429, "TooManyRequests", "busy")
    source = Source(time, [failing(busy) for _ in range(30)])
    source.run()
    requests = sorted(source.lists[1:] + source.watched)
    assert all(later - first >= 1 for first, later in itertools.pairwise(requests))
    assert max(time.waits) == 30


def test_watches_that_end_at_once_are_paced_as_failures() -> None:
    time = clock.FakeClock()
    source = Source(time, [ends for _ in range(6)])
    source.run()
    gaps = [b - a for a, b in itertools.pairwise(source.watched)]
    assert gaps == [1, 2, 4, 8, 16]


def test_a_watch_that_lived_is_followed_at_once_by_the_next() -> None:
    time = clock.FakeClock()
    source = Source(time, [lives(time, 240, 150), lives(time, 240, 170), ends])
    source.run()
    assert source.versions == ["100", "150", "170"]
    assert source.watched == [0, 240, 480]
    assert source.timeouts == [240, 240, 240]  # longer than a stream may be silent
    assert len(source.lists) == 1


def test_a_watch_that_told_something_and_broke_leaves_the_next_wait_short() -> None:
    time = clock.FakeClock()

    def cut() -> Iterator[watch_stream.WatchEvent]:
        yield bookmark(130)
        raise unreachable()

    source = Source(time, [cut, failing(unreachable()), cut, failing(unreachable()), cut, ends])
    source.run()
    assert source.watched == [0, 1, 3, 4, 6, 7]


def test_a_watch_that_ended_soon_because_it_was_asked_to_is_no_failure() -> None:
    time = clock.FakeClock()
    broken = lives(time, 1798 - 7 * 240, 170)
    scripts = [*long_watches(time, 7)[:-1], broken, quiet(time, 2), quiet(time, 240), ends]
    source = Source(time, scripts)
    source.run()
    assert source.timeouts[7:10] == [120, 2, 240]
    assert source.watched[8:10] == [1798, 1800]


def test_retry_after_is_the_least_wait() -> None:
    time = clock.FakeClock()
    source = Source(time, [failing(errors.ServerError(503, "Down", "down", 12.0)), ends])
    source.run()
    assert source.watched == [0, 12]


def test_a_cut_connection_goes_on_from_the_last_version_seen() -> None:
    time = clock.FakeClock()

    def cut() -> Iterator[watch_stream.WatchEvent]:
        yield bookmark(130)
        raise unreachable()

    source = Source(time, [cut, ends])
    source.run()
    assert source.versions == ["100", "130"]


def test_a_version_that_is_gone_is_never_used_again() -> None:
    time = clock.FakeClock()
    source = Source(time, [failing(errors.Gone(410, "Expired", "too old")), ends])
    source.run()
    assert len(source.lists) == 2


def test_two_watches_in_a_row_without_a_word_mean_a_new_list() -> None:
    time = clock.FakeClock()
    source = Source(time, [silent, silent, ends])
    source.run()
    assert len(source.lists) == 2


def test_an_unexpected_refusal_means_a_new_list() -> None:
    time = clock.FakeClock()
    source = Source(time, [failing(errors.Forbidden(403, "Forbidden", "no")), ends])
    source.run()
    assert len(source.lists) == 2


def long_watches(time: clock.FakeClock, count: int) -> list[Watch]:
    return [*(lives(time, 240, 150 + number) for number in range(count)), ends]


def test_all_is_listed_anew_every_half_hour_between_two_watches() -> None:
    time = clock.FakeClock()
    source = Source(time, long_watches(time, 16))
    source.run()
    assert source.lists == [0, 1920, 3840]
    assert source.timeouts[:9] == [240] * 7 + [120, 240]


def test_a_listing_that_cannot_be_had_then_leaves_the_watch_as_it_is() -> None:
    time = clock.FakeClock()
    source = Source(time, long_watches(time, 9))
    source.unlistable = {2}
    source.run()
    assert source.lists == [0, 1920, 2160]
    assert source.versions[7:10] == ["156", "157", "100"]
