import threading
from collections.abc import Iterator

import pytest

from driver import clock
from driver.kube import client, gvr
from driver.kube.events import recorder as event_recorder
from tests.fakes import waiting
from tests.fakes.apiserver import faults, server

POD = event_recorder.ObjectRef("Pod", "v1", "ns", "trainer", "uid-1")


class Recording:
    """A recorder on its thread."""

    def __init__(self, kube: client.KubeClient) -> None:
        time = clock.SystemClock()
        self.recorder = event_recorder.EventRecorder(
            kube, "ration-controller", "controller-0", time
        )
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.recorder.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def tell(self, message: str) -> None:
        self.recorder.event(POD, "NoFit", message, warning=True)

    def close(self) -> None:
        self.stop.set()
        self.recorder.interrupt()
        self.thread.join(4)
        assert not self.thread.is_alive()


@pytest.fixture
def recording(kube: client.KubeClient) -> Iterator[Recording]:
    running = Recording(kube)
    yield running
    running.close()


def written(api: server.ApiServer) -> list[gvr.Object]:
    return api.all(gvr.EVENTS)


def test_an_event_reaches_the_server_and_its_repetition_is_counted(
    api: server.ApiServer, recording: Recording
) -> None:
    for _ in range(3):
        recording.tell("no GPU is free")
    waiting.until(lambda: written(api) and written(api)[0].get("series", {}).get("count") == 3)
    assert len(written(api)) == 1
    assert written(api)[0]["note"] == "no GPU is free"
    assert recording.recorder.dropped == 0


def test_a_repetition_of_an_expired_event_is_a_new_one(
    api: server.ApiServer, recording: Recording
) -> None:
    recording.tell("no GPU is free")
    waiting.until(lambda: written(api))
    api.remove(gvr.EVENTS, written(api)[0]["metadata"]["name"], "ns")
    recording.tell("no GPU is free")
    waiting.until(lambda: written(api))


def test_a_busy_server_gets_the_event_later(api: server.ApiServer, recording: Recording) -> None:
    api.faults.add(faults.Answer(429), times=1)
    recording.tell("no GPU is free")
    waiting.until(lambda: written(api))


def test_a_refused_event_is_dropped_and_counted(
    api: server.ApiServer, recording: Recording
) -> None:
    api.faults.add(faults.Answer(403, "Forbidden"), times=1)
    recording.tell("one")
    recording.tell("two")
    waiting.until(lambda: [e["note"] for e in written(api)] == ["two"])
    assert recording.recorder.dropped == 1


def test_telling_never_blocks_and_a_full_queue_drops(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    recorder = event_recorder.EventRecorder(kube, "c", "i", clock.SystemClock())
    for n in range(event_recorder.QUEUE + 5):
        recorder.event(POD, "NoFit", f"try {n}", warning=False)
    assert recorder.dropped == 5
    assert not api.requests


def test_pending_events_are_written_at_stop(api: server.ApiServer, kube: client.KubeClient) -> None:
    recorder = event_recorder.EventRecorder(kube, "c", "i", clock.SystemClock())
    recorder.event(POD, "NoFit", "last words", warning=False)
    stop = threading.Event()
    stop.set()
    recorder.run(stop)
    assert [e["note"] for e in written(api)] == ["last words"]


def test_the_stop_takes_two_seconds_although_the_server_is_silent(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.faults.add(faults.HalfOpen())
    time = clock.SystemClock()
    recorder = event_recorder.EventRecorder(kube, "c", "i", time)
    for n in range(10):
        recorder.event(POD, "NoFit", f"try {n}", warning=False)
    stop = threading.Event()
    stop.set()
    started = time.monotonic()
    recorder.run(stop)
    assert time.monotonic() - started < event_recorder.FLUSH_S + 1
    assert recorder.dropped == 10
