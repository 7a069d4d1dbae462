import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import names
from driver.kube import gvr
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.publish import registered_plugins as found
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import plugin_shell, publishing, strangers, waiting
from tests.fakes import preparation as fakes
from tests.fakes.apiserver import server as api_server

HERE = Path(__file__).parents[4]
SLICES, NODES, EVENTS = gvr.RESOURCE_SLICES, gvr.NODES, gvr.EVENTS
MIG_STATE = "nvidia.com/mig.config.state"
Start = publishing.Start
Process = Callable[[], "subprocess.Popen[bytes]"]


def a_node(api: api_server.ApiServer, gpus: int = 0, mig_state: str = "") -> None:
    status = {"allocatable": {"cpu": "8", "nvidia.com/gpu": str(gpus)}}
    meta = {"name": "node-a", "uid": "node-uid", "labels": {MIG_STATE: mig_state}}
    api.put(NODES, {"metadata": meta, "status": status})


def refused(running: publishing.Running, reason: str) -> None:
    waiting.until(lambda: (running.publisher.problem() or "").startswith(f"{reason}: "))


def withheld(running: publishing.Running, reason: str) -> None:
    """Wait until nothing is offered for that reason, which does not make the plugin unready."""
    waiting.until(lambda: (running.publisher.withheld() or "").startswith(f"{reason}: "))
    waiting.until(lambda: running.publisher.problem() is None)


def faces(api: api_server.ApiServer) -> set[str]:
    return {device["name"] for device in publishing.devices(api)}


def test_beside_a_device_plugin_nothing_is_published_until_it_goes(
    api: api_server.ApiServer, start: Start, events: plugin_shell.Events
) -> None:
    a_node(api, gpus=8)
    running = start()
    withheld(running, "DevicePluginBeside")
    assert publishing.writes(api) == []
    a_node(api)
    publishing.published(running)
    assert len(publishing.devices(api)) == 24
    (event,) = events.told
    assert event[:3] == ("Node", "node-a", "DevicePluginBeside")


def test_while_the_mig_manager_works_the_devices_that_nobody_holds_are_withdrawn(
    api: api_server.ApiServer, start: Start, holding: set[str]
) -> None:
    a_node(api)
    running = start()
    publishing.published(running)
    every = faces(api)
    held = min(every)
    holding.add(held)
    a_node(api, mig_state="pending")
    waiting.until(lambda: faces(api) == {held})
    (device,) = publishing.devices(api)
    assert names.WITHDRAWN_TAINT in {taint["key"] for taint in device["taints"]}
    withheld(running, "MigConfigPending")
    a_node(api, mig_state="success")
    waiting.until(lambda: faces(api) == every)
    publishing.published(running)
    (back,) = (device for device in publishing.devices(api) if device["name"] == held)
    assert {taint["key"] for taint in back["taints"]} == {names.ALLOCATOR_TAINT}


def test_unused_gpus_are_withdrawn_when_a_device_plugin_comes(
    api: api_server.ApiServer, start: Start
) -> None:
    a_node(api)
    running = start()
    publishing.published(running)
    generation = publishing.only_slice(api)["spec"]["pool"]["generation"]
    a_node(api, gpus=8)
    waiting.until(lambda: not api.all(SLICES))
    withheld(running, "DevicePluginBeside")
    a_node(api)
    publishing.published(running)
    waiting.until(lambda: len(publishing.devices(api)) == 24)
    assert publishing.only_slice(api)["spec"]["pool"]["generation"] > generation


def test_slices_of_another_driver_of_our_name_are_left_alone_until_they_go(
    api: api_server.ApiServer, start: Start, events: plugin_shell.Events
) -> None:
    a_node(api)
    api.put(SLICES, strangers.a_slice("gpu.ration.dev", "node-a", "theirs"))
    running = start()
    refused(running, "OtherDriver")
    assert publishing.writes(api) == []
    api.remove(SLICES, "theirs")
    publishing.published(running)
    assert len(publishing.devices(api)) == 24
    assert [event[2] for event in events.told] == ["OtherDriver"]


def test_another_drivers_plugin_is_told_from_ours_of_an_older_pod(root: Path) -> None:
    own = sockets.socket_paths(root, "gpu.ration.dev", "new").registration
    with strangers.Stranger(root, "gpu.ration.dev", "old") as other:
        assert found.find_foreign_plugins(root, "gpu.ration.dev", own) == (str(other.socket),)
        ours = sockets.InstanceLock.acquire(
            sockets.socket_paths(root, "gpu.ration.dev", "old").service
        )
        assert found.find_foreign_plugins(root, "gpu.ration.dev", own) == ()
        ours.release()
        assert found.find_foreign_plugins(root, "gpu.ration.dev", other.socket) == ()
    assert found.find_foreign_plugins(root, "gpu.ration.dev", own) == ()


def test_plugins_of_other_names_and_of_other_kinds_are_no_strangers(root: Path) -> None:
    own = sockets.socket_paths(root, "gpu.ration.dev").registration
    with (
        strangers.Stranger(root, "gpu.ration.dev-2") as longer,
        strangers.Stranger(root, "gpu.ration.dev", kind="CSIPlugin"),
        strangers.Stranger(root, "csi.example.com") as csi,
    ):
        assert found.find_foreign_plugins(root, "gpu.ration.dev", own) == ()
        assert (longer.asked, csi.asked) == (1, 0)


def test_a_socket_that_nobody_serves_is_no_stranger(root: Path) -> None:
    own = sockets.socket_paths(root, "gpu.ration.dev").registration
    other = strangers.Stranger(root, "gpu.ration.dev")
    with other:
        pass
    other.socket.parent.mkdir(exist_ok=True)
    other.socket.touch()
    assert found.find_foreign_plugins(root, "gpu.ration.dev", own) == ()


@pytest.fixture
def process(api: api_server.ApiServer, root: Path, tmp_path: Path) -> Iterator[Process]:
    running: list[subprocess.Popen[bytes]] = []
    command = [
        *(sys.executable, "-m", "tests.fakes.plugin_process", "swift"),
        *(f"--kubeconfig={api.kubeconfig(tmp_path)}", "--node-name=node-a", "--instance=ours"),
        *(f"--kubelet-root={root}", f"--cdi-root={tmp_path / 'cdi'}"),
        *(f"--state-dir={tmp_path / 'state'}", "--rediscover-seconds=0.3"),
    ]

    def begin() -> "subprocess.Popen[bytes]":
        with (tmp_path / "log").open("wb") as log:
            running.append(subprocess.Popen(command, cwd=HERE, stderr=log))
        return running[-1]

    yield begin
    for item in running:
        item.kill()
        item.wait()


def test_the_plugin_does_not_register_while_another_holds_its_driver_name(
    api: api_server.ApiServer, root: Path, process: Process, kubelet: fake_kubelet.Kubelet
) -> None:
    a_node(api)

    def reasons() -> set[Any]:
        return {event["reason"] for event in api.all(EVENTS)}

    other = strangers.Stranger(root, "gpu.ration.dev")
    with other:
        running = process()
        waiting.until(lambda: "OtherDriver" in reasons(), 20)
        assert kubelet.found() == [other.socket]
        assert not api.all(SLICES)
    kubelet.register(within_s=20)
    waiting.until(lambda: api.all(SLICES))
    running.send_signal(signal.SIGTERM)
    assert running.wait(10) == 0


def test_beside_a_device_plugin_claims_are_prepared_and_unprepared_as_ever(
    api: api_server.ApiServer, process: Process, kubelet: fake_kubelet.Kubelet
) -> None:
    a_node(api, gpus=8)
    process()
    plugin = kubelet.register(within_s=20)
    waiting.until(
        lambda: "DevicePluginBeside" in {entry["reason"] for entry in api.all(EVENTS)}, 20
    )
    claim = fakes.ref("one")
    assert not plugin.prepare(claim)[claim.uid].error
    assert not plugin.unprepare(claim)[claim.uid].error
    assert not api.all(SLICES)
