"""The proxy between a played kubelet and a real plugin: what passes, breaks and is counted."""

import functools
import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from driver import ids
from driver.kubeletplugin import ports
from driver.pb import health_v1_pb2 as health
from driver.pb import health_v1_pb2_grpc as health_grpc
from tests.blackbox.minimal import api, plugin, state
from tests.blackbox.proxy import bridge, faults, proxy, records, relay, wire
from tests.fakes import kubelet as kubelets
from tests.fakes import waiting

CLAIM = ports.ClaimRef(namespace="ns", name="one", uid=ids.ClaimUid("1-1"))
OTHER = ports.ClaimRef(namespace="ns", name="two", uid=ids.ClaimUid("2-2"))
DRIVER = "thing.example.com"


class Answers(api.Server):
    """Every claim has one device, by its name."""

    def __init__(self) -> None:
        self.asked = 0

    def devices_of(self, namespace: str, name: str, uid: str) -> list[api.Given]:
        del namespace, uid
        self.asked += 1
        return [api.Given("thing", "node-0", f"thing-{name}")]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short: a socket's path has little room."""
    path = Path(tempfile.mkdtemp(prefix="bb"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def served(folder: Path) -> Iterator[plugin.Plugin]:
    retained = state.State(folder / "state", folder / "cdi", DRIVER)
    retained.repair()
    created = plugin.Plugin(folder / "plugin", DRIVER, Answers(), retained)
    created.start()
    yield created
    created.stop()


@pytest.fixture
def between(folder: Path, served: plugin.Plugin) -> Iterator[proxy.Proxy]:
    assert served is not None
    with proxy.Proxy(folder / "kubelet", folder / "plugin") as created:
        yield created


@pytest.fixture
def kubelet(folder: Path, between: proxy.Proxy) -> Iterator[kubelets.Kubelet]:
    assert between is not None
    with kubelets.Kubelet(folder / "kubelet") as created:
        yield created


def test_the_kubelet_registers_and_prepares_through_the_proxy(
    kubelet: kubelets.Kubelet, between: proxy.Proxy, folder: Path
) -> None:
    plugin_value = kubelet.register()
    assert plugin_value.info.name == DRIVER
    assert plugin_value.info.endpoint.startswith(str(folder / "kubelet" / "plugins"))
    answer = plugin_value.prepare(CLAIM, OTHER)
    assert [device.device_name for device in answer["1-1"].devices] == ["thing-one"]
    assert (folder / "cdi" / f"{DRIVER}-2-2.json").exists()
    assert not plugin_value.unprepare(CLAIM)["1-1"].error
    (call,) = between.records.calls("NodePrepareResources")
    assert call.is_good()
    assert call.claims == (wire.Claim("ns", "one", "1-1"), wire.Claim("ns", "two", "2-2"))
    assert call.cdi["2-2"] == (f"{DRIVER}/thing=2-2-thing-two",)
    assert between.records.connections() == 1
    assert [call.method for call in between.records.calls()] == [
        "GetInfo",
        "NotifyRegistrationStatus",
        "NodePrepareResources",
        "NodeUnprepareResources",
    ]


def test_a_planned_failure_never_reaches_the_plugin_and_ends_with_its_calls(
    kubelet: kubelets.Kubelet, between: proxy.Proxy, folder: Path
) -> None:
    plugin_value = kubelet.register()
    between.faults.plan("NodePrepareResources", faults.Fail(), times=1)
    with pytest.raises(grpc.RpcError) as refused:
        plugin_value.prepare(CLAIM)
    assert refused.value.code() is grpc.StatusCode.INTERNAL
    assert not list((folder / "cdi").iterdir())
    assert plugin_value.prepare(CLAIM)["1-1"].devices
    codes = [(call.code, call.reached) for call in between.records.calls("NodePrepareResources")]
    assert codes == [("INTERNAL", False), ("OK", True)]


def test_a_fault_of_one_claim_leaves_others_alone(
    kubelet: kubelets.Kubelet, between: proxy.Proxy
) -> None:
    plugin_value = kubelet.register()
    between.faults.plan("NodePrepareResources", faults.Fail(), claim="one")
    assert plugin_value.prepare(OTHER)["2-2"].devices
    with pytest.raises(grpc.RpcError):
        plugin_value.prepare(CLAIM)
    between.faults.lift(claim="one")
    assert plugin_value.prepare(CLAIM)["1-1"].devices


def test_a_lost_answer_leaves_the_work_done(
    kubelet: kubelets.Kubelet, between: proxy.Proxy, folder: Path
) -> None:
    plugin_value = kubelet.register()
    between.faults.plan("NodePrepareResources", faults.Lose(), times=1)
    with pytest.raises(grpc.RpcError) as lost:
        plugin_value.prepare(CLAIM)
    assert lost.value.code() is grpc.StatusCode.UNAVAILABLE
    assert (folder / "cdi" / f"{DRIVER}-1-1.json").exists()


def test_a_blocked_call_waits_until_it_is_let_go(
    kubelet: kubelets.Kubelet, between: proxy.Proxy
) -> None:
    plugin_value = kubelet.register()
    between.faults.plan("NodePrepareResources", faults.Block())
    call = plugin_value.start_prepare(CLAIM)
    waiting.until(lambda: between.records.calls("NodePrepareResources"))
    assert not call.done()
    between.faults.lift()
    assert call.result(timeout=5).claims["1-1"].devices


def test_a_blocked_call_that_is_given_up_never_reaches_the_plugin(
    kubelet: kubelets.Kubelet, between: proxy.Proxy, folder: Path
) -> None:
    plugin_value = kubelet.register()
    between.faults.plan("NodePrepareResources", faults.Block())
    call = plugin_value.start_prepare(CLAIM)
    waiting.until(lambda: between.records.calls("NodePrepareResources"))
    call.cancel()
    (seen,) = between.records.calls("NodePrepareResources")
    waiting.until(lambda: seen.code)
    assert (seen.code, seen.reached) == ("CANCELLED", False)
    assert not list((folder / "cdi").iterdir())


def test_a_delayed_call_comes_later(kubelet: kubelets.Kubelet, between: proxy.Proxy) -> None:
    plugin_value = kubelet.register()
    between.faults.plan("NodePrepareResources", faults.Delay(0.3), times=1)
    call = plugin_value.start_prepare(CLAIM)
    assert not call.done()
    assert call.result(timeout=5).claims["1-1"].devices


def test_a_cut_connection_is_counted_when_it_comes_back(
    kubelet: kubelets.Kubelet, between: proxy.Proxy
) -> None:
    plugin_value = kubelet.register()
    plugin_value.prepare(CLAIM)
    between.faults.plan("NodePrepareResources", faults.Drop(), times=1)
    with pytest.raises(grpc.RpcError) as cut:
        plugin_value.prepare(CLAIM)
    assert cut.value.code() is grpc.StatusCode.UNAVAILABLE
    waiting.until(lambda: _prepares(plugin_value))
    assert between.records.connections() == 2


def test_a_hidden_service_refuses_until_it_is_shown(
    kubelet: kubelets.Kubelet, between: proxy.Proxy
) -> None:
    plugin_value = kubelet.register()
    between.hide(service=True)
    waiting.until(lambda: not _prepares(plugin_value))
    between.hide()
    waiting.until(lambda: _prepares(plugin_value))


def test_a_hidden_registration_is_gone_from_the_registry(
    kubelet: kubelets.Kubelet, between: proxy.Proxy
) -> None:
    kubelet.register()
    between.hide(registration=True)
    assert kubelet.found() == []
    between.hide()
    waiting.until(kubelet.found)


def test_a_hidden_version_is_not_told_to_who_registers(
    kubelet: kubelets.Kubelet, between: proxy.Proxy
) -> None:
    assert list(kubelet.register().info.supported_versions) == ["v1.DRAPlugin"]
    between.hide(versions=["v1.DRAPlugin"])
    assert list(kubelet.register().info.supported_versions) == []
    assert between.info().versions == ("v1.DRAPlugin",)


def test_a_plugin_that_leaves_takes_its_sockets_along_and_one_that_comes_is_shown(
    kubelet: kubelets.Kubelet, served: plugin.Plugin
) -> None:
    kubelet.register()
    (previous,) = kubelet.found()
    served.stop()
    waiting.until(lambda: not kubelet.found())
    served.start()
    waiting.until(kubelet.found)
    assert kubelet.found() == [previous]
    assert kubelet.register().prepare(CLAIM)["1-1"].devices


def test_a_socket_that_nobody_serves_refuses_as_the_plugins_would(
    folder: Path, kubelet: kubelets.Kubelet, between: proxy.Proxy, served: plugin.Plugin
) -> None:
    kubelet.register()
    (socket,) = (folder / "plugin" / bridge.REGISTRY).iterdir()
    path = socket.with_name("kept")
    path.hardlink_to(socket)
    served.stop()
    path.rename(socket)  # as a plugin that was killed leaves it
    waiting.until(kubelet.found)
    with pytest.raises(grpc.RpcError):
        between.info()
    assert kubelet.found()


def test_a_call_of_our_own_passes_faults_by(
    kubelet: kubelets.Kubelet, between: proxy.Proxy
) -> None:
    kubelet.register()
    between.faults.plan("NodePrepareResources", faults.Fail())
    assert between.ask("NodePrepareResources", wire.Claim("ns", "one", "1-1")) == {"1-1": ""}
    assert between.records.calls("NodePrepareResources") == []


class Stream(health_grpc.DRAResourceHealthServicer):
    """Tells of a device, and then of another once it may."""

    def __init__(self) -> None:
        self.more = threading.Event()

    def NodeWatchResources(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        del request, context
        yield health.NodeWatchResourcesResponse(devices=[health.DeviceHealth(message="first")])
        self.more.wait(5)
        yield health.NodeWatchResourcesResponse(devices=[health.DeviceHealth(message="second")])


def test_a_stream_without_a_deadline_passes_as_it_comes(folder: Path) -> None:
    stream = Stream()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    functools.partial(health_grpc.add_DRAResourceHealthServicer_to_server, stream)(server)
    server.add_insecure_port(f"unix:{folder / 'far'}")
    server.start()
    retained = records.Records()
    between = relay.Relay(
        folder / "near", folder / "far", relay.Tools("x", faults.Faults(), retained)
    )
    with grpc.insecure_channel(f"unix:{folder / 'near'}") as channel:
        stub = functools.partial(health_grpc.DRAResourceHealthStub, channel)()
        answers = stub.NodeWatchResources(health.NodeWatchResourcesRequest())
        assert next(answers).devices[0].message == "first"
        stream.more.set()
        assert [answer.devices[0].message for answer in answers] == ["second"]
    between.close()
    server.stop(grace=None)
    (call,) = retained.calls("NodeWatchResources")
    waiting.until(lambda: call.code)
    assert (call.code, call.answers) == ("OK", 2)


def _prepares(result: kubelets.Plugin) -> bool:
    try:
        return bool(result.prepare(CLAIM)["1-1"].devices)
    except grpc.RpcError:
        return False


def test_a_plugin_is_asked_where_it_serves_while_its_registry_is_followed(
    between: proxy.Proxy,
) -> None:
    """A relay has its bridge's lock then, and the look at the registry wants that next."""
    with futures.ThreadPoolExecutor(1) as pool, between._lock:
        path = pool.submit(between._inside).result(5)
    assert path.parent.is_dir()
