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
        return next((name for name in CONTROLLERS if words.startswith(name)), "")

    def standby(self) -> str:
        """The controller that does not lead."""
        leads = self.holder()
        return next(name for name in CONTROLLERS if name != leads)

    def died_now(self, component: str) -> None:
        """A controller ended just now."""
        self.died[component] = self.time.now().timestamp()

    def patch_node(self, name: str, body: object) -> None:
        """Say something of a node."""
        self.kube.patch(gvr.NODES, name, body)

    def published(self) -> invariants.Baseline:
        """Return what all nodes publish now."""
        parsed = [slices.parse(item) for item in self.kube.list(gvr.RESOURCE_SLICES).items]
        return invariants.Baseline(
            {
                node.name: frozenset(
                    device.name
                    for parsed in parsed
                    if parsed.node == node.name
                    for device in parsed.devices
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
        world = World(cluster, kube, sides, {}, {}, invariants.Baseline({}))
        world.baseline = world.published()
        server = _Server.of(cluster, folder)
        for name in (*CONTROLLERS, *cluster.nodes()):
            between = proxy.FaultProxy(server.url, CALM, server.authority)
            world.proxies[name] = ends.enter_context(between)
        built = clocks.library(folder)
        for name in ("controllers", *cluster.nodes()):
            world.clocks[name] = clocks.Faked(folder / f"clock-{name}", built)
        for name in CONTROLLERS:
            _rewire_controller(world, name, folder)
        for side in sides:
            _rewire_node(world, side)
        playground.until(lambda: world.published() == world.baseline, SET_UP_S, "devices are back")
        yield world


@dataclass(frozen=True, slots=True)
class _Server:
    url: str
    authority: Path

    @classmethod
    def of(cls, cluster: api.Cluster, folder: Path) -> Self:
        """The API server's address, and its authority as a file."""
        document = yaml.safe_load(cluster.controller_kubeconfig.read_text())
        result = document["clusters"][0]["cluster"]
        authority = folder / "authority.pem"
        authority.write_bytes(base64.b64decode(result["certificate-authority-data"]))
        return cls(str(result["server"]), authority)


def _rewire_controller(world: World, name: str, folder: Path) -> None:
    own = folder / name
    own.mkdir(exist_ok=True)
    token = world.cluster.controller_kubeconfig.with_suffix(".token")
    kubeconfig = world.proxies[name].kubeconfig(own, token)
    argv = _with_flag(world.cluster.command(name), "--kubeconfig", str(kubeconfig))
    argv = (*argv, f"--relist-seconds={RELIST_S}")
    world.cluster.restart(name, argv, variables=world.clocks["controllers"].variables())


def _rewire_node(world: World, side: nodeside.NodeSide) -> None:
    name, cluster = side.name, world.cluster
    for component in OURS:
        cluster.stop(component, name)
    for component in ("kubelet", "containerd"):
        cluster.stop(component, name)
    disks.furnish(side.root)
    for component in ("containerd", "kubelet"):
        cluster.start(component, name)
        world.time.wait(NEVER, 1.0)
    kubeconfig = world.proxies[name].kubeconfig(
        side.root / "config", side.root / "config" / "plugin.token"
    )
    variables = world.clocks[name].variables()
    cluster.restart("mps", cluster.command("mps", name), node=name, variables=variables)
    argv = _with_flag(cluster.command("plugin", name), "--kubeconfig", str(kubeconfig))
    cluster.restart("plugin", argv, node=name, variables=variables)


def _with_flag(argv: tuple[str, ...], flag: str, value: str) -> tuple[str, ...]:
    index = argv.index(flag)
    return (*argv[: index + 1], value, *argv[index + 2 :])
