"""On which nodes the chart's DaemonSets are, by the labels that say that there are GPUs."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from driver.kube import client, gvr
from driver.resources import gpu_nodes
from hack.chart import helm
from hack.cluster import api
from tests.e2e import playground, release
from tests.e2e.beside import charts

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
cluster = release.cluster
WITHIN_S = 60.0
PLUGIN, SUPERVISOR = "kubeletplugin", "mps"
Raw = dict[str, Any]
Labelled = Callable[..., None]


@pytest.fixture
def kube(cluster: api.Cluster) -> client.KubeClient:
    return client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")


@pytest.fixture
def node(cluster: api.Cluster) -> Iterator[str]:
    """A node that nothing says to have GPUs."""
    name = cluster.nodes()[1]
    cluster.kubectl("label", "node", name, "nvidia.com/gpu.present-")
    try:
        yield name
    finally:
        cluster.kubectl("label", "node", name, "nvidia.com/gpu.present=true", "--overwrite")


def hosts(kube: client.KubeClient, component: str) -> set[str]:
    """The nodes with a pod of ours."""
    selector = f"app.kubernetes.io/component={component}"
    pods = kube.list(gvr.PODS, namespace=helm.NAMESPACE, label_selector=selector).items
    return {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def published(kube: client.KubeClient, node: str) -> list[Raw]:
    """Return what is published for a node."""
    mine = f"spec.nodeName={node}"
    items = kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items
    return [device for item in items for device in item["spec"].get("devices") or ()]


def test_a_node_has_our_pods_while_any_label_says_that_it_has_gpus(
    cluster: api.Cluster, kube: client.KubeClient, node: str
) -> None:
    def are(*components: str) -> Callable[[], bool]:
        return lambda: all(
            (node in hosts(kube, name)) == (name in components) for name in (PLUGIN, SUPERVISOR)
        )

    playground.until(are(), WITHIN_S, "no pod of ours is there")
    for label in gpu_nodes.LABELS:
        key, _, value = label.partition("=")
        cluster.kubectl("label", "node", node, f"{key}={value or 'some'}")
        playground.until(are(PLUGIN, SUPERVISOR), WITHIN_S, f"our pods are there by {label}")
        cluster.kubectl("label", "node", node, f"{key}-")
        playground.until(are(), WITHIN_S, f"our pods have gone with {label}")
    # As the operator says that a node has no GPU any more.
    cluster.kubectl("label", "node", node, "nvidia.com/gpu.present=false")
    others = {*cluster.nodes()} - {node}
    assert hosts(kube, PLUGIN) == hosts(kube, SUPERVISOR) == others


def a_device_plugin(node: str) -> Raw:
    """A DaemonSet of a device plugin, on one node, with no more than it needs."""
    labels = {"app": "device-plugin"}
    mount = "/var/lib/kubelet/device-plugins"
    container = {
        "name": "nvidia-device-plugin",
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "plugins", "mountPath": mount}],
    }
    document = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "device-plugin", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": playground.on(node),
                    "containers": [container],
                    "volumes": [{"name": "plugins", "hostPath": {"path": mount}}],
                },
            },
        },
    }
    (played,) = charts.played([document])
    return played


@pytest.fixture
def device_plugin(cluster: api.Cluster) -> Iterator[str]:
    """A node that a device plugin serves; it is asked for last."""
    node = cluster.nodes()[1]
    documents = yaml.safe_dump_all([charts.script("kube-system"), a_device_plugin(node)])
    cluster.kubectl("apply", "--filename=-", input=documents)
    try:
        yield node
    finally:
        cluster.kubectl("delete", "--filename=-", "--ignore-not-found", input=documents)


def test_a_device_plugin_takes_the_gpus_and_gives_them_back(
    cluster: api.Cluster, kube: client.KubeClient, device_plugin: str
) -> None:
    def served() -> int:
        status = kube.get(gvr.NODES, device_plugin)["status"]
        return int(status["allocatable"].get("nvidia.com/gpu", "0"))

    playground.until(lambda: served() == 8, WITHIN_S, "the kubelet has GPUs to give")
    playground.until(lambda: not published(kube, device_plugin), WITHIN_S, "all is withdrawn")
    output = cluster.kubectl("get", "events", "--field-selector=reason=DevicePluginBeside")
    assert "nvidia.com/gpu: 8" in output
    cluster.kubectl("delete", "daemonset", "device-plugin", "-n", "kube-system")
    playground.until(lambda: published(kube, device_plugin), WITHIN_S, "all is back")
    assert served() == 0
