"""A real scrape of each process has every metric of the reference, before anything happens."""

import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import exposed
from tests.fakes import controller_process, waiting
from tests.fakes.apiserver import server as api_server

HERE = Path(__file__).parents[3]


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with controller_process.api_with_a_node() as running:
        yield running


@pytest.fixture
def short() -> Iterator[Path]:
    """A socket's path has 107 bytes at most."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def command(app: str, api: api_server.ApiServer, folder: Path) -> list[str]:
    address, kubeconfig = "--metrics-address=127.0.0.1:0", f"--kubeconfig={api.kubeconfig(folder)}"
    match app:
        case "controller":
            page = "--web-address=127.0.0.1:0"
            return ["driver.controller", "--identity=one", page, kubeconfig, address]
        case "kubeletplugin":
            places = {"kubelet-root": "kubelet", "cdi-root": "cdi", "state-dir": "state"}
            for entry in ("kubelet/plugins_registry", "cdi", "state"):
                (folder / entry).mkdir(parents=True)
            flags = [f"--{flag}={folder / name}" for flag, name in places.items()]
            node = ["--node-name=node-a", f"--driver-root={folder / 'none'}"]
            return ["tests.fakes.plugin_process", "nothing", *flags, *node, kubeconfig, address]
        case _:
            flags = [f"--state-dir={folder / 'mps'}", f"--driver-root={folder / 'none'}"]
            return ["driver.mps", *flags, address]


@pytest.mark.parametrize("app", ["controller", "kubeletplugin", "mps"])
def test_a_scrape_has_every_metric_of_the_reference(
    api: api_server.ApiServer, tmp_path: Path, short: Path, app: str
) -> None:
    log = tmp_path / "log"
    with log.open("w") as errors:
        argv = [sys.executable, "-m", *command(app, api, short)]
        process = subprocess.Popen(argv, cwd=HERE, stderr=errors, text=True)
    try:
        waiting.until(lambda: ports(log) or process.poll() is not None, within_s=30)
        assert ports(log), log.read_text()
        message = scrape(ports(log)[0])
        expected = {metric.name.removesuffix("_total") for metric in exposed.of(app)}
        assert expected - families(message) == set()
        assert [line for line in message.splitlines() if line.startswith("dra_gpu_")]
        if app == "controller":
            waiting.until(lambda: led(scrape(ports(log)[0])), within_s=30)
    finally:
        process.kill()
        process.wait()


def ports(log: Path) -> list[str]:
    return re.findall(r'"metrics_port": (\d+)', log.read_text())


def scrape(port: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def families(text: str) -> set[str]:
    return {
        name.removesuffix("_total") for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    }


def led(text: str) -> bool:
    """Return what only a leader knows: the fleet, and how old its caches are."""
    free = 'dra_gpu_fleet_gpus{mode="free",modelName=""} 2.0'
    return free in text and 'dra_gpu_controller_cache_age_seconds{cache="pods"}' in text
