"""The two plugins, each a process before a kubelet that is played, with claims of eight GPUs."""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from driver import ids
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from tests.fakes import battering, waiting
from tests.fakes import kubelet as fake_kubelet
from tests.fakes.apiserver import server
from tests.oracle import program

OURS, THEIRS = "ours", "go"
GO_DRIVER = "go.example.com"
GPUS = 8
WITHIN_S = 60.0
_LISTS = {"KUBE_FEATURE_WatchListClient": "false"}
"""The stand-in lists as every API server does; lists by watches it does not know."""
_WHOLE = 4
"""Dashes in the name of a whole GPU of ours; parts have more."""


@dataclass(frozen=True, slots=True)
class Side:
    """A plugin that serves; `again` ends it and starts it anew, with its slices gone.

    `plugin` and `pid` are of the process that lives now.
    """

    claims: tuple[ports.ClaimRef, ...]
    plugin: Callable[[], fake_kubelet.Plugin]
    pid: Callable[[], int]
    again: Callable[[], float]


@contextlib.contextmanager
def both() -> Iterator[tuple[Side, Side]]:
    """Ours and theirs, before one stand-in of the API server."""
    with server.ApiServer() as api, tempfile.TemporaryDirectory() as folder:
        for name in (OURS, THEIRS):
            api.put(gvr.NODES, {"metadata": {"name": name, "uid": f"{name}-uid"}})
        kubeconfig = api.kubeconfig(Path(folder))
        kube = client.KubeClient.connect(kubeconfig, "ration-bench")
        with (
            battering.battered(kube, kubeconfig, OURS) as node,
            _Go(kube, kubeconfig) as go,
        ):
            yield _ours(kube, node), go.side()


def _ours(kube: client.KubeClient, node: battering.Battered) -> Side:
    whole = [name for name in node.published() if name.count("-") == _WHOLE][:GPUS]
    claims = tuple(_claim(kube, battering.DRIVER, OURS, device) for device in whole)

    def end() -> None:
        node.processes[-1].terminate()
        node.processes[-1].wait(WITHIN_S)

    return Side(
        claims,
        lambda: node.plugin,
        lambda: node.processes[-1].pid,
        lambda: _timed_start(kube, OURS, end, node.start),
    )


class _Go:
    """The program of `goplugin`, with folders of its own."""

    def __init__(self, kube: client.KubeClient, kubeconfig: Path) -> None:
        self._kube = kube
        self._kubeconfig = kubeconfig
        self._program = program.ensure(Path(__file__).parent / "goplugin")
        self._ends = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes]
        self._plugin: fake_kubelet.Plugin

    def __enter__(self) -> Self:
        self._root = Path(self._ends.enter_context(tempfile.TemporaryDirectory(prefix="g")))
        for name in ("cdi", f"plugins/{GO_DRIVER}"):
            (self._root / name).mkdir(parents=True)
        self._kubelet = self._ends.enter_context(fake_kubelet.Kubelet(self._root))
        self._ends.callback(self._end)
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def side(self) -> Side:
        devices = [f"gpu-{number}" for number in range(GPUS)]
        return Side(
            tuple(_claim(self._kube, GO_DRIVER, THEIRS, device) for device in devices),
            lambda: self._plugin,
            lambda: self._process.pid,
            lambda: _timed_start(self._kube, THEIRS, self._end, self._start),
        )

    def _start(self) -> None:
        flags = {
            "kubeconfig": self._kubeconfig,
            "driver": GO_DRIVER,
            "node": THEIRS,
            "plugin-dir": self._root / "plugins" / GO_DRIVER,
            "registry-dir": self._root / "plugins_registry",
            "cdi-dir": self._root / "cdi",
        }
        command = [str(self._program), *(f"--{name}={value}" for name, value in flags.items())]
        self._process = subprocess.Popen(command, env={**os.environ, **_LISTS})
        self._plugin = self._kubelet.register(within_s=WITHIN_S)

    def _end(self) -> None:
        self._kubelet.hang_up()
        self._process.terminate()
        self._process.wait(WITHIN_S)


def _timed_start(
    kube: client.KubeClient, node: str, end: Callable[[], None], start: Callable[[], object]
) -> float:
    """Seconds from the start of a process to its first slice, when there was none."""
    end()
    chosen = f"spec.nodeName={node}"
    for one in kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).items:
        kube.delete(gvr.RESOURCE_SLICES, one["metadata"]["name"])
    began = time.monotonic()
    start()
    waiting.until(lambda: kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).items, WITHIN_S)
    return time.monotonic() - began


def _claim(kube: client.KubeClient, driver: str, pool: str, device: str) -> ports.ClaimRef:
    """A new claim that is allocated a device."""
    name = f"claim-{pool}-{device}"
    request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
    body: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }
    made = kube.create(gvr.RESOURCE_CLAIMS, body, battering.NAMESPACE)
    result = {"request": "gpu", "driver": driver, "pool": pool, "device": device}
    kube.patch(
        gvr.RESOURCE_CLAIMS,
        name,
        {"status": {"allocation": {"devices": {"results": [result]}}}},
        namespace=battering.NAMESPACE,
        subresource="status",
    )
    return ports.ClaimRef(battering.NAMESPACE, name, ids.ClaimUid(made["metadata"]["uid"]))
