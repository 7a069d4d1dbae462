"""One suite for a whole plugin process on a simulated machine and on hardware (`gpu`)."""

import functools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from driver import clock, errors
from driver.kube import gvr
from driver.runtime.files import driver_search
from hack.hardware import clients, machine
from simulator import codes, control, layout, store
from tests.contract import worlds
from tests.contract.plugin.running import NODE, Host, Running, Start
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import packaged, waiting
from tests.fakes.apiserver import server as api_server

HERE = Path(__file__).parents[3]
MACHINE = "hgx-h200"
START_S = 30.0


@pytest.fixture(params=["simulated", pytest.param("hardware", marks=pytest.mark.gpu)])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    if request.param == "hardware":
        yield hardware(tmp_path)
        return
    base = tmp_path / "world"
    with worlds.running(base, MACHINE):
        created = layout.Layout(base)
        uuid = store.load(base).gpus[0].uuid
        whole = str(codes.WHOLE_GPU)
        fault = functools.partial(control.send, base, "xid", uuid, "31", whole, whole)
        yield Host(created.driver_root, created.host_root, fault)


def hardware(out: Path) -> Host:
    """This machine, unless it has no GPU of NVIDIA's."""
    target = machine.Machine(out)
    if not target.version:
        pytest.skip(f"no real NVIDIA GPU here: {target.search.describe()}")
    try:
        with target.nvml().session.use():
            pynvml.nvmlDeviceGetCount()
    except errors.DeviceFault as e:
        pytest.skip(f"no real NVIDIA GPU here: {e}")
    return Host(driver_search.AUTO, Path("/"), functools.partial(clients.ask, target, "fault"))


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        yield running


@pytest.fixture
def start(host: Host, api: api_server.ApiServer, tmp_path: Path) -> Iterator[Start]:
    """Start the plugin's process with flags, and wait until it has published devices."""
    api.put(gvr.NODES, {"metadata": {"name": NODE, "uid": "node-uid"}})
    root = Path(tempfile.mkdtemp(prefix="k"))
    processes: list[subprocess.Popen[bytes]] = []

    def begin(*flags: str) -> Running:
        command = [
            *(sys.executable, "-m", "driver.kubeletplugin", f"--node-name={NODE}"),
            *(f"--kubeconfig={api.kubeconfig(tmp_path)}", f"--kubelet-root={root}"),
            *(f"--cdi-root={tmp_path / 'cdi'}", f"--state-dir={tmp_path / 'state'}"),
            *(f"--mps-dir={tmp_path / 'mps'}", f"--driver-root={host.driver_root}"),
            f"--host-root={host.root}",
            *flags,
        ]
        time = clock.SystemClock()
        started_at = time.monotonic()
        with (tmp_path / "log").open("wb") as log:
            processes.append(
                subprocess.Popen(command, cwd=HERE, stderr=log, env=packaged.environment())
            )
        plugin = kubelet.register(within_s=START_S)
        waiting.until(lambda: api.all(gvr.RESOURCE_SLICES), START_S)
        published_s = time.monotonic() - started_at
        running = Running(processes[-1], plugin, api, tmp_path / "cdi", published_s)
        waiting.until(running.is_whole, START_S)
        return running

    with fake_kubelet.Kubelet(root) as kubelet:
        yield begin
    for process in processes:
        process.kill()
        process.wait()
    shutil.rmtree(root)
