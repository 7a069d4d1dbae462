"""Other DRA drivers beside ours: the NIC driver on nodes, workloads, what containers see."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from driver import names
from driver.kube import client, gvr
from hack.cluster import api, errors
from tests.e2e import playground
from tests.fakes.nic_driver import driver as nic_driver
from tests.fakes.nic_driver import pools

Raw = dict[str, Any]
SHOW = "nvidia-smi -L; env; echo shown; exec sleep 3600"
"""A container's command that shows its GPUs and its variables."""


@contextlib.contextmanager
def nics_on(
    cluster: api.Cluster, kube: client.KubeClient, nodes: Sequence[str]
) -> Iterator[nic_driver.NicDriver]:
    """Run the NIC driver on nodes, with a NIC beside each PCIe root of their GPUs."""
    with nic_driver.NicDriver(kube) as running:
        for node in nodes:
            serve(running, cluster, kube, node)
        yield running


def serve(
    running: nic_driver.NicDriver, cluster: api.Cluster, kube: client.KubeClient, node: str
) -> None:
    """Have the NIC driver serve a node too, with a NIC beside each PCIe root of its GPUs."""
    running.serve(node, cluster.node_dir(node))
    running.publish(pools.Pool(node, pools.beside(published(kube, names.DRIVER, node))))
    running.wait_registered(node)


def published(kube: client.KubeClient, driver: str, node: str = "") -> list[Raw]:
    """Return a driver's ResourceSlices, of a node or all of them."""
    selector = f"spec.driver={driver}" + (f",spec.nodeName={node}" if node else "")
    return kube.list(gvr.RESOURCE_SLICES, field_selector=selector).items


def attribute(kube: client.KubeClient, result: Raw, name: str) -> Any:
    """Return the published value of an attribute of a result's device, None without one."""
    for entry in published(kube, result["driver"]):
        for device in entry["spec"].get("devices", ()):
            if (entry["spec"]["pool"]["name"], device["name"]) == (
                result["pool"],
                result["device"],
            ):
                return next(iter(device["attributes"].get(name, {}).values()), None)
    return None


def results(claim: Raw, driver: str = "") -> list[Raw]:
    """Return the allocated devices of a claim, of one driver or all."""
    allocation = claim.get("status", {}).get("allocation") or {}
    every = allocation.get("devices", {}).get("results", ())
    return [result for result in every if driver in {"", result["driver"]}]


def writers(claim: Raw) -> set[str]:
    """Return the field managers of a claim."""
    return {str(entry["manager"]) for entry in claim["metadata"]["managedFields"]}


def allocate(field: playground.Playground, claim: str, allocation: Raw) -> None:
    """Write an allocation past every allocator; kube-scheduler goes by what it finds allocated."""
    protected = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    body = {"status": {"allocation": allocation}}
    field.kube.patch(gvr.RESOURCE_CLAIMS, claim, protected, namespace=field.namespace)
    field.kube.patch(
        gvr.RESOURCE_CLAIMS, claim, body, namespace=field.namespace, subresource="status"
    )


def variables(field: playground.Playground, pod: str, prefix: str) -> dict[str, str]:
    """Wait until a pod's container has run SHOW; return the variables whose names begin so."""

    def lines() -> list[str]:
        with contextlib.suppress(errors.ClusterError):  # it has not started
            shown = field.cluster.kubectl("logs", "-n", field.namespace, pod).splitlines()
            return shown if "shown" in shown else []
        return []

    pairs = (line.partition("=") for line in playground.until(lines, 60, f"{pod} shows itself"))
    return {name: value for name, _, value in pairs if name.startswith(prefix)}


def a_pod(name: str, *claims: str, template: str = "", node: str = "") -> Raw:
    """Return a pod that shows what it sees; on a node, if one is given."""
    more = {"nodeSelector": playground.on(node)} if node else {}
    return playground.a_pod(name, claims=claims, template=template, command=SHOW, **more)


def a_workload(kind: str, name: str, template: str, replicas: int) -> Raw:
    """Return a Deployment, a StatefulSet or a Job whose pods have a claim of a template each."""
    pod = a_pod("unused", template=template)["spec"]
    labels = {"app": name}
    metadata = {"metadata": {"labels": labels}}
    if kind == "Job":
        sized = {"parallelism": replicas, "completions": replicas}
        body = {**sized, "template": {**metadata, "spec": {**pod, "restartPolicy": "Never"}}}
    else:
        selector = {"matchLabels": labels}
        body = {"replicas": replicas, "selector": selector, "template": {**metadata, "spec": pod}}
    if kind == "StatefulSet":
        body |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": body}
