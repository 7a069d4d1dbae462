"""A cluster as `ration doctor` sees it: healthy, until a test takes something away."""

import base64
import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

import trustme
import yaml

from driver import names
from driver.cli.doctor import checks
from driver.cli.doctor.checks import facts, findings
from driver.kube import gvr
from driver.scheduling.device_ownership import desired
from tests.support.builders import objects

NOW = dt.datetime(2026, 11, 22, 12, 0, tzinfo=dt.UTC)
NAMESPACE = "ration-system"
Object = dict[str, Any]


def a_device(name: str = "gpu-0", allocator: str = "controller", *taints: str) -> Object:
    """A face, as the plugin publishes it."""
    keys = [*([names.ALLOCATOR_TAINT] if allocator == "controller" else []), *taints]
    drawing = objects.drawing(name, "gpu-0", memory="80Gi")
    drawing["taints"] = [{"key": key, "effect": "NoSchedule"} for key in keys]
    return objects.with_values(drawing, allocator=allocator)


def a_node(
    name: str = "node-a",
    resources: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A node with containerd 2."""
    node = objects.a_node(name)
    node["metadata"]["labels"] |= labels or {}
    node["status"]["allocatable"] |= resources or {}
    node["status"]["nodeInfo"] = {"containerRuntimeVersion": "containerd://2.4.2"}
    return node


def a_class(driver: str = names.DRIVER) -> Object:
    """A DeviceClass of a driver."""
    expression = f'device.driver == "{driver}" && device.attributes["{driver}"].type == "gpu"'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"metadata": {"name": driver}, "spec": spec}


def a_lease(holder: str = "one", age_s: float = 3) -> Object:
    """The controller's Lease."""
    renewed = (NOW - dt.timedelta(seconds=age_s)).isoformat().replace("+00:00", "Z")
    meta = {"name": "ration-controller", "namespace": NAMESPACE}
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": meta, "spec": spec}


def a_pod(component: str, *, ready: bool = True, node: str = "node-a") -> Object:
    """A pod of the chart."""
    labels = {"app.kubernetes.io/component": component}
    meta = {"name": f"ration-{component}-1", "namespace": NAMESPACE, "labels": labels}
    conditions = [{"type": "Ready", "status": str(ready)}]
    spec = {"nodeName": node, "serviceAccountName": f"ration-{component}"}
    return {"metadata": meta, "spec": spec, "status": {"conditions": conditions}}


def a_daemon_set(name: str, pods: int = 2) -> Object:
    """A DaemonSet of the GPU operator's."""
    meta = {"name": name, "namespace": "gpu-operator"}
    return {"metadata": meta, "status": {"currentNumberScheduled": pods}}


def a_bundle(ends: dt.datetime | None = None) -> str:
    """A `caBundle` that ends at a time; without one, in far future."""
    if ends is None:
        return base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    begins = ends - dt.timedelta(days=9)
    cert = trustme.CA().issue_cert("a", not_before=begins, not_after=ends)
    return base64.b64encode(cert.cert_chain_pems[0].bytes()).decode()


def a_webhook(bundle: str, name: str = "pods.admission.ration.dev") -> Object:
    """A ValidatingWebhookConfiguration of one webhook."""
    entry = {"name": name, "clientConfig": {"caBundle": bundle}}
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "r"},
        "webhooks": [entry],
    }


def a_rule(driver: str, *, handover_s: float | None = None, pool: str = "") -> Object:
    """A rule of the controller; `handover_s`: seconds for which it has shown the handover."""
    key = names.ALLOCATOR_TAINT if handover_s is None else names.HANDOVER_TAINT
    value = {"value": "controller"} if handover_s is None else {}
    added = NOW - dt.timedelta(seconds=handover_s or 0)
    taint = {"key": key, "effect": "NoSchedule", "timeAdded": added.isoformat(), **value}
    selector = {"driver": driver, **({"pool": pool} if pool else {})}
    kind = "pool" if pool else "driver"
    meta = {"name": f"ration-{kind}-{driver}", "labels": {names.ALLOCATOR_RULE: "true"}}
    return {"metadata": meta, "spec": {"deviceSelector": selector, "taint": taint}}


def controller_only(driver: str, **other: Any) -> dict[str, Any]:
    """Facts of a cluster with a controller for another driver, and no plugin of ours."""
    return {
        "slices": (),
        "pods": (a_pod("controller"),),
        "classes": (a_class(driver),),
        "nodes": (a_node(labels={"nvidia.com/gpu.present": "true"}),),
        "managed": facts.ManagedDevices(
            (desired.ManagedDriver(driver),),
            (a_rule(driver),),
            (objects.a_slice("node-a", [objects.a_device("gpu-0")], driver),),
        ),
        **other,
    }


def managed_cluster(*drivers: str) -> Iterator[tuple[gvr.Resource, Object]]:
    """Objects of a cluster with a controller for other drivers; the last one has no rule yet."""
    yield gvr.NODES, a_node()
    yield gvr.PODS, a_pod("controller")
    document = {
        "apiVersion": names.CONFIG_VERSION,
        "kind": "ManagedDrivers",
        "drivers": [{"name": driver} for driver in drivers],
    }
    meta = objects.meta("ration-controller-managed-drivers", NAMESPACE)
    meta["labels"] = {facts.COMPONENT: "controller"}
    data = {"managed-drivers.yaml": yaml.safe_dump(document)}
    yield gvr.CONFIG_MAPS, {"metadata": meta, "data": data}
    for driver in drivers:
        device = objects.a_device("dev-0")
        yield gvr.RESOURCE_SLICES, objects.a_slice("node-a", [device], driver)
        yield gvr.DEVICE_CLASSES, a_class(driver)
    for driver in drivers[:-1]:
        yield gvr.DEVICE_TAINT_RULES, a_rule(driver)


def healthy(**other: Any) -> facts.Facts:
    """All as it should be, but for what a test says."""
    document: dict[str, Any] = {
        "driver": names.DRIVER,
        "namespace": NAMESPACE,
        "now": NOW,
        "version": "v1.37.1",
        "nodes": (a_node(),),
        "slices": (objects.a_slice("node-a", [a_device()]),),
        "classes": (a_class(),),
        "leases": (a_lease(),),
        "pods": tuple(map(a_pod, ("controller", "kubeletplugin", "mps"))),
        "daemon_sets": (),
        "webhooks": (),
        **other,
    }
    return facts.Facts(**document)


def found(check: str, **other: Any) -> findings.Finding:
    """The one finding of a check."""
    (finding,) = (item for item in checks.run(healthy(**other)) if item.check == check)
    return finding


def states(**other: Any) -> dict[str, str]:
    """Return how each check ends."""
    return {finding.check: finding.state.value for finding in checks.run(healthy(**other))}
