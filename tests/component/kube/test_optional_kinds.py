import threading

import pytest

from driver import clock, errors
from driver.kube import client, gvr, optional_kinds, reflector, store
from driver.resources.dra import taint_rules
from tests.fakes import waiting
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server

RULE = {
    "metadata": {"name": "hot"},
    "spec": {"deviceSelector": {}, "taint": {"key": "example.com/hot", "effect": "NoSchedule"}},
}


def v1(request: faults.Request) -> bool:
    return "/v1/devicetaintrules" in request.path


def rules(request: faults.Request) -> bool:
    return "devicetaintrules" in request.path


@pytest.fixture
def source(kube: client.KubeClient) -> optional_kinds.OptionalListWatch:
    watched = reflector.ListWatch(kube, gvr.DEVICE_TAINT_RULES)
    return optional_kinds.OptionalListWatch(watched, ("v1", "v1beta2"))


def test_a_kind_is_read_in_the_first_version_that_is_served(
    api: api_server.ApiServer, source: optional_kinds.OptionalListWatch
) -> None:
    api.put(gvr.DEVICE_TAINT_RULES, RULE)
    assert [item["metadata"]["name"] for item in source.list().items] == ["hot"]
    api.faults.add(faults.Answer(404, "NotFound"), v1)
    assert [item["metadata"]["name"] for item in source.list().items] == ["hot"]


def test_a_kind_that_is_not_served_is_empty_and_asked_for_again(
    api: api_server.ApiServer,
    source: optional_kinds.OptionalListWatch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optional_kinds, "AGAIN_S", 0.05)
    api.faults.add(faults.Answer(404, "NotFound"), rules, times=4)
    api.put(gvr.DEVICE_TAINT_RULES, RULE)
    result: store.Store[taint_rules.TaintRule] = store.Store()
    item: reflector.Reflector[taint_rules.TaintRule] = reflector.Reflector(
        source, result, taint_rules.parse, clock.SystemClock(), reflector.Options()
    )
    stop = threading.Event()
    thread = threading.Thread(target=item.run, args=(stop,))
    thread.start()
    assert item.synced.wait(5)
    assert not result.snapshot()
    waiting.until(lambda: "hot" in result.snapshot())
    stop.set()
    item.interrupt()
    thread.join(10)
    assert not thread.is_alive()


def test_the_silence_of_an_absent_kind_can_be_broken_off() -> None:
    quiet = optional_kinds.Silence("devicetaintrules", 60)
    quiet.interrupt()
    with pytest.raises(errors.NotFound):
        next(quiet)
