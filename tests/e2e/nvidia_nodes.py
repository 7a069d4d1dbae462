"""Nodes whose GPUs NVIDIA's own DRA driver serves, its demo manifests, and claims of its devices.

The driver is in no repository of ours: `RATION_NVIDIA_DRIVER` names the folder that holds it.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import names
from driver.kube import client, gvr
from hack.cluster import api, chart, nvidia_driver
from simulator import store as machines
from tests.e2e import managed_devices, other_drivers, playground, release

Raw = dict[str, Any]
DRIVER = nvidia_driver.DRIVER
WHOLE, DYNAMIC, STATIC = "node-0", "node-1", "nv-static"
"""Nodes of GPUs: given whole, cut on demand (both H100), cut beforehand (A100)."""
MANAGED = managed_devices.managed(DRIVER)
NO_PLUGIN = "--set=kubeletPlugin.enabled=false"
"""Our kubelet plugin and MPS supervisor run on no node."""
_PARTS = "19,19,14,9"
"""The profiles 1g.5gb, 1g.5gb, 2g.10gb, 3g.20gb of an A100, as mig-parted-config.yaml has them."""
PARTITIONED = 4
"""GPUs of the static node that are cut so; the others stay whole."""
LOCK_TIMEOUT = "error acquiring prep/unprep lock"
"""Part of what the driver says when its own lock of the node times out (its issues 374, 709)."""
_IMAGE = {"image": "ration.local/workload:latest", "imagePullPolicy": "Never"}


def folder() -> Path:
    """Return the folder of the driver; skip the test without one."""
    text = os.environ.get(nvidia_driver.FOLDER_VARIABLE, "")
    if not text:
        pytest.skip(f"{nvidia_driver.FOLDER_VARIABLE} names no folder with NVIDIA's DRA driver")
    return Path(text)


@contextlib.contextmanager
def served(cluster: api.Cluster, source: Path) -> Iterator[client.KubeClient]:
    """Have NVIDIA's driver serve three nodes, and our controller alone allocate meanwhile."""
    if STATIC not in cluster.nodes():
        cluster.add_node(STATIC, machine="dgx-a100")
    try:
        with controller_alone(cluster, source) as kube:
            for gpu in range(PARTITIONED):
                partition(cluster, STATIC, gpu)
            cluster.install_nvidia_driver(
                source, WHOLE, gates=("TimeSlicingSettings", nvidia_driver.MPS_GATE)
            )
            cluster.install_nvidia_driver(source, DYNAMIC, gates=("DynamicMIG",))
            cluster.install_nvidia_driver(source, STATIC)
            wait_managed(kube)
            yield kube
    finally:
        cluster.remove_node(STATIC)


@contextlib.contextmanager
def controller_alone(cluster: api.Cluster, source: Path) -> Iterator[client.KubeClient]:
    """Have our controller alone run meanwhile, for NVIDIA's driver; take that away in the end."""
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    chart.install(release.WHERE, MANAGED, NO_PLUGIN)
    playground.until(
        lambda: not other_drivers.published(kube, names.DRIVER), 120, "our slices are gone"
    )
    try:
        yield kube
    finally:
        chart.install(release.WHERE, MANAGED, managed_devices.NOWHERE, NO_PLUGIN)
        playground.until(lambda: rule_taint(kube) is None, 120, "the rule is gone")
        cluster.uninstall_nvidia_driver(source)
        release.install()


def wait_managed(kube: client.KubeClient) -> None:
    """Wait until the controller allocates the driver's devices."""
    allocator = names.ALLOCATOR_TAINT
    playground.until(lambda: rule_taint(kube) == allocator, 120, "the controller has the GPUs")


def partition(cluster: api.Cluster, node: str, gpu: int) -> None:
    """Cut a GPU of a node into fixed MIG devices, as its operator does."""
    smi(cluster, node, "-i", str(gpu), "-mig", "1")
    # Ampere applies the mode at a reset.
    clear = [sys.executable, "-m", "simulator", "clear", str(cluster.node_dir(node) / "gpu")]
    subprocess.run([*clear, "--gpu", str(gpu)], check=True, capture_output=True, timeout=60)
    smi(cluster, node, "mig", "-i", str(gpu), "-cgi", _PARTS, "-C")


def smi(cluster: api.Cluster, node: str, *words: str) -> str:
    """Return what the machine's nvidia-smi printed."""
    program = cluster.node_dir(node) / "gpu/driver-root/usr/bin/nvidia-smi"
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def machine(cluster: api.Cluster, node: str) -> Any:
    """Return a node's simulated machine as it is now."""
    return machines.load(cluster.node_dir(node) / "gpu")


def rule_taint(kube: client.KubeClient) -> str | None:
    return managed_devices.rule_taint(kube, DRIVER)


def request(kind: str = "gpu", count: int = 1, **attributes: str) -> Raw:
    """Return a request of the driver's class of a kind, for devices with these attributes."""
    terms = (
        f"device.attributes['{DRIVER}'].{key} == '{value}'" for key, value in attributes.items()
    )
    selectors = [{"cel": {"expression": term}} for term in terms]
    exactly = {"deviceClassName": f"{kind}.nvidia.com", "count": count, "selectors": selectors}
    return {"name": "gpu", "exactly": exactly}


def claim(name: str, gpu_request: Raw, *parameters: Raw) -> Raw:
    """Return a claim of one request, with the driver's own configuration."""
    config = [{"opaque": {"driver": DRIVER, "parameters": body}} for body in parameters]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    devices = {"requests": [gpu_request], "config": config}
    return {**kind, "metadata": {"name": name}, "spec": {"devices": devices}}


def template(name: str, gpu_request: Raw) -> Raw:
    """Return a template of claims of one request."""
    spec = {"spec": claim("unused", gpu_request)["spec"]}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def demo(source: Path, name: str) -> list[Raw]:
    """Return the objects of a quickstart manifest of the driver, with our image in their pods.

    Namespaces are left out, so that they can be applied in any.
    """
    text = (source / "demo/specs/quickstart" / name).read_text()
    objects = [entry for entry in yaml.safe_load_all(text) if entry["kind"] != "Namespace"]
    for entry in objects:
        del entry["metadata"]["namespace"]
        spec = entry["spec"]
        if entry["kind"] in {"Pod", "Deployment"}:
            pod = spec["template"]["spec"] if entry["kind"] == "Deployment" else spec
            pod["terminationGracePeriodSeconds"] = 1
            for container in pod["containers"]:
                container |= {**_IMAGE, "command": ["sh", "-c"]}
    return objects


def pods(objects: Sequence[Raw]) -> int:
    """Return the number of pods that objects make."""
    return sum(
        entry["spec"].get("replicas", 1)
        for entry in objects
        if entry["kind"] in {"Pod", "Deployment"}
    )


@contextlib.contextmanager
def applied(field: playground.Playground, objects: Sequence[Raw]) -> Iterator[None]:
    """Apply objects meanwhile; Deployments are gone at the end, with their pods."""
    documents = yaml.safe_dump_all(objects)
    field.cluster.kubectl("apply", "-n", field.namespace, "-f", "-", input=documents)
    try:
        yield
    finally:
        remove = ("delete", "deployments", "--all", "--cascade=foreground", "--timeout=90s")
        field.cluster.kubectl(*remove, "--namespace", field.namespace)


def phases(field: playground.Playground) -> list[str]:
    """Return the phases of the pods of a namespace."""
    items = field.kube.list(gvr.PODS, namespace=field.namespace).items
    return [str(item["status"].get("phase")) for item in items]


def first_pod(field: playground.Playground) -> str:
    """Return the name of a pod of a namespace; "" without one."""
    items = field.kube.list(gvr.PODS, namespace=field.namespace).items
    return str(items[0]["metadata"]["name"]) if items else ""


def held(field: playground.Playground) -> list[tuple[str, str]]:
    """Return the allocated devices of all claims of a namespace: pool and device."""
    return [
        (result["pool"], result["device"])
        for entry in field.claims()
        for result in other_drivers.results(entry)
    ]


def refused_prepares(field: playground.Playground) -> list[str]:
    """Return what kubelets said of claims that were not prepared."""
    items = field.kube.list(gvr.EVENTS, namespace=field.namespace).items
    failed = (item for item in items if item["reason"] == "FailedPrepareDynamicResources")
    return [str(item.get("note", "")) for item in failed]


def client_view(field: playground.Playground, pod: str, container: str) -> Any:
    """Return what a container's CUDA program, `simclient`, says of its device and limits."""

    def line() -> str:
        words = ("logs", "-n", field.namespace, pod, "-c", container)
        return field.cluster.kubectl(*words).partition("\n")[0]

    return json.loads(playground.until(line, 20, f"the program of {container} says what it sees"))


def mps_daemons(field: playground.Playground) -> list[str]:
    """Return the Deployments of the driver's MPS control daemons."""
    words = ("get", "deployments", "-n", nvidia_driver.NAMESPACE, "--output=name")
    return field.cluster.kubectl(*words).split()


def ration(field: playground.Playground, *words: str) -> Any:
    """Return what a command of `ration` prints as JSON; it may end with 1, for what waits."""
    done = run_ration(field, *words, "-o", "json", "--source", "cluster")
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout)


def run_ration(field: playground.Playground, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `ration` against the cluster."""
    command = [str(Path(sys.executable).with_name("ration")), *words]
    command += ["--kubeconfig", str(field.cluster.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
