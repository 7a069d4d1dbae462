"""The API server of a soak: a real one of its own, or a stand-in for a run of a minute."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.hold import ground
from driver.kube import client, resource
from tests.fakes.apiserver import server

NODE = "soak"


class Breakable(Protocol):
    """Goes and comes back."""

    def up(self) -> None: ...
    def down(self) -> None: ...
    def drop_connections(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Server:
    """An API server that has the node. `kube` is an administrator's, `kubeconfig` the plugin's.

    `fake` is the stand-in, which can answer late as well.
    """

    kube: client.KubeClient
    kubeconfig: Path
    breaks: Breakable
    words: str
    fake: server.ApiServer | None = None


Served = Callable[[], contextlib.AbstractContextManager[Server]]


@contextlib.contextmanager
def real() -> Iterator[Server]:
    """A kube-apiserver with its etcd; the plugin has the rights that the chart gives it."""
    with ground.served() as own:
        own.kube.create(resource.NODES, {"metadata": {"name": NODE}})
        words = "a kube-apiserver and an etcd of its own"
        yield Server(own.kube, own.plugin(NODE), own, words)


@contextlib.contextmanager
def stand_in() -> Iterator[Server]:
    """Needs nothing that is not in this checkout."""
    with server.ApiServer() as fake, tempfile.TemporaryDirectory() as folder:
        fake.put(resource.NODES, {"metadata": {"name": NODE, "uid": "node-uid"}})
        kubeconfig = fake.kubeconfig(Path(folder))
        kube = client.KubeClient.connect(kubeconfig, "ration-soak")
        yield Server(kube, kubeconfig, fake, "a stand-in for the API server", fake)
