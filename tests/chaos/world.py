"""The cluster of a run: the driver behind fault proxies, on small disks, with clocks of its own."""

import base64
import contextlib
import http
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import urllib3
import yaml

from driver import clock
from driver.kube import client, gvr
from driver.resources.dra import slices
from hack.cluster import api, layout, store
from tests.chaos import clocks, disks, invariants, nodeside
from tests.chaos.never import NEVER
from tests.e2e import playground
from tests.fakes.faultproxy import plan, proxy

ROOT = Path(__file__).parents[2]
CONTROLLERS = ("controller-0", "controller-1")
OURS = ("mps", "plugin")
CALM = plan.Script()
SET_UP_S = 180.0
READY_S = 2.0
RELIST_S = 20
"""An event that a watch loses is missed for half an hour otherwise."""


@dataclass
class World:
    """All that faults and looks need. `died` is when a controller last ended, as a wall time.

    `proxies` are those of the controllers and, by node, of the plugins.
    """

    cluster: api.Cluster
    kube: client.KubeClient
    nodes: tuple[nodeside.NodeSide, ...]
    proxies: dict[str, proxy.FaultProxy]
    clocks: dict[str, clocks.Faked]
    baseline: invariants.Baseline
    time: clock.Clock = field(default_factory=clock.SystemClock)
    died: dict[str, float] = field(default_factory=dict)

    def holder(self) -> str:
        """The component that holds the Lease; "" when none of ours does."""
        lease = self.kube.get(gvr.LEASES, "ration-controller", "ration-system")
        words = str(lease["spec"].get("holderIdentity") or "")
        return next((one for one in CONTROLLERS if words.startswith(one)), "")

    def standby(self) -> str:
        """The controller that does not lead."""
        leads = self.holder()
        return next(one for one in CONTROLLERS if one != leads)

    def died_now(self, component: str) -> None:
        """A controller ended just now."""
        self.died[component] = self.time.now().timestamp()

    def patch_node(self, name: str, body: object) -> None:
        """Say something of a node."""
        self.kube.patch(gvr.NODES, name, body)

    def published(self) -> invariants.Baseline:
        """Return what all nodes publish now."""
        found = [slices.parse(one) for one in self.kube.list(gvr.RESOURCE_SLICES).items]
        return invariants.Baseline(
            {
                node.name: frozenset(
                    device.name for one in found if one.node == node.name for device in one.devices
                )
                for node in self.nodes
            }
        )

    def is_ready(self, component: str, node: str) -> bool:
        """Return whether a component of a node says that it can work."""
        port = store.running(layout.Layout(ROOT)).ports[f"{component}.{node}"]
        try:
            answer = urllib3.request(
                "GET", f"http://127.0.0.1:{port}/readyz", timeout=READY_S, retries=False
            )
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == http.HTTPStatus.OK


@contextlib.contextmanager
def opened(cluster: api.Cluster, folder: Path) -> Iterator[World]:
    """Put the driver of a cluster that is up behind proxies, on small disks, under faked clocks."""
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-chaos")
    sides = tuple(nodeside.NodeSide(cluster, name) for name in cluster.nodes())
    with contextlib.ExitStack() as ends:
        made = World(cluster, kube, sides, {}, {}, invariants.Baseline({}))
        made.baseline = made.published()
        server = _Server.of(cluster, folder)
        for name in (*CONTROLLERS, *cluster.nodes()):
            between = proxy.FaultProxy(server.url, CALM, server.authority)
            made.proxies[name] = ends.enter_context(between)
        built = clocks.library(folder)
        for name in ("controllers", *cluster.nodes()):
            made.clocks[name] = clocks.Faked(folder / f"clock-{name}", built)
        for name in CONTROLLERS:
            _rewire_controller(made, name, folder)
        for side in sides:
            _rewire_node(made, side)
        playground.until(lambda: made.published() == made.baseline, SET_UP_S, "devices are back")
        yield made


@dataclass(frozen=True, slots=True)
class _Server:
    url: str
    authority: Path

    @classmethod
    def of(cls, cluster: api.Cluster, folder: Path) -> Self:
        """The API server's address, and its authority as a file."""
        document = yaml.safe_load(cluster.controller_kubeconfig.read_text())
        found = document["clusters"][0]["cluster"]
        authority = folder / "authority.pem"
        authority.write_bytes(base64.b64decode(found["certificate-authority-data"]))
        return cls(str(found["server"]), authority)


def _rewire_controller(of: World, name: str, folder: Path) -> None:
    own = folder / name
    own.mkdir(exist_ok=True)
    token = of.cluster.controller_kubeconfig.with_suffix(".token")
    kubeconfig = of.proxies[name].kubeconfig(own, token)
    argv = _with_flag(of.cluster.command(name), "--kubeconfig", str(kubeconfig))
    argv = (*argv, f"--relist-seconds={RELIST_S}")
    of.cluster.restart(name, argv, variables=of.clocks["controllers"].variables())


def _rewire_node(of: World, side: nodeside.NodeSide) -> None:
    name, cluster = side.name, of.cluster
    for component in OURS:
        cluster.stop(component, name)
    for component in ("kubelet", "containerd"):
        cluster.stop(component, name)
    disks.furnish(side.root)
    for component in ("containerd", "kubelet"):
        cluster.start(component, name)
        of.time.wait(NEVER, 1.0)
    kubeconfig = of.proxies[name].kubeconfig(
        side.root / "config", side.root / "config" / "plugin.token"
    )
    variables = of.clocks[name].variables()
    cluster.restart("mps", cluster.command("mps", name), node=name, variables=variables)
    argv = _with_flag(cluster.command("plugin", name), "--kubeconfig", str(kubeconfig))
    cluster.restart("plugin", argv, node=name, variables=variables)


def _with_flag(argv: tuple[str, ...], flag: str, value: str) -> tuple[str, ...]:
    at = argv.index(flag)
    return (*argv[: at + 1], value, *argv[at + 2 :])
