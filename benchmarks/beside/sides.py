"""The two plugins, each a process before a kubelet that is played, with claims of eight GPUs."""

import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks.hold import mix
from driver import ids
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from hack.cluster import layout, nvidia_driver
from tests.fakes import battering, mpsnode, packaged, waiting
from tests.fakes import kubelet as fake_kubelet
from tests.fakes.apiserver import server
from tests.oracle import program

OURS, THEIRS, NVIDIA, LEAST = "ours", "go", "nvidia", "least"
LEAST_DRIVER = "least.example.com"
GO_DRIVER = "go.example.com"
_NVIDIA_PART = "gpu-7-mig-1g10gb-19-0"
"""Its name of a placement on the simulated machine."""
GPUS = 8
WITHIN_S = 60.0
_LISTS = {"KUBE_FEATURE_WatchListClient": "false"}
"""The stand-in lists as every API server does; lists by watches it does not know."""
_WHOLE = 4
"""Dashes in the name of a whole GPU of ours; parts have more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """A plugin that serves; `again` ends it and starts it anew, with its slices gone.

    `claims` are of whole GPUs, `parts` of a MIG device, `shares` of the pods of a full node, if it
    has any.

    `plugin` and `pid` are of the process that lives now.
    """

    claims: tuple[ports.ClaimRef, ...]
    parts: tuple[ports.ClaimRef, ...]
    shares: tuple[ports.ClaimRef, ...]
    plugin: Callable[[], fake_kubelet.Plugin]
    pid: Callable[[], int]
    again: Callable[[], float]


@contextlib.contextmanager
def beside_go() -> Iterator[tuple[Side, Side, Side]]:
    """Ours, the Go driver, and the least one in Python."""
    with (
        _started() as (kube, kubeconfig, ours),
        _go(kube, kubeconfig) as go,
        _least(kube, kubeconfig) as least,
    ):
        yield ours, go, least


@contextlib.contextmanager
def beside_nvidia(folder: Path) -> Iterator[tuple[Side, Side]]:
    """Ours, and NVIDIA's driver in a folder."""
    with _started() as (kube, kubeconfig, ours), _nvidia(kube, kubeconfig, folder) as theirs:
        yield dataclasses.replace(ours, shares=()), theirs


@contextlib.contextmanager
def _started() -> Iterator[tuple[client.KubeClient, Path, Side]]:
    """Yield a stand-in of the API server, and ours before it."""
    with server.ApiServer() as api, tempfile.TemporaryDirectory() as folder:
        for name in (OURS, THEIRS, NVIDIA, LEAST):
            api.put(gvr.NODES, {"metadata": {"name": name, "uid": f"{name}-uid"}})
        kubeconfig = api.kubeconfig(Path(folder))
        kube = client.KubeClient.connect(kubeconfig, "ration-bench")
        with battering.battered(kube, kubeconfig, OURS) as node:
            yield kube, kubeconfig, _ours(kube, node)


def _ours(kube: client.KubeClient, node: battering.Battered) -> Side:
    published = node.published()
    whole = [name for name in published if name.count("-") == _WHOLE][:GPUS]
    claims = tuple(_claim(kube, battering.DRIVER, OURS, device) for device in whole)
    shares = tuple(
        _claim(kube, battering.DRIVER, OURS, device, f"-{number}")
        for number, device in enumerate(mix.shares(published)[: mix.BURST])
    )

    def end() -> None:
        node.processes[-1].terminate()
        node.processes[-1].wait(WITHIN_S)

    return Side(
        claims,
        (_claim(kube, battering.DRIVER, OURS, node.devices["mig"]),),
        shares,
        lambda: node.plugin,
        lambda: node.processes[-1].pid,
        lambda: _timed_start(kube, OURS, end, node.start),
    )


Command = Callable[[layout.NodeLayout], Sequence[str]]
"""Returns a plugin's command line, given its node's folders."""


class _Guest:
    """A plugin of others, with folders of its own below `root`."""

    def __init__(
        self,
        kube: client.KubeClient,
        node: str,
        root: Path,
        command: Command,
        environment: Mapping[str, str],
    ) -> None:
        self._kube = kube
        self._node = node
        self._folders = _Folders(root)
        self._command = command
        self._environment = environment
        self._ends = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes]
        self._plugin: fake_kubelet.Plugin

    def __enter__(self) -> Self:
        self._folders.kubelet.mkdir()
        self._folders.cdi.mkdir()
        self._kubelet = self._ends.enter_context(fake_kubelet.Kubelet(self._folders.kubelet))
        self._ends.callback(self._end)
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def side(
        self, driver: str, parts: Iterable[str] = (), shares: int = 0, *, published: bool
    ) -> Side:
        """Return the side, with claims of whole GPUs, of MIG devices of one GPU, and of shares.

        A share is a whole GPU again, which a least plugin gives to any number of claims.
        """
        gpus = [f"gpu-{number}" for number in range(GPUS)]

        def claims(names: Iterable[str], suffix: str = "") -> tuple[ports.ClaimRef, ...]:
            return tuple(_claim(self._kube, driver, self._node, name, suffix) for name in names)

        return Side(
            claims(gpus),
            claims(parts),
            tuple(claims([gpus[number % GPUS]], f"-{number}")[0] for number in range(shares)),
            lambda: self._plugin,
            lambda: self._process.pid,
            (
                lambda: (
                    _timed_start(self._kube, self._node, self._end, self._start)
                    if published
                    else self._restart()
                )
            ),
        )

    def _restart(self) -> float:
        """Return the seconds until the kubelet has registered it."""
        self._end()
        began = time.monotonic()
        self._start()
        return time.monotonic() - began

    def _start(self) -> None:
        command = self._command(self._folders)
        self._process = subprocess.Popen(
            command, env={**os.environ, **_LISTS, **self._environment}, stderr=subprocess.DEVNULL
        )
        self._plugin = self._kubelet.register(within_s=WITHIN_S)

    def _end(self) -> None:
        self._kubelet.hang_up()
        self._process.terminate()
        self._process.wait(WITHIN_S)


class _Folders(layout.NodeLayout):
    """A node's folders beside its simulated machine, as `mpsnode.machine` names it."""

    @property
    def gpu(self) -> Path:
        """The simulated machine."""
        return self.root / "m"


def _plugin_flags(folders: layout.NodeLayout, kubeconfig: Path, driver: str) -> Iterator[str]:
    """Yield the flags of a least plugin, whose own folder is there by then."""
    plugin = folders.kubelet / "plugins" / driver
    plugin.mkdir(exist_ok=True)
    yield f"--kubeconfig={kubeconfig}"
    yield f"--driver={driver}"
    yield f"--plugin-dir={plugin}"
    yield f"--registry-dir={folders.kubelet / 'plugins_registry'}"


@contextlib.contextmanager
def _go(kube: client.KubeClient, kubeconfig: Path) -> Iterator[Side]:
    """The program of `goplugin`."""
    built = program.ensure(Path(__file__).parent / "goplugin")

    def command(folders: layout.NodeLayout) -> Sequence[str]:
        flags = _plugin_flags(folders, kubeconfig, GO_DRIVER)
        return [str(built), *flags, f"--node={THEIRS}", f"--cdi-dir={folders.cdi}"]

    with (
        tempfile.TemporaryDirectory(prefix="g") as folder,
        _Guest(kube, THEIRS, Path(folder), command, {}) as guest,
    ):
        yield guest.side(GO_DRIVER, shares=mix.BURST, published=True)


@contextlib.contextmanager
def _least(kube: client.KubeClient, kubeconfig: Path) -> Iterator[Side]:
    """The program of `least`."""

    def command(folders: layout.NodeLayout) -> Sequence[str]:
        without_rich = "import runpy, sys; sys.modules['rich'] = None;"
        run = "runpy.run_module('benchmarks.beside.least', run_name='__main__', alter_sys=True)"
        return [
            sys.executable,
            "-c",
            f"{without_rich} {run}",
            *_plugin_flags(folders, kubeconfig, LEAST_DRIVER),
        ]

    with (
        tempfile.TemporaryDirectory(prefix="l") as folder,
        _Guest(kube, LEAST, Path(folder), command, packaged.environment()) as guest,
    ):
        yield guest.side(LEAST_DRIVER, shares=mix.BURST, published=False)


@contextlib.contextmanager
def _nvidia(kube: client.KubeClient, kubeconfig: Path, folder: Path) -> Iterator[Side]:
    """NVIDIA's driver on a machine like ours, without its limit of requests.

    It publishes by protobuf, which the stand-in does not read: its start is not measured.
    """

    def command(folders: layout.NodeLayout) -> Sequence[str]:
        words = nvidia_driver.command(folder, folders, NVIDIA, kubeconfig)
        return [*words, "--kube-api-qps=1000", "--kube-api-burst=1000"]

    with (
        mpsnode.machine() as base,
        _Guest(
            kube, NVIDIA, base.parent, command, nvidia_driver.environment(["DynamicMIG"])
        ) as guest,
    ):
        yield guest.side(nvidia_driver.DRIVER, [_NVIDIA_PART], published=False)


def _timed_start(
    kube: client.KubeClient, node: str, end: Callable[[], None], start: Callable[[], object]
) -> float:
    """Seconds from the start of a process to its first slice, when there was none."""
    end()
    chosen = f"spec.nodeName={node}"
    for published in kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).items:
        kube.delete(gvr.RESOURCE_SLICES, published["metadata"]["name"])
    began = time.monotonic()
    start()
    waiting.until(lambda: kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).items, WITHIN_S)
    return time.monotonic() - began


def _claim(
    kube: client.KubeClient, driver: str, pool: str, device: str, suffix: str = ""
) -> ports.ClaimRef:
    """Create a claim that is allocated a device, or a share of it."""
    name = f"claim-{pool}-{device}{suffix}"
    request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
    body: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }
    created = kube.create(gvr.RESOURCE_CLAIMS, body, battering.NAMESPACE)
    uid = created["metadata"]["uid"]
    result: dict[str, Any] = {"request": "gpu", "driver": driver, "pool": pool, "device": device}
    if amounts := mix.amounts(device):
        result |= {"consumedCapacity": amounts, "shareID": uid}
    kube.patch(
        gvr.RESOURCE_CLAIMS,
        name,
        {"status": {"allocation": {"devices": {"results": [result]}}}},
        namespace=battering.NAMESPACE,
        subresource="status",
    )
    return ports.ClaimRef(battering.NAMESPACE, name, ids.ClaimUid(uid))
