import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from driver import clock, names
from driver.kube import gvr
from driver.kubeletplugin.host import sockets
from driver.resources.dra import claims
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import preparation as fakes
from tests.fakes import publishing, waiting
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects

HERE = Path(__file__).parents[3]
SLICE = "node-a-gpu.ration.dev-00000"
Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def flags(api: api_server.ApiServer, root: Path, tmp_path: Path) -> list[str]:
    api.put(gvr.NODES, {"metadata": {"name": "node-a", "uid": "node-uid"}})
    return [
        f"--kubeconfig={api.kubeconfig(tmp_path)}",
        "--node-name=node-a",
        f"--kubelet-root={root}",
        f"--cdi-root={tmp_path / 'cdi'}",
        f"--state-dir={tmp_path / 'state'}",
        f"--driver-root={tmp_path / 'driver'}",
        "--rediscover-seconds=0.3",
    ]


@pytest.fixture
def start(flags: list[str], tmp_path: Path) -> Iterator[Start]:
    running: list[Process] = []

    def begin(*module: str) -> Process:
        log = (tmp_path / f"log-{len(running)}").open("w")
        with log:
            command = [sys.executable, "-m", *module, *flags]
            running.append(subprocess.Popen(command, cwd=HERE, stderr=log, text=True))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.parametrize("description", ["publisher", "library"])
def test_a_dead_thread_ends_the_process_within_five_seconds(
    start: Start,
    kubelet: fake_kubelet.Kubelet,
    root: Path,
    api: api_server.ApiServer,
    description: str,
) -> None:
    time = clock.SystemClock()
    process = start("tests.fakes.plugin_process", description)
    kubelet.register(within_s=20)
    waiting.until(lambda: api.all(gvr.RESOURCE_SLICES), within_s=20)
    began = time.monotonic()
    assert process.wait(20) == 1
    assert time.monotonic() - began < 5
    assert not list((root / "plugins_registry").iterdir())


def test_nothing_is_published_before_the_kubelet_knows_the_plugin(
    start: Start, kubelet: fake_kubelet.Kubelet, api: api_server.ApiServer
) -> None:
    """A pod that lands earlier is refused by the kubelet and waits a minute."""
    start("tests.fakes.plugin_process", "nothing")
    waiting.until(kubelet.found, within_s=20)
    kubelet.get_info()
    assert not api.all(gvr.RESOURCE_SLICES)
    kubelet.register()
    waiting.until(lambda: api.all(gvr.RESOURCE_SLICES))


def test_sigterm_ends_it_cleanly_and_leaves_the_slices(
    start: Start, kubelet: fake_kubelet.Kubelet, api: api_server.ApiServer, root: Path
) -> None:
    process = start("tests.fakes.plugin_process", "nothing")
    plugin = kubelet.register(within_s=20)
    assert not plugin.prepare(fakes.ref("one"))["uid-one"].error
    waiting.until(lambda: api.all(gvr.RESOURCE_SLICES))
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert not list((root / "plugins_registry").iterdir())
    assert not list((root / "plugins" / "gpu.ration.dev").iterdir())
    assert api.all(gvr.RESOURCE_SLICES)


def test_the_claim_itself_says_that_it_is_prepared(
    start: Start, kubelet: fake_kubelet.Kubelet, api: api_server.ApiServer
) -> None:
    claim = objects.a_claim("one", status=objects.allocated("node-a", "gpu-0"))
    claim["metadata"]["uid"] = "uid-one"
    api.put(gvr.RESOURCE_CLAIMS, claim)
    start("tests.fakes.plugin_process", "nothing")
    kubelet.register(within_s=20).prepare(fakes.ref("one"))

    def ready() -> str:
        result = api.read(gvr.RESOURCE_CLAIMS, "one", "default") or {}
        device_statuses = claims.parse(result).device_statuses
        condition = device_statuses[0].condition("Ready") if device_statuses else None
        return condition.status if condition else ""

    waiting.until(lambda: ready() == "True")


def test_a_second_plugin_is_refused_and_the_first_goes_on(
    start: Start, kubelet: fake_kubelet.Kubelet, tmp_path: Path
) -> None:
    first = start("tests.fakes.plugin_process", "nothing")
    plugin = kubelet.register(within_s=20)
    second = start("tests.fakes.plugin_process", "nothing")
    assert second.wait(20) == 1
    assert "another instance runs with it" in (tmp_path / "log-1").read_text()
    assert not plugin.prepare(fakes.ref("one"))["uid-one"].error
    assert first.poll() is None


def test_killed_and_started_again_it_serves_at_the_same_place_and_writes_nothing(
    start: Start, kubelet: fake_kubelet.Kubelet, api: api_server.ApiServer, root: Path
) -> None:
    first = start("tests.fakes.plugin_process", "nothing")
    kubelet.register(within_s=20)
    waiting.until(lambda: api.read(gvr.RESOURCE_SLICES, SLICE))
    previous = api.read(gvr.RESOURCE_SLICES, SLICE)
    first.send_signal(signal.SIGKILL)
    first.wait()
    stale = sockets.socket_paths(root, "gpu.ration.dev").registration.stat().st_ino
    start("tests.fakes.plugin_process", "nothing")
    waiting.until(lambda: kubelet.found()[0].stat().st_ino != stale, within_s=20)
    plugin = kubelet.register()
    assert not plugin.prepare(fakes.ref("one"))["uid-one"].error
    assert api.read(gvr.RESOURCE_SLICES, SLICE) == previous


def label(api: api_server.ApiServer, allocator: str) -> None:
    labels = {names.ALLOCATOR_LABEL: allocator}
    api.put(gvr.NODES, {"metadata": {"name": "node-a", "uid": "node-uid", "labels": labels}})


@pytest.mark.parametrize("killed", [False, True])
def test_a_label_is_followed_through_a_handover_killed_in_the_middle_or_not(
    start: Start, kubelet: fake_kubelet.Kubelet, api: api_server.ApiServer, *, killed: bool
) -> None:
    process = start("tests.fakes.plugin_process", "swift")
    kubelet.register(within_s=20)
    publishing.until_given_by(api, "controller")
    label(api, "scheduler")
    publishing.until_given_by(api, None)
    if killed:
        process.send_signal(signal.SIGKILL)
        process.wait()
        stale = kubelet.found()[0].stat().st_ino
        start("tests.fakes.plugin_process", "swift")
        waiting.until(lambda: kubelet.found()[0].stat().st_ino != stale, within_s=20)
        kubelet.register()
    publishing.until_given_by(api, "scheduler")
    assert publishing.breaches(api) == []
    waiting.until(lambda: "AllocatorChanged" in {entry["reason"] for entry in api.all(gvr.EVENTS)})


def test_without_a_gpu_driver_the_real_thing_registers_and_publishes_an_empty_pool(
    start: Start, kubelet: fake_kubelet.Kubelet, api: api_server.ApiServer
) -> None:
    process = start("driver.kubeletplugin")
    plugin = kubelet.register(within_s=20)
    claim = fakes.ref("one")
    answer = plugin.prepare(claim)[claim.uid]
    assert answer.error.startswith("PrepareFailed: ")
    assert not plugin.unprepare(claim)[claim.uid].error
    waiting.until(lambda: api.all(gvr.RESOURCE_SLICES))
    assert not api.all(gvr.RESOURCE_SLICES)[0]["spec"]["devices"]
    waiting.until(lambda: api.all(gvr.EVENTS))
    assert {"DriverNotReady", "PrepareFailed"} >= {entry["reason"] for entry in api.all(gvr.EVENTS)}
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_a_setting_that_makes_no_sense_is_named() -> None:
    command = [sys.executable, "-m", "driver.kubeletplugin", "--allocator=me", "--cdi-root=cdi"]
    environment = {key: value for key, value in os.environ.items() if key != "NODE_NAME"}
    done = subprocess.run(
        command, cwd=HERE, env=environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 1
    assert "--allocator" in done.stderr
    assert "--cdi-root 'cdi' is no absolute path" in done.stderr
    assert "--node-name is missing" in done.stderr
