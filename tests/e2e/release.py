"""A cluster with the driver as its chart's pods, for tests that change the release itself."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import names
from driver.kube import client, gvr
from driver.resources.dra import claims
from hack.chart import helm
from hack.cluster import api, errors, layout, state
from hack.crds import kinds
from tests.e2e import grounds, playground
from tests.e2e.conftest import ROOT

MODES = ("gpu", "gpu-timeslice", "gpu-mps", "gpu-mig")
WHERE = layout.Layout(ROOT)
SCHEDULER = "kube-scheduler"
OURS = (
    "clusterroles,clusterrolebindings,deviceclasses,validatingwebhookconfigurations,"
    "mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,"
    "mutatingadmissionpolicies,mutatingadmissionpolicybindings"
)
KEPT = [f"customresourcedefinition.apiextensions.k8s.io/{kind.crd}" for kind in kinds.KINDS]
"""With a kind its objects would go, which users have made."""
OF_NAMESPACE = "all,serviceaccounts,roles,rolebindings,secrets,leases,poddisruptionbudgets"


@contextlib.contextmanager
def a_cluster() -> Iterator[api.Cluster]:
    """The cluster that is up, if its driver is pods, or one meanwhile; the driver installed."""
    try:
        loaded, is_ours = grounds.load(), False
    except errors.ClusterError:
        loaded, is_ours = grounds.up(nodes=2, driver=("--driver", "pods")), True
    if loaded.driver is not state.Driver.PODS:
        pytest.skip(f"the cluster that is up has the driver as {loaded.driver}: make cluster-down")
    try:
        install()
        yield loaded
    finally:
        if is_ours:
            grounds.down()


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    """Yield the cluster of a module of tests; each names it as its own."""
    with a_cluster() as result:
        yield result


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    """A namespace of a test's own on the module's cluster; each module names it as its own."""
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube)
    try:
        yield ground
    finally:
        ground.close()


def install(*flags: str, path: Path = helm.CHART) -> None:
    """The release as `flags` of helm and a chart say, this checkout's by default."""
    grounds.load().install("--set=controller.replicas=2", *flags, source=path)


def images(cluster: api.Cluster) -> dict[str, set[str]]:
    """Return what the release's pods run, by component."""
    text = cluster.kubectl("get", "pods", "-n", helm.NAMESPACE, "--output=json")
    result: dict[str, set[str]] = {}
    for item in json.loads(text)["items"]:
        if "deletionTimestamp" not in item["metadata"]:
            component = item["metadata"]["labels"]["app.kubernetes.io/component"]
            result.setdefault(component, set()).add(item["spec"]["containers"][0]["image"])
    return result


def helm_says(*words: str) -> str:
    """Return what helm printed of the cluster that is up."""
    return grounds.load().helm(*words)


def a_pod(name: str, **more: Any) -> dict[str, Any]:
    """A pod that sleeps, of any node."""
    sleeping = {"nodeSelector": {}, "tolerations": [], "command": "exec sleep 3600"}
    return playground.a_pod(name, **{**sleeping, **more})


def a_template(mode: str) -> dict[str, Any]:
    """A template, named by the mode, for a device of that mode."""
    template = playground.a_template(mode, deviceClassName=f"{mode}.{names.GROUP}")
    if mode == "gpu-mig":
        chosen = f'device.attributes["{names.DRIVER}"].profile == "1g.10gb"'
        exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
        exactly["selectors"] = [{"cel": {"expression": chosen}}]
    return template


def of_mode(field: playground.Playground, mode: str) -> str:
    """A running pod with a device of one mode, of a template; its name."""
    field.create(a_template(mode), a_pod(f"{mode}-pod", template=mode))
    return f"{mode}-pod"


def left_in_the_api(cluster: api.Cluster) -> list[str]:
    """Objects of ours; events, which end by themselves, aside."""

    def names_of(*query: str) -> list[str]:
        return cluster.kubectl("get", *query, "--output=name", "--ignore-not-found").split()

    usual = {"serviceaccount/default"}
    conditions = [
        f"{item['metadata']['name']}: {condition['type']}"
        for item in json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
        for condition in item["status"]["conditions"]
        if names.GROUP in condition["type"]
    ]
    return [
        *names_of("crds"),
        *names_of("resourceslices"),
        *(name for name in names_of(OURS) if "ration" in name),
        *(name for name in names_of(OF_NAMESPACE, "-n", helm.NAMESPACE) if name not in usual),
        *names_of("resourceclaimtemplates", "-A", f"--selector={names.CONVERTED}"),
        *conditions,
    ]


def left_on(cluster: api.Cluster, *folders: str) -> list[str]:
    """Files of the driver on the nodes."""
    return [
        str(path.relative_to(root))
        for node in cluster.nodes()
        for root in [cluster.node_dir(node)]
        for folder in (folders or ("state", "cdi", "kubelet/plugins", "kubelet/plugins_registry"))
        for path in sorted(Path(root, folder).rglob("*"))
    ]


def uninstall() -> tuple[int, str]:
    """Helm's exit code, and all it said: a hook's words are one quoted line of its log."""
    command = (str(helm.program()), "uninstall", helm.RELEASE, f"--namespace={helm.NAMESPACE}")
    environment = {**os.environ, "KUBECONFIG": str(grounds.load().kubeconfig)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    text = (done.stdout + done.stderr).replace("\\n", "\n")
    sys.stdout.write(f"helm uninstall: exit {done.returncode}\n{text}")
    return done.returncode, text


def converted(field: playground.Playground) -> str:
    """A pod as for a device plugin, for which the webhook makes a template."""
    pod = a_pod("converted")
    del pod["spec"]["resourceClaims"]
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    field.create(pod)
    return "converted"


def held(field: playground.Playground, node: str, *, controller_ends: bool = False) -> str:
    """A claim that is allocated on a node whose pod kube-scheduler does not bind; its name.

    The controller frees it once kube-scheduler refuses the pod, unless it ends before.
    """
    field.cluster.stop(SCHEDULER)
    field.create(playground.a_claim("held"))
    field.create(a_pod("waiting", claims=("held",), nodeSelector=playground.on(node)))
    playground.until(lambda: holds(field) == ["held"], 30, "the claim is allocated and held")
    field.cluster.kubectl("cordon", node)
    if controller_ends:
        namespace = ("-n", helm.NAMESPACE)
        field.cluster.kubectl("scale", "deployment/ration-controller", "--replicas=0", *namespace)
        label = "app.kubernetes.io/component=controller"
        wait = ("wait", "--for=delete", "pods", "-l", label, "--timeout=60s")
        field.cluster.kubectl(*wait, *namespace)
    field.cluster.start(SCHEDULER)
    return "held"


def holds(field: playground.Playground) -> list[str]:
    """Claims of any namespace that carry a hold."""
    result = map(claims.parse, field.kube.list(gvr.RESOURCE_CLAIMS).items)
    return [claim.name for claim in result if any(user.is_hold for user in claim.consumers)]
