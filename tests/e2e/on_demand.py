"""A cluster whose nodes with GPUs come and go: real Karpenter, and what is seen of its doing.

Its provider makes Node objects where others start machines; kwok plays their kubelets, and
`arrivals` the driver's plugin on them. The one node with a kubelet is cordoned, and has too few
GPUs for what waits in these tests.
"""

import contextlib
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import names
from driver.kube import client, gvr
from hack.chart import helm
from hack.cluster import api, karpenter, kwok
from hack.cluster import errors as cluster_errors
from tests.e2e import playground
from tests.e2e.conftest import ROOT, hack

Raw = playground.Raw
FOLDER = ROOT / "examples" / "karpenter"
NODE_POOL = "karpenter.sh/nodepool"
NODE_CLAIMS = gvr.Resource("karpenter.sh", "v1", "nodeclaims", namespaced=False)
NODE_POOLS = gvr.Resource("karpenter.sh", "v1", "nodepools", namespaced=False)
CONTROLLERS = ("controller-0", "controller-1")
TTL_S = 40
IDLE_S = 5
"""`consolidateAfter`: so long after its last pod a node is empty. Karpenter looks every 10 s and
once more 15 s later."""
GOES_S = 90.0
_LAUNCHED = re.compile(r'"message":"created nodeclaim"')
_SETTINGS = (
    f"--values={FOLDER / 'install' / 'values.yaml'}",
    f"--set=controller.nodes.ttl={TTL_S}s",
    "--set=admission.enabled=false",
)


@contextlib.contextmanager
def a_cluster() -> Iterator[api.Cluster]:
    """The cluster, its controllers told of the example's shapes."""
    with contextlib.suppress(cluster_errors.ClusterError):
        api.Cluster.load(ROOT)
        pytest.skip("a cluster is up, with machines of its own: make cluster-down")
    try:
        karpenter.fetch()
        kwok.fetch()
    except cluster_errors.CommandFailedError as error:
        pytest.skip(f"Karpenter cannot be built here: {error}")
    hack("up", "--nodes", "1", "--machine", "t4", "--controllers", str(len(CONTROLLERS)))
    try:
        cluster = api.Cluster.load(ROOT)
        cluster.kubectl("cordon", "node-0")
        cluster.start_kwok()
        cluster.start_karpenter(FOLDER / "install" / "instance-types.json")
        cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(node_pool()))
        with told_of_the_shapes(cluster):
            yield cluster
    finally:
        hack("down")


def node_pool() -> list[Raw]:
    """The example's, but that nodes start and go sooner."""
    pool, node_class = yaml.safe_load_all((FOLDER / "nodepool.yaml").read_text())
    pool["spec"]["disruption"]["consolidateAfter"] = f"{IDLE_S}s"
    node_class["spec"]["nodeRegistrationDelay"] = "1s"
    return [pool, node_class]


@contextlib.contextmanager
def told_of_the_shapes(cluster: api.Cluster) -> Iterator[None]:
    """The chart's rights and documents by the example's values, and the controllers by its flag."""
    objects = helm.objects(helm.template(*_SETTINGS))
    retained = [obj for obj in objects if obj["kind"] not in helm.WORKLOADS]
    server_side = ("--server-side", "--force-conflicts", "--field-manager=ration-cluster")
    cluster.kubectl("apply", *server_side, "-f", "-", input=yaml.safe_dump_all(retained))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as flags:
        document = Path(folder) / "nodes.yaml"
        document.write_text(_document(objects))
        for name in CONTROLLERS:
            flags.enter_context(cluster.with_flags(name, f"--node-shapes={document}"))
        yield


def _document(created: list[Any]) -> str:
    """The one that the chart mounts into the controllers' pods."""
    (text,) = [
        text
        for entry in created
        if entry["kind"] == "ConfigMap"
        for text in entry["data"].values()
        if (yaml.safe_load(text) or {}).get("kind") == "NodeShapes"
    ]
    return str(text)


class Supply:
    """Nodes that Karpenter was asked for and has brought."""

    def __init__(self, cluster: api.Cluster, kube: client.KubeClient) -> None:
        self.cluster = cluster
        self.kube = kube
        self._before = self._all_launched()

    def nodes(self) -> list[Raw]:
        """The nodes that it brought."""
        return self.kube.list(gvr.NODES, label_selector=NODE_POOL).items

    def launched(self) -> int:
        """Return how many nodes it began to bring since this was made, by its own log."""
        return self._all_launched() - self._before

    def _all_launched(self) -> int:
        return len(_LAUNCHED.findall(self.cluster.log_path(karpenter.COMPONENT).read_text()))

    def placeholders(self) -> list[Raw]:
        """The pods by which our controller asks."""
        listing = self.kube.list(
            gvr.PODS, namespace=helm.NAMESPACE, label_selector=names.PLACEHOLDER_LABEL
        )
        return listing.items

    def until_nodes(self, count: int, within_s: float = 60) -> list[Raw]:
        """Wait until there are so many of its nodes."""
        description = f"{count} nodes of Karpenter's"
        playground.until(lambda: len(self.nodes()) == count, within_s, description)
        return self.nodes()

    def clear(self) -> None:
        """Have all of its nodes gone, and what it still thinks of."""
        playground.until(lambda: not self.placeholders(), 60, "the placeholders are gone")
        self.cluster.kubectl("delete", "nodeclaims", "--all", "--wait=false")
        playground.until(
            lambda: not self.kube.list(NODE_CLAIMS).items and not self.nodes(),
            60,
            "Karpenter's nodes are gone",
        )


def change(cluster: api.Cluster, kind: str, name: str, spec: Raw) -> None:
    """Merge something into the spec of one of Karpenter's objects."""
    cluster.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")
