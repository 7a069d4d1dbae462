"""API objects for tests: minimal, real-shaped, keyword overrides: raw JSON as a server sends it."""

import uuid
from typing import Any

from driver import names
from driver.resources import claims, classes, nodes, pods, slices

Raw = dict[str, Any]
GPU_SELECTOR = (
    'device.driver == "gpu.ration.dev" && device.attributes["gpu.ration.dev"].type == "gpu"'
)
ALLOCATOR_TAINT = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}


def uid_of(name: str) -> str:
    """A UID that depends on the name alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def meta(name: str, namespace: str | None = "default", **more: Any) -> Raw:
    found: Raw = {"name": name, "uid": uid_of(name), "resourceVersion": "1", **more}
    return found if namespace is None else {**found, "namespace": namespace}


def a_node(name: str = "node-a", **spec: Any) -> Raw:
    return {
        "metadata": meta(name, None, labels={"kubernetes.io/hostname": name}),
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_device(name: str, **more: Any) -> Raw:
    return {
        "name": name,
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": f"GPU-{name}"}},
        "capacity": {"memory": {"value": "80Gi"}, "compute": {"value": "100"}},
        "taints": [ALLOCATOR_TAINT],
        **more,
    }


def a_slice(
    node: str = "node-a", devices: int | list[Raw] = 8, driver: str = names.DRIVER, **pool: Any
) -> Raw:
    found = devices if isinstance(devices, list) else [a_device(f"gpu-{i}") for i in range(devices)]
    return {
        "metadata": meta(f"{node}-{driver}-{pool.pop('part', 0):05d}", None),
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1, **pool},
            "devices": found,
        },
    }


def a_class(name: str = names.CLASS_GPU, expression: str = GPU_SELECTOR, **spec: Any) -> Raw:
    selectors = [{"cel": {"expression": expression}}]
    return {"metadata": meta(name, None), "spec": {"selectors": selectors, **spec}}


def a_request(name: str = "gpu", count: int = 1, *selectors: str, **more: Any) -> Raw:
    exactly = {"deviceClassName": names.CLASS_GPU, "count": count, **more}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return {"name": name, "exactly": exactly}


def a_claim(name: str = "claim", *requests: Raw, config: Any = None, status: Any = None) -> Raw:
    devices: Raw = {"requests": list(requests) or [a_request()]}
    if config is not None:
        devices["config"] = config
    return {"metadata": meta(name), "spec": {"devices": devices}, "status": status or {}}


def allocated(node: str = "node-a", *devices: str, reserved: Any = (), **more: Any) -> Raw:
    """A claim's status with an allocation."""
    results = [
        {"request": "gpu", "driver": names.DRIVER, "pool": node, "device": device}
        for device in devices
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [term]},
        **more,
    }
    return {"allocation": allocation, "reservedFor": list(reserved)}


def a_pod(name: str = "pod", *claim_names: str, status: Any = None, **spec: Any) -> Raw:
    found = claim_names or ("claim",)
    return {
        "metadata": meta(name, creationTimestamp="2026-11-21T09:00:00Z"),
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "resourceClaims": [{"name": one, "resourceClaimName": one} for one in found],
            **spec,
        },
        "status": {"phase": "Pending", **(status or {})},
    }


def refused(message: str = "0/1 nodes are available: 1 Insufficient cpu.") -> Raw:
    """A pod's status after the scheduler found no node."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    return {"conditions": [condition]}


def node(name: str = "node-a", **spec: Any) -> nodes.Node:
    return nodes.parse(a_node(name, **spec))


def pod(name: str = "pod", *claim_names: str, status: Any = None, **spec: Any) -> pods.Pod:
    return pods.parse(a_pod(name, *claim_names, status=status, **spec))


def claim(
    name: str = "claim", *requests: Raw, config: Any = None, status: Any = None
) -> claims.Claim:
    return claims.parse(a_claim(name, *requests, config=config, status=status))


def device_class(
    name: str = names.CLASS_GPU, expression: str = GPU_SELECTOR, **spec: Any
) -> classes.DeviceClass:
    return classes.parse(a_class(name, expression, **spec))


def a_parsed_slice(node_name: str = "node-a", devices: int | list[Raw] = 8) -> slices.Slice:
    return slices.parse(a_slice(node_name, devices))
