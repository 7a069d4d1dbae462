import datetime as dt
from typing import Any

import pytest

from driver import ids
from driver.controller.informers import stores
from driver.controller.web import ports, recent_events
from driver.controller.web import source as web_source
from driver.kube.events import recorder as event_recorder
from driver.scheduling.reports import catalog
from tests.fakes import clock as clocks

POD = event_recorder.ObjectRef("v1", "Pod", "default", "pod", "1")


class Recorder:
    def __init__(self) -> None:
        self.told: list[str] = []

    def event(
        self, regarding: event_recorder.ObjectRef, reason: str, message: str, **_: Any
    ) -> None:
        self.told.append(f"{regarding.name} {reason} {message}")


def a_source(time: clocks.FakeClock, stale: list[str]) -> web_source.ReportSource:
    minded = web_source.SourceInputs(lambda: None, lambda: stale, catalog.no_explanation, tuple)
    return web_source.ReportSource(stores.empty(), "gpu.ration.dev", minded, time)


def test_it_looks_at_most_once_a_second() -> None:
    time = clocks.FakeClock()
    stale: list[str] = []
    source = a_source(time, stale)
    first = source.read()
    stale.append("no word on pods")
    time.advance(0.9)
    assert source.read() is first
    time.advance(0.2)
    assert source.read().fleet().missing == ("no word on pods",)


def test_looks_that_take_long_are_taken_seldom() -> None:
    time = clocks.FakeClock()

    def slow() -> list[str]:
        time.advance(0.5)
        return []

    minded = web_source.SourceInputs(lambda: None, slow, catalog.no_explanation, tuple)
    source = web_source.ReportSource(stores.empty(), "gpu.ration.dev", minded, time)
    first = source.read()
    time.advance(4.4)
    assert source.read() is first
    time.advance(0.2)
    assert source.read() is not first


def test_a_follower_names_the_leader() -> None:
    with pytest.raises(ports.NotLeader) as caught:
        web_source.require_leader(lambda: False, lambda: "ration-controller-1")
    assert caught.value.leader == "ration-controller-1"
    assert str(caught.value) == ("this replica stands by; ration-controller-1 leads: ask that one")
    with pytest.raises(ports.NotLeader, match="nobody leads yet"):
        web_source.require_leader(lambda: False, lambda: "")
    web_source.require_leader(lambda: True, lambda: "x")


def test_caches_that_are_not_listed_yet_are_named() -> None:
    with pytest.raises(ports.NotLeader, match="still listing nodes, pods"):
        web_source.require_synced(["nodes", "pods"])
    web_source.require_synced([])


def test_recent_events_are_kept_newest_first_and_forwarded() -> None:
    recorder, time = Recorder(), clocks.FakeClock()
    events = recent_events.RecentEvents(recorder, time)
    events.event(POD, "NoFit", "no node", warning=True)
    time.advance(5)
    events.event(POD, "NoFit", "no node", warning=True)
    events.event(POD, "Allocated", "on gpu-1", warning=False)
    last, first = events.newest()
    assert (last.reason, last.warning, last.count) == ("Allocated", False, 1)
    assert (first.reason, first.warning, first.count) == ("NoFit", True, 2)
    assert dt.datetime.fromisoformat(first.at) == time.now().replace(microsecond=0)
    assert len(recorder.told) == 3


def test_only_the_last_thousand_are_kept() -> None:
    events = recent_events.RecentEvents(Recorder(), clocks.FakeClock())
    for number in range(recent_events.CAPACITY + 5):
        events.event(POD, "NoFit", str(number), warning=True)
    assert len(events.newest()) == recent_events.CAPACITY
    assert events.newest()[0].message == str(recent_events.CAPACITY + 4)


def test_a_pod_that_is_not_known_has_no_explanation() -> None:
    assert a_source(clocks.FakeClock(), []).read().explain(ids.Key("a/b")) is None
