"""Every fault that a watch must survive (F-14), over real HTTP."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from driver import clock, errors, ids
from driver.kube import backoff, client, gvr, reflector, store
from tests.fakes import waiting
from tests.fakes.apiserver import faults, server

CLAIMS = gvr.RESOURCE_CLAIMS
QUICK = reflector.Options(
    watch_s=60, silence_s=0.5, settled_s=0.3, pace=backoff.Pace(base_s=0.05, max_s=0.2)
)


def parse(raw: dict[str, Any]) -> str:
    if "bad" in raw:
        raise errors.BadInput("bad", "is there", "nothing")
    return str(raw["metadata"].get("labels", {}).get("value", ""))


class Following:
    """A reflector on its thread."""

    def __init__(self, kube: client.KubeClient, options: reflector.Options = QUICK) -> None:
        self.store: store.Store[str] = store.Store()
        source = reflector.ListWatch(kube, CLAIMS)
        time = clock.SystemClock()
        self.reflector = reflector.Reflector(source, self.store, parse, time, options)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.reflector.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def holds(self, **values: str) -> bool:
        return self.store.snapshot() == {f"ns/{name}": value for name, value in values.items()}

    def close(self) -> None:
        self.stop.set()
        self.reflector.interrupt()
        self.thread.join(2)
        assert not self.thread.is_alive()


@pytest.fixture
def following(api: server.ApiServer, kube: client.KubeClient) -> Iterator[Following]:
    put(api, "a", "1")
    running = Following(kube)
    waiting.until(lambda: api.watches() and running.holds(a="1"))
    yield running
    running.close()


def put(api: server.ApiServer, name: str, value: str, **extra: object) -> None:
    meta = {"name": name, "namespace": "ns", "labels": {"value": value}}
    api.put(CLAIMS, {"metadata": meta, **extra})


def test_the_store_follows_watch_events(api: server.ApiServer, following: Following) -> None:
    assert following.reflector.synced.is_set()
    put(api, "a", "2")
    put(api, "b", "1")
    waiting.until(lambda: following.holds(a="2", b="1"))
    api.remove(CLAIMS, "a", "ns")
    waiting.until(lambda: following.holds(b="1"))
    assert len(api.lists()) == 1


def test_a_quiet_stream_stays_open_by_its_bookmarks(
    api: server.ApiServer, following: Following
) -> None:
    threading.Event().wait(2 * QUICK.silence_s)
    assert len(api.watches()) == 1
    assert following.reflector.age_s() < QUICK.silence_s


def test_a_watch_that_gets_410_lists_again_and_misses_no_delete(
    api: server.ApiServer, following: Following
) -> None:
    api.down()
    api.remove(CLAIMS, "a", "ns")
    put(api, "b", "1")
    api.storage.compact()
    api.up()
    waiting.until(lambda: following.holds(b="1"))
    assert len(api.lists()) == 2


def test_an_expired_event_in_the_stream_lists_again(
    api: server.ApiServer, following: Following
) -> None:
    frame = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'
    api.faults.add(faults.Frame(frame), faults.watches, times=1)
    api.drop_connections()
    waiting.until(lambda: len(api.lists()) == 2)
    put(api, "a", "2")
    waiting.until(lambda: following.holds(a="2"))


def test_a_cut_stream_goes_on_where_it_was_and_lists_nothing(
    api: server.ApiServer, following: Following
) -> None:
    put(api, "a", "2")
    waiting.until(lambda: following.holds(a="2"))
    seen = api.storage.version
    api.drop_connections()
    put(api, "a", "3")
    waiting.until(lambda: following.holds(a="3"))
    assert int(api.watches()[-1].query["resourceVersion"]) >= seen
    assert len(api.lists()) == 1


@pytest.mark.parametrize(
    "fault",
    [
        faults.Answer(429, "TooManyRequests"),
        faults.Answer(500),
        faults.Drop(),
        faults.Cut(),
        faults.End(),
        faults.Frame(b"not json"),
        faults.Frame(b'{"type": "ADDED"}'),
        faults.Frame(b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "9"}}}'),
        faults.Frame(b'{"type": "NONSENSE", "object": {}}'),
        faults.Frame(b"[]"),
    ],
    ids=str,
)
def test_a_broken_watch_is_begun_again(
    api: server.ApiServer, following: Following, fault: faults.Fault
) -> None:
    api.faults.add(fault, faults.watches, times=2)
    api.drop_connections()
    put(api, "a", "2")
    waiting.until(lambda: following.holds(a="2"))


@pytest.mark.parametrize("fault", [faults.Silence(), faults.HalfOpen()], ids=str)
def test_a_dead_stream_is_noticed(
    api: server.ApiServer, following: Following, fault: faults.Fault
) -> None:
    api.faults.add(fault, faults.watches, times=1)
    api.drop_connections()
    waiting.until(lambda: len(api.watches()) == 2)
    put(api, "a", "2")
    waiting.until(lambda: following.holds(a="2"), within_s=4 * QUICK.silence_s)
    waiting.until(lambda: len(api.watches()) == 3)  # a new list may bring the value before it


def test_retry_after_of_a_watch_is_respected(api: server.ApiServer, following: Following) -> None:
    api.faults.add(faults.Answer(429, retry_after_s=1), faults.watches, times=1)
    api.drop_connections()
    put(api, "a", "2")
    waiting.until(lambda: following.holds(a="2"))
    refused, accepted = api.watches()[-2:]
    assert accepted.at - refused.at >= 1


def test_an_outage_ends_in_the_true_state_soon_after(
    api: server.ApiServer, following: Following
) -> None:
    api.down()
    put(api, "b", "1")
    previous = following.reflector.age_s()
    threading.Event().wait(0.5)
    assert following.reflector.age_s() > previous
    assert following.holds(a="1")
    api.up()
    waiting.until(lambda: following.holds(a="1", b="1"), within_s=2)


def test_a_server_in_steady_failure_is_not_hammered(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.faults.add(faults.Answer(429))
    follower = Following(kube, reflector.Options(pace=backoff.Pace(base_s=0.2, max_s=0.2)))
    threading.Event().wait(1.0)
    follower.close()
    assert 2 <= len(api.requests) <= 6
    assert not follower.reflector.synced.is_set()


def test_an_object_that_cannot_be_read_does_not_stop_the_rest(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    put(api, "a", "1", bad=True)
    put(api, "b", "1")
    bad: list[ids.Key] = []
    options = reflector.Options(on_invalid=lambda key, _: bad.append(key))
    follower = Following(kube, options)
    waiting.until(lambda: follower.holds(b="1"))
    put(api, "b", "2", bad=True)
    put(api, "c", "1")
    waiting.until(lambda: follower.holds(c="1"))
    follower.close()
    assert bad == ["ns/a", "ns/b"]


def test_our_own_write_is_in_the_store_before_the_watch_tells(
    api: server.ApiServer, kube: client.KubeClient, following: Following
) -> None:
    api.faults.add(faults.HalfOpen(), faults.watches)
    api.drop_connections()
    answer = kube.patch(CLAIMS, "a", {"metadata": {"labels": {"value": "2"}}}, namespace="ns")
    following.store.observe(answer)
    assert following.holds(a="2")
