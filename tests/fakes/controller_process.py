"""Controller processes beside an API server in memory."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from driver.kube import gvr
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects

HERE = Path(__file__).parents[2]
Process = subprocess.Popen[str]


@contextlib.contextmanager
def api_with_a_node() -> Iterator[api_server.ApiServer]:
    """Run an API server that knows one node of two GPUs and their class."""
    with api_server.ApiServer() as running:
        running.put(gvr.DEVICE_CLASSES, objects.a_class())
        running.put(gvr.NODES, objects.a_node("node-a"))
        running.put(gvr.RESOURCE_SLICES, objects.a_slice("node-a", 2))
        yield running


@contextlib.contextmanager
def killed_at_the_end() -> Iterator[list[Process]]:
    """Yield a list for processes; kill those that were added to it."""
    running: list[Process] = []
    yield running
    for process in running:
        process.kill()
        process.wait()


def start(running: list[Process], api: api_server.ApiServer, folder: Path, *flags: str) -> Process:
    command = [
        sys.executable,
        "-m",
        "driver.controller",
        f"--kubeconfig={api.kubeconfig(folder)}",
        f"--identity=replica-{len(running)}",
        "--web-address=127.0.0.1:0",
        *flags,
    ]
    log = (folder / f"log-{len(running)}").open("w")
    with log:
        running.append(subprocess.Popen(command, cwd=HERE, stderr=log, text=True))
    return running[-1]


def ask(api: api_server.ApiServer, name: str) -> None:
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim(name))
    api.put(gvr.PODS, objects.a_pod(f"pod-{name}", name))


def status_of(api: api_server.ApiServer, name: str) -> dict[str, Any]:
    result = api.read(gvr.RESOURCE_CLAIMS, name, "default") or {}
    return dict(result.get("status") or {})
