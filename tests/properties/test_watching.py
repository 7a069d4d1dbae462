"""Whatever a watch loses, repeats, breaks off or garbles, a cache ends as the API server's list."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog import testing

from driver import errors, ids
from driver.kube import client, reflector, store
from driver.kube.http import watch_stream
from tests.fakes import clock
from tests.fakes.watch_streams import Stream

NAMES = st.sampled_from("abc")
CHANGES = st.tuples(st.sampled_from(("put", "delete")), NAMES)
TOLD = st.sampled_from(("event", "event", "event", "twice", "bookmark"))
LOST = st.sampled_from(("event", "event", "lost", "lost with a bookmark"))
BROKEN = st.sampled_from(("end", "cut", "gone", "refused", "garbage", "unreadable"))
Step = tuple[str, Any]


@dataclass
class Server:
    """Objects and all events; versions are counted as etcd does."""

    version: int = 1
    there: dict[str, int] = field(default_factory=dict)
    past: list[watch_stream.WatchEvent] = field(default_factory=list)

    def change(self, kind: str, name: str) -> None:
        if kind == "delete" and name not in self.there:
            return
        self.version += 1
        existing = name in self.there
        obj = an_object(name, self.version)
        if kind == "delete":
            del self.there[name]
            self.past.append(watch_stream.WatchEvent(watch_stream.EventType.DELETED, obj))
            return
        self.there[name] = self.version
        changed = watch_stream.EventType.MODIFIED if existing else watch_stream.EventType.ADDED
        self.past.append(watch_stream.WatchEvent(changed, obj))

    def since(self, version: int) -> list[watch_stream.WatchEvent]:
        return [watch_event for watch_event in self.past if version_of(watch_event) > version]


def an_object(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def version_of(event: watch_stream.WatchEvent) -> int:
    return int(event.object["metadata"]["resourceVersion"])


class Source:
    """Plays the steps of one watch after the other; then it ends, or has all listed anew."""

    name = "things"

    def __init__(self, watches: list[list[Step]], *, ends_by_listing: bool) -> None:
        self.server = Server()
        self.watches = watches
        self.stop = threading.Event()
        self.lists = 0
        self._last = [("gone", None)] if ends_by_listing else []

    def list(self) -> client.Walk:
        self.lists += 1
        items = [an_object(name, version) for name, version in self.server.there.items()]
        if not self.watches and not self._last:
            self.stop.set()
        return client.Walk(iter(items), str(self.server.version))

    def watch(self, version: str, timeout_s: int, read_timeout_s: float) -> "Stream":
        assert timeout_s > 0 < read_timeout_s
        if self.watches:
            return Stream(self._played(self.watches.pop(0), int(version)))
        steps, self._last = self._last, []
        return Stream(self._played(steps, int(version), last=not steps))

    def _played(
        self, steps: Sequence[Step], seen: int, *, last: bool = False
    ) -> Iterator[watch_stream.WatchEvent]:
        for kind, entry in steps:
            if kind == "change":
                self.server.change(*entry)
                continue
            waiting = self.server.since(seen)
            if kind in {"event", "twice"} and waiting:
                yield waiting[0]
                seen = version_of(waiting[0])
                if kind == "twice":
                    yield waiting[0]
            elif kind.startswith("lost"):
                seen = self.server.version
                if kind.endswith("bookmark"):
                    yield bookmark(seen)
            elif kind == "bookmark" and not waiting:
                yield bookmark(seen)
            elif kind in ENDS:
                ENDS[kind]()
                return
        yield from self.server.since(seen)
        if last:
            self.stop.set()


def bookmark(version: int) -> watch_stream.WatchEvent:
    return watch_stream.WatchEvent(watch_stream.EventType.BOOKMARK, an_object("", version))


def raising(error: errors.ApiError) -> Callable[[], None]:
    def end() -> None:
        raise error

    return end


ENDS: dict[str, Callable[[], None]] = {
    "end": lambda: None,
    "cut": raising(errors.Unreachable(0, "Unreachable", "reset")),
    "garbage": raising(errors.Unreachable(0, "Unreachable", "WATCH: no JSON")),
    "unreadable": raising(errors.Unreachable(0, "Unreachable", "WATCH: no version")),
    "gone": raising(errors.Gone(410, "Expired", "too old")),
    "refused": raising(errors.TooManyRequests(429, "TooManyRequests", "busy")),
}


def steps(*kinds: st.SearchStrategy[str]) -> st.SearchStrategy[list[list[Step]]]:
    change = st.tuples(st.just("change"), CHANGES)
    search_strategy = st.tuples(st.one_of(*kinds), st.none())
    broken = st.tuples(BROKEN, st.none())
    strategy = st.tuples(st.lists(st.one_of(change, change, search_strategy), max_size=8), broken)
    return st.lists(strategy.map(lambda drawn: [*drawn[0], drawn[1]]), min_size=1, max_size=6)


def followed(source: Source) -> dict[str, int]:
    """Return what the cache holds at the end, by name, as versions."""
    time = clock.FakeClock()
    target: store.Store[int] = store.Store()
    handed: dict[ids.Key, int] = {}

    def hear(key: ids.Key, old: int | None, new: int | None) -> None:
        assert handed.get(key) == old
        handed.pop(key, None)
        if new is not None:
            handed[key] = new

    target.subscribe(hear)

    def parse(obj: dict[str, Any]) -> int:
        return int(obj["metadata"]["resourceVersion"])

    with testing.capture_logs():
        reflector.Reflector(source, target, parse, time).run(source.stop)
    assert dict(target.snapshot()) == handed
    return {str(key): version for key, version in target.snapshot().items()}


@given(steps(TOLD))
@settings(max_examples=200)
def test_without_lost_events_the_cache_needs_no_final_list(
    watches: list[list[Step]],
) -> None:
    source = Source(watches, ends_by_listing=False)
    assert followed(source) == source.server.there


@given(steps(TOLD, LOST))
@settings(max_examples=200)
def test_whatever_was_lost_one_list_makes_it_good(watches: list[list[Step]]) -> None:
    source = Source(watches, ends_by_listing=True)
    assert followed(source) == source.server.there
