"""The client and the reflector behind a proxy that breaks things: every fault, over real HTTP."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import clock, errors
from driver.kube import backoff, client, gvr, reflector, store
from tests.fakes import waiting
from tests.fakes.apiserver import faults, server
from tests.fakes.faultproxy import plan, proxy

CLAIMS = gvr.RESOURCE_CLAIMS
TIME = clock.SystemClock()
QUICK = reflector.Options(
    watch_s=60, silence_s=0.5, settled_s=0.3, relist_s=1.5, pace=backoff.Pace(0.05, 0.2)
)
Connect = Callable[[plan.Chooser], client.KubeClient]


@pytest.fixture
def connect(api: server.ApiServer, tmp_path: Path) -> Iterator[Connect]:
    running: list[proxy.FaultProxy] = []

    def begin(chooser: plan.Chooser) -> client.KubeClient:
        running.append(proxy.FaultProxy(api.url, chooser).__enter__())
        kube = client.KubeClient.connect(running[-1].kubeconfig(tmp_path), "test")
        return kube.with_timeout(1.0)

    yield begin
    for fault_proxy in running:
        fault_proxy.__exit__()


def put(api: server.ApiServer, name: str, value: str) -> None:
    meta = {"name": name, "namespace": "ns", "labels": {"value": value}}
    api.put(CLAIMS, {"metadata": meta})


def value_of(raw: dict[str, Any]) -> str:
    return str(raw["metadata"].get("labels", {}).get("value", ""))


def value(api: server.ApiServer) -> str:
    return value_of(api.read(CLAIMS, "a", "ns") or {"metadata": {}})


def write(kube: client.KubeClient, version: str, to: str) -> gvr.Object:
    """A write that holds for one version only, as all of ours do."""
    body = {"metadata": {"labels": {"value": to}, "resourceVersion": version}}
    return kube.patch(CLAIMS, "a", body, namespace="ns")


def first_patch(fault: plan.Fault) -> plan.Script:
    return plan.Script({(plan.Kind.PATCH, 0): fault})


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (plan.Answer(409, "Conflict"), errors.Conflict),
        (plan.Answer(429, "TooManyRequests", retry_after_s=3), errors.TooManyRequests),
        (plan.Answer(500, "InternalError"), errors.ServerError),
        (plan.Answer(503, "ServiceUnavailable"), errors.ServerError),
        (plan.Answer(504, "Timeout"), errors.ServerError),
        (plan.ResetBefore(), errors.Unreachable),
        (plan.HalfOpen(5), errors.Unreachable),
    ],
    ids=str,
)
def test_a_write_that_did_not_reach_the_server_is_reported_and_can_be_repeated(
    api: server.ApiServer, connect: Connect, fault: plan.Fault, error: type[errors.ApiError]
) -> None:
    put(api, "a", "1")
    kube, version = connect(first_patch(fault)), str(api.storage.version)
    began = TIME.monotonic()
    with pytest.raises(error) as raised:
        write(kube, version, "2")
    assert TIME.monotonic() - began < 2
    assert raised.value.retry_after_s == (3 if error is errors.TooManyRequests else None)
    assert value(api) == "1"
    write(kube, version, "2")
    assert value(api) == "2"


def test_a_write_whose_answer_is_lost_happened_once_and_its_repetition_is_refused(
    api: server.ApiServer, connect: Connect
) -> None:
    put(api, "a", "1")
    kube, version = connect(first_patch(plan.ResetAfter())), str(api.storage.version)
    with pytest.raises(errors.Unreachable):
        write(kube, version, "2")
    assert value(api) == "2"
    after = api.storage.version
    with pytest.raises(errors.Conflict):
        write(kube, version, "2")
    assert api.storage.version == after


@pytest.mark.parametrize("fault", [plan.Slow(0.2), plan.BlackHole(0.3)], ids=str)
def test_a_late_answer_is_an_answer(
    api: server.ApiServer, connect: Connect, fault: plan.Fault
) -> None:
    put(api, "a", "1")
    write(connect(first_patch(fault)), str(api.storage.version), "2")
    assert value(api) == "2"


def test_a_rotated_token_is_read_anew(api: server.ApiServer, tmp_path: Path) -> None:
    put(api, "a", "1")
    token = tmp_path / "token"
    token.write_text("old")
    api.allow_tokens("old", "new")
    with proxy.FaultProxy(api.url, plan.Script()) as between:
        kube = client.KubeClient.connect(between.kubeconfig(tmp_path, token), "test")
        assert kube.get(CLAIMS, "a", "ns")
        between.refuse("old")
        with pytest.raises(errors.Unauthorized):
            kube.get(CLAIMS, "a", "ns")
        token.write_text("new")
        assert kube.get(CLAIMS, "a", "ns")
    assert {r.headers["Authorization"] for r in api.requests} == {"Bearer old", "Bearer new"}


def test_a_token_the_server_does_not_know_is_refused_by_the_server(
    api: server.ApiServer, tmp_path: Path
) -> None:
    """The proxy has no rights of its own."""
    token = tmp_path / "token"
    token.write_text("stranger")
    api.allow_tokens("known")
    with proxy.FaultProxy(api.url, plan.Script()) as between:
        kube = client.KubeClient.connect(between.kubeconfig(tmp_path, token), "test")
        with pytest.raises(errors.Unauthorized):
            kube.get(CLAIMS, "a", "ns")


class Following:
    """A reflector on its thread."""

    def __init__(self, kube: client.KubeClient, options: reflector.Options = QUICK) -> None:
        self.store: store.Store[str] = store.Store()
        source = reflector.ListWatch(kube, CLAIMS)
        self.reflector = reflector.Reflector(source, self.store, value_of, TIME, options)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.reflector.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def equals(self, api: server.ApiServer) -> bool:
        present = {f"ns/{entry['metadata']['name']}": value_of(entry) for entry in api.all(CLAIMS)}
        return self.store.snapshot() == present

    def close(self) -> None:
        self.stop.set()
        self.reflector.interrupt()
        self.thread.join(3)
        assert not self.thread.is_alive()


Follow = Callable[[plan.Chooser], Following]


@pytest.fixture
def follow(connect: Connect) -> Iterator[Follow]:
    running: list[Following] = []

    def begin(chooser: plan.Chooser) -> Following:
        running.append(Following(connect(chooser)))
        return running[-1]

    yield begin
    for following in running:
        following.close()


def churn(api: server.ApiServer, names: str = "abc") -> None:
    """Every object comes, changes, and the last goes."""
    for name in names:
        put(api, name, "1")
    for name in names:
        put(api, name, "2")
    api.remove(CLAIMS, names[-1], "ns")


EVERY_FRAME_FAULT: tuple[plan.FrameFault, ...] = (
    plan.Lose(),
    plan.Duplicate(),
    plan.Replay(),
    plan.Expire(),
    plan.Trickle(0.4),
    plan.Cut(),
)


@pytest.mark.parametrize("fault", EVERY_FRAME_FAULT, ids=str)
@pytest.mark.parametrize("frame", [0, 4, 5, 6], ids=["made", "changed", "last", "deleted"])
def test_a_broken_frame_costs_time_and_nothing_else(
    api: server.ApiServer, follow: Follow, fault: plan.FrameFault, frame: int
) -> None:
    following = follow(plan.Script(frames={(0, frame): fault}))
    waiting.until(api.watches)
    churn(api)
    put(api, "d", "1")
    waiting.until(lambda: following.equals(api), within_s=4)
    threading.Event().wait(0.2)
    assert following.equals(api)


@pytest.mark.parametrize(
    "fault",
    [
        plan.Answer(410, "Expired"),
        plan.Answer(429, "TooManyRequests", retry_after_s=1),
        plan.Answer(500, "InternalError"),
        plan.Answer(401, "Unauthorized"),
        plan.ResetBefore(),
        plan.ResetAfter(),
        plan.HalfOpen(3),
        plan.Slow(0.3),
        plan.BlackHole(1),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [plan.Kind.WATCH, plan.Kind.LIST])
def test_a_list_or_watch_that_fails_is_made_again(
    api: server.ApiServer, follow: Follow, kind: plan.Kind, fault: plan.Fault
) -> None:
    put(api, "a", "1")
    following = follow(plan.Script({(kind, 0): fault, (kind, 1): fault}))
    waiting.until(api.watches, within_s=8)
    churn(api)
    waiting.until(lambda: following.equals(api), within_s=8)


def test_without_bookmarks_a_quiet_watch_is_made_again(
    api: server.ApiServer, follow: Follow
) -> None:
    following = follow(plan.Script(bookmarks=False))
    waiting.until(lambda: len(api.watches()) >= 3)
    churn(api)
    waiting.until(lambda: following.equals(api))


def test_a_storm_of_all_faults_ends_in_the_true_state(
    api: server.ApiServer, connect: Connect
) -> None:
    every: tuple[plan.Fault, ...] = (
        plan.Answer(410, "Expired"),
        plan.Answer(503, "ServiceUnavailable"),
        plan.ResetBefore(),
        plan.ResetAfter(),
        plan.HalfOpen(0.5),
    )
    odds = tuple((0.1, fault) for fault in every)
    frames = tuple((0.02, fault) for fault in EVERY_FRAME_FAULT)
    chooser = plan.Seeded(11, {plan.Kind.LIST: odds, plan.Kind.WATCH: odds}, frames, 0.5)
    follower = Following(connect(chooser))
    pause = threading.Event()
    for turn in range(120):
        name = f"o{turn % 17}"
        if turn % 5 == 4 and api.read(CLAIMS, name, "ns"):
            api.remove(CLAIMS, name, "ns")
        else:
            put(api, name, str(turn))
        pause.wait(0.02)
    waiting.until(lambda: follower.equals(api), within_s=15)
    follower.close()
    assert faults.lists(api.lists()[0])
