"""The cluster on which neighbours and Ration stand side by side: three nodes, each another's."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from driver import names
from driver.kube import client, gvr
from hack.chart import helm
from hack.cluster import api
from tests.e2e import playground
from tests.e2e.beside import charts, program
from tests.e2e.conftest import ROOT

OPERATOR, EXPORTER, NFD = "gpu-operator", "dcgm-exporter", "node-feature-discovery"
THEIRS, OURS, BARE = "node-0", "node-1", "bare"
OF_EXPORTER = (
    "--set=serviceMonitor.enabled=false",  # its kind is not there
    r"--set-string=nodeSelector.nvidia\.com/gpu\.deploy\.dcgm-exporter=true",
)
"""Values of dcgm-exporter's chart: both exporters leave a node by one label."""
AWAY = ("device-plugin", "mig-manager")
"""What is not to be on a node of Ration's, as the page says."""
_ON_BOTH: tuple[tuple[str, dict[str, str]], ...] = (
    (OPERATOR, {"app": "nvidia-dcgm-exporter"}),
    (OPERATOR, {"app": "gpu-feature-discovery"}),
    (EXPORTER, {}),
)
SOON_S, WITHDRAWN_S = 60.0, 60.0
Raw = dict[str, Any]


@dataclass(frozen=True)
class Beside:
    """The cluster, with all of them on it."""

    cluster: api.Cluster
    kube: client.KubeClient
    scratch: Path

    def label(self, node: str, *pairs: str) -> None:
        """Label a node."""
        self.cluster.kubectl("label", "node", node, *pairs, "--overwrite")

    def labels(self, node: str) -> dict[str, str]:
        """The labels of a node."""
        return dict(self.kube.get(gvr.NODES, node)["metadata"]["labels"])

    def allocatable(self, node: str) -> int:
        """Return how many `nvidia.com/gpu` a node's kubelet has to give."""
        status = self.kube.get(gvr.NODES, node)["status"]
        return int(status["allocatable"].get("nvidia.com/gpu", "0"))

    def pods(self, namespace: str, **labels: str) -> list[Raw]:
        """The pods of a namespace with these labels."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return self.kube.list(gvr.PODS, namespace=namespace, label_selector=selector).items

    def hosts(self, namespace: str, **labels: str) -> dict[str, bool]:
        """The nodes that such pods are on, and whether they are ready there."""
        return {
            pod["spec"]["nodeName"]: is_ready(pod)
            for pod in self.pods(namespace, **labels)
            if pod["spec"].get("nodeName")
        }

    def plugins(self) -> dict[str, bool]:
        """The nodes with Ration's plugin, and whether it is ready there."""
        return self.hosts(helm.NAMESPACE, **{"app.kubernetes.io/component": "kubeletplugin"})

    def readiness(self, node: str) -> str:
        """Return what the readiness of a node's plugin says."""
        (pod,) = (
            pod["metadata"]["name"]
            for pod in self.pods(helm.NAMESPACE, **{"app.kubernetes.io/component": "kubeletplugin"})
            if pod["spec"]["nodeName"] == node
        )
        path = f"/api/v1/namespaces/{helm.NAMESPACE}/pods/{pod}:8080/proxy/readyz"
        return self.cluster.kubectl("get", "--raw", path)

    def published(self, node: str) -> list[Raw]:
        """The devices that Ration publishes for a node."""
        mine = f"spec.nodeName={node},spec.driver={names.DRIVER}"
        items = self.kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items
        return [device for item in items for device in item["spec"].get("devices") or ()]

    def notes(self, node: str, reason: str) -> list[str]:
        """Return what events of that reason say about a node."""
        items = self.kube.list(gvr.EVENTS, namespace="default").items
        return [
            str(item.get("note"))
            for item in items
            if (item["regarding"]["name"], item["reason"]) == (node, reason)
        ]

    def doctor(self, node: str) -> list[Raw]:
        """Return what `ration doctor` has found of a node."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "driver.cli", "doctor", "--output=json"),
                f"--kubeconfig={self.cluster.kubeconfig}",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        document = json.loads(done.stdout)
        return [load for load in document if load["where"] == node]

    def install_operator(self) -> None:
        """The operator's chart, what it deploys for its ClusterPolicy, and the labels of OURS."""
        charts.install(self.cluster, OPERATOR, self.scratch / "operator")
        policy = json.loads(
            self.cluster.kubectl("get", "clusterpolicy", "cluster-policy", "--output=json")
        )
        operands = charts.operands(OPERATOR, policy, *charts.OPERANDS)
        self.cluster.kubectl("apply", "--filename=-", input=yaml.safe_dump_all(operands))
        # Before, it would take the labels off again.
        playground.until(lambda: self.is_discovered(OURS), SOON_S, "GPUs are discovered")
        self.label(OURS, *(f"nvidia.com/gpu.deploy.{operand}=false" for operand in AWAY))

    def is_discovered(self, node: str) -> bool:
        """Return whether the operator knows by Node Feature Discovery that a node has GPUs."""
        labels = self.labels(node)
        return {labels.get(program.DISCOVERED[0]), labels.get(program.PRESENT)} == {"true"}

    def uninstall_operator(self) -> None:
        """Uninstall it; what it deployed goes with its ClusterPolicy."""
        charts.uninstall(self.cluster, OPERATOR)
        shutil.rmtree(self.scratch / "operator")


def is_ready(pod: Raw) -> bool:
    """Return whether a pod is ready."""
    conditions = pod["status"].get("conditions", ())
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def lose_gpus(cluster: api.Cluster, node: str) -> None:
    """Have a node without any NVIDIA device."""
    cluster.stop("gpu", node)
    for link in (cluster.node_dir(node) / "gpu/host-root/sys/bus/pci/devices").iterdir():
        link.unlink()


def settled(beside: Beside) -> None:
    """Wait until the operator's pods are where its labels have them, and the kubelets know."""
    playground.until(
        lambda: {node for node in (THEIRS, OURS) if beside.allocatable(node)} == {THEIRS},
        SOON_S,
        "the device plugin serves its node",
    )
    playground.until(
        lambda: all(
            beside.hosts(namespace, **labels) == {THEIRS: True, OURS: True}
            for namespace, labels in _ON_BOTH
        ),
        SOON_S,
        "what else runs on both is ready",
    )


def give_back(beside: Beside) -> None:
    """Take away what is not the local cluster's own, as far as it is there."""
    cluster = beside.cluster
    words = cluster.helm("list", "--all-namespaces", "--short").split()
    if EXPORTER in words:
        charts.uninstall(cluster, EXPORTER)
    if OPERATOR in words:
        beside.uninstall_operator()
    for path in (*charts.kinds(OPERATOR), *charts.kinds(NFD)):
        cluster.kubectl("delete", f"--filename={path}", "--ignore-not-found")
    cluster.remove_node(BARE)
    for node in cluster.nodes():
        labels = [name for name in beside.labels(node) if name.startswith("nvidia.com/")]
        beside.label(node, *(f"{name}-" for name in labels))
        beside.label(node, f"{program.PRESENT}=true")
