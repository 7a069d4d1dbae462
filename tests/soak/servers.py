"""The API server of a soak: a real one of its own, or a stand-in for a run of a minute."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.hold import ground
from driver.kube import client, gvr
from tests.fakes.apiserver import faults, server

NODE = "soak"
PODS = 110
"""Of a node that is full."""
_LATE_S = 1.0


class Breakable(Protocol):
    """Goes and comes back."""

    def up(self) -> None: ...
    def down(self) -> None: ...
    def drop_connections(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Server:
    """An API server that has the node. `kube` is an administrator's, `kubeconfig` the plugin's.

    While `late`, what is asked waits: all that time, or for a second. `fake` is the stand-in.
    """

    kube: client.KubeClient
    kubeconfig: Path
    breaks: Breakable
    words: str
    late: Callable[[], contextlib.AbstractContextManager[None]]
    fake: server.ApiServer | None = None


Served = Callable[[], contextlib.AbstractContextManager[Server]]


@contextlib.contextmanager
def real() -> Iterator[Server]:
    """A kube-apiserver with its etcd; the plugin has the rights that the chart gives it."""
    with ground.served() as own:
        own.kube.create(gvr.NODES, {"metadata": {"name": NODE}})
        words = "a kube-apiserver and an etcd of its own"
        yield Server(own.kube, own.plugin(NODE), own, words, own.frozen)


@contextlib.contextmanager
def stand_in() -> Iterator[Server]:
    """Needs nothing that is not in this checkout."""
    with server.ApiServer() as fake, tempfile.TemporaryDirectory() as folder:
        fake.put(gvr.NODES, {"metadata": {"name": NODE, "uid": "node-uid"}})
        kubeconfig = fake.kubeconfig(Path(folder))
        kube = client.KubeClient.connect(kubeconfig, "ration-soak")
        words = "a stand-in for the API server"
        yield Server(kube, kubeconfig, fake, words, lambda: _late(fake), fake)


@contextlib.contextmanager
def _late(fake: server.ApiServer) -> Iterator[None]:
    fake.faults.add(faults.Delay(_LATE_S), faults.lists, times=PODS)
    yield
    fake.faults.clear()
