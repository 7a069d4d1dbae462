from typing import Any

import grpc
import pytest

from driver.kubeletplugin.rpc import health_stream
from driver.kubeletplugin.rpc.health_stream import DeviceHealth
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import plugin_shell, waiting
from tests.fakes import preparation as fakes

pytestmark = pytest.mark.usefixtures("shell")
UNKNOWN, HEALTHY, UNHEALTHY = 0, 1, 2


def events(message: Any) -> list[tuple[str, str, int, str]]:
    return [
        (device.device.pool_name, device.device.device_name, device.health, device.message)
        for device in message.devices
    ]


@pytest.fixture
def plugin(kubelet: fake_kubelet.Kubelet) -> fake_kubelet.Plugin:
    return kubelet.register()


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_a_watcher_hears_of_every_device_at_once_and_again_on_a_change(
    plugin: fake_kubelet.Plugin,
    devices: list[DeviceHealth],
    streams: health_stream.HealthStreams,
    version: str,
) -> None:
    devices.append(DeviceHealth("node-a", "gpu-1", None, "not polled yet"))
    stream = plugin.watch_health(version)
    first = next(stream)
    assert events(first) == [
        ("node-a", "gpu-0", HEALTHY, ""),
        ("node-a", "gpu-1", UNKNOWN, "not polled yet"),
    ]
    assert all(device.health_check_timeout_seconds == 30 for device in first.devices)
    assert all(device.last_updated_time > 1_700_000_000 for device in first.devices)
    devices[0] = DeviceHealth("node-a", "gpu-0", healthy=False, message="Xid 79")
    streams.notify()
    assert events(next(stream)) == [
        ("node-a", "gpu-0", UNHEALTHY, "Xid 79"),
        ("node-a", "gpu-1", UNKNOWN, "not polled yet"),
    ]


class TestWithoutChanges:
    @pytest.fixture
    def pace(self) -> health_stream.StreamSettings:
        return health_stream.StreamSettings(period_s=0.05)

    def test_all_is_told_again_before_it_grows_stale(self, plugin: fake_kubelet.Plugin) -> None:
        stream = plugin.watch_health()
        assert [events(next(stream)) for _ in range(3)] == [[("node-a", "gpu-0", HEALTHY, "")]] * 3


class TestWithOneWorker:
    @pytest.fixture
    def workers(self) -> int:
        return 1

    @pytest.mark.usefixtures("devices")
    def test_streams_take_no_worker_from_prepare(
        self, plugin: fake_kubelet.Plugin, streams: health_stream.HealthStreams
    ) -> None:
        open_streams = [plugin.watch_health() for _ in range(8)]
        for stream in open_streams:
            next(stream)
        assert streams.stream_count() == 8
        claim_ref = fakes.ref("one")
        assert not plugin.prepare(claim_ref)[claim_ref.uid].error


class TestWithTwoStreams:
    @pytest.fixture
    def pace(self) -> health_stream.StreamSettings:
        return health_stream.StreamSettings(limit=2)

    def test_a_stream_over_the_limit_is_refused_until_another_ends(
        self, plugin: fake_kubelet.Plugin, streams: health_stream.HealthStreams
    ) -> None:
        first, second = plugin.watch_health(), plugin.watch_health()
        next(first)
        next(second)
        with pytest.raises(grpc.RpcError) as refused:
            next(plugin.watch_health())
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert refused.value.details() == "there are 2 streams already"
        first.cancel()
        waiting.until(lambda: streams.stream_count() == 1)
        next(plugin.watch_health())

    def test_fifty_reconnects_leave_nothing_behind(
        self, plugin: fake_kubelet.Plugin, streams: health_stream.HealthStreams
    ) -> None:
        for _ in range(50):
            stream = plugin.watch_health()
            next(stream)
            stream.cancel()
            waiting.until(lambda: streams.stream_count() == 0)


def test_streams_end_cleanly_when_the_plugin_stops(
    plugin: fake_kubelet.Plugin, shell: plugin_shell.Shell
) -> None:
    stream = plugin.watch_health()
    next(stream)
    shell.stop()
    assert list(stream) == []
    assert stream.code() is grpc.StatusCode.OK


def test_a_message_is_cut_to_what_the_kubelet_takes(
    plugin: fake_kubelet.Plugin, devices: list[DeviceHealth]
) -> None:
    devices[0] = DeviceHealth("node-a", "gpu-0", healthy=False, message="x" * 2000)
    assert len(next(plugin.watch_health()).devices[0].message) == 1024
