"""API objects for tests: minimal, real-shaped, keyword overrides: raw JSON as a server sends it."""

import uuid
from typing import Any

from driver import names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices

Raw = dict[str, Any]
GPU_SELECTOR = (
    'device.driver == "gpu.ration.dev" && device.attributes["gpu.ration.dev"].type == "gpu"'
)
ALLOCATOR_TAINT = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}


def uid_of(name: str) -> str:
    """A UID that depends on the name alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def meta(name: str, namespace: str | None = "default", **more: Any) -> Raw:
    result: Raw = {"name": name, "uid": uid_of(name), "resourceVersion": "1", **more}
    return result if namespace is None else {**result, "namespace": namespace}


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


def a_value(value: Any) -> Raw:
    """An attribute's value in the field of its type; a list in that of its elements'."""
    if isinstance(value, list):
        ((kind, _),) = a_value(value[0]).items()
        return {f"{kind}s": value}
    kinds = {bool: "bool", int: "int", str: "string"}
    return {kinds[type(value)]: value}


def with_values(device: Raw, **values: Any) -> Raw:
    """A device with more attributes."""
    shown = {name: a_value(value) for name, value in values.items()}
    return {**device, "attributes": {**device["attributes"], **shown}}


def drawing(name: str, counter_set: str, **counters: str) -> Raw:
    """A device that draws on a counter set."""
    used = {key: {"value": amount} for key, amount in counters.items()}
    return a_device(name, consumesCounters=[{"counterSet": counter_set, "counters": used}])


def a_share_device(name: str, sharing: str = names.SHARING_TIME_SLICING, **more: Any) -> Raw:
    """A GPU that several claims may have: 80Gi in steps of 1Gi, a tenth of it by default."""
    policy = {"default": "8Gi", "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"}}
    memory = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    device = a_device(name, allowMultipleAllocations=True, capacity=memory, **more)
    return with_values(device, type=names.TYPE_SHARE, sharing=sharing)


def a_slice(
    node: str = "node-a", devices: int | list[Raw] = 8, driver: str = names.DRIVER, **pool: Any
) -> Raw:
    results = (
        devices if isinstance(devices, list) else [a_device(f"gpu-{i}") for i in range(devices)]
    )
    return {
        "metadata": meta(f"{node}-{driver}-{pool.pop('part', 0):05d}", None),
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1, **pool},
            "devices": results,
        },
    }


def counting(
    sets: dict[str, dict[str, str]], devices: list[Raw], node: str = "node-a"
) -> list[Raw]:
    """A node's pool with counter sets: the slice of the sets, and that of the devices."""
    shared = a_slice(node, [], resourceSliceCount=2)
    shared["spec"]["sharedCounters"] = [
        {"name": name, "counters": {key: {"value": amount} for key, amount in set_.items()}}
        for name, set_ in sets.items()
    ]
    return [shared, a_slice(node, devices, resourceSliceCount=2, part=1)]


def a_far_slice(devices: int | list[Raw], pool: str = "fabric", **reach: Any) -> Raw:
    """A slice of devices that are not local to one node; `reach` says where they are used."""
    result = a_slice(pool, devices)
    del result["spec"]["nodeName"]
    result["spec"] |= reach or {"allNodes": True}
    return result


def a_class(name: str = names.CLASS_GPU, expression: str = GPU_SELECTOR, **spec: Any) -> Raw:
    selectors = [{"cel": {"expression": expression}}]
    return {"metadata": meta(name, None), "spec": {"selectors": selectors, **spec}}


def a_request(name: str = "gpu", count: int = 1, *selectors: str, **more: Any) -> Raw:
    exactly = {"deviceClassName": names.CLASS_GPU, "count": count, **more}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return {"name": name, "exactly": exactly}


def a_way(name: str, count: int = 1, *selectors: str, **more: Any) -> Raw:
    """An alternative of `first_available`."""
    return {"name": name, **a_request(name, count, *selectors, **more)["exactly"]}


def first_available(name: str, *ways: Raw) -> Raw:
    return {"name": name, "firstAvailable": list(ways)}


def matching(attribute: str, *requests: str) -> Raw:
    return {"matchAttribute": attribute, "requests": list(requests)}


def differing(attribute: str, *requests: str) -> Raw:
    return {"distinctAttribute": attribute, "requests": list(requests)}


def a_config(kind: str = "GpuConfig", *requests: str, **fields: Any) -> Raw:
    """An entry of configuration for our driver."""
    parameters = {"apiVersion": names.CONFIG_VERSION, "kind": kind, **fields}
    entry: Raw = {"opaque": {"driver": names.DRIVER, "parameters": parameters}}
    return {**entry, "requests": list(requests)} if requests else entry


def a_claim(
    name: str = "claim",
    *requests: Raw,
    config: Any = None,
    status: Any = None,
    constraints: Any = None,
    namespace: str = "default",
) -> Raw:
    devices: Raw = {"requests": list(requests) or [a_request()]}
    if config is not None:
        devices["config"] = config
    if constraints is not None:
        devices["constraints"] = constraints
    return {
        "metadata": meta(name, namespace),
        "spec": {"devices": devices},
        "status": status or {},
    }


def a_share(device: str, number: int = 1, **amounts: str) -> Raw:
    """Return what a result says of a share of a device."""
    identity = f"5c7d1f6e-0000-4000-8000-{number:012}"
    return {"device": device, "shareID": identity, "consumedCapacity": amounts}


def allocated(node: str = "node-a", *devices: str | Raw, reserved: Any = (), **more: Any) -> Raw:
    """A claim's status with an allocation; a device may be what its result says of it."""
    results = [
        {
            "request": "gpu",
            "driver": names.DRIVER,
            "pool": node,
            **({"device": device} if isinstance(device, str) else device),
        }
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
    texts = claim_names or ("claim",)
    return {
        "metadata": meta(name, creationTimestamp="2026-11-21T09:00:00Z"),
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "resourceClaims": [{"name": text, "resourceClaimName": text} for text in texts],
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


def scheduled_by(manager: str, written: str) -> Raw:
    """An entry of managedFields: the manager that wrote PodScheduled, and when."""
    condition: Raw = {".": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {}}
    return {
        "manager": manager,
        "operation": "Update",
        "subresource": "status",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"PodScheduled"}': condition}}},
        **({"time": written} if written else {}),
    }


def node(name: str = "node-a", **spec: Any) -> nodes.Node:
    return nodes.parse(a_node(name, **spec))


def pod(name: str = "pod", *claim_names: str, status: Any = None, **spec: Any) -> pods.Pod:
    return pods.parse(a_pod(name, *claim_names, status=status, **spec))


def claim(name: str = "claim", *requests: Raw, **more: Any) -> claims.Claim:
    return claims.parse(a_claim(name, *requests, **more))


def extended_resource_claim(pod: str = "web", status: Any = None) -> claims.Claim:
    """A claim that kube-scheduler made for a pod's extended resources (1.36, 1.37)."""
    exactly = {"deviceClassName": names.CLASS_GPU, "allocationMode": "ExactCount", "count": 1}
    request = {"name": "container-0-request-0", "exactly": exactly}
    raw = a_claim(f"{pod}-extended-resources-x7k2p", request, status=status)
    raw["metadata"]["annotations"] = {names.EXTENDED_RESOURCE_CLAIM: "true"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid_of(pod), "controller": True}
    raw["metadata"]["ownerReferences"] = [owner]
    return claims.parse(raw)


def device_class(
    name: str = names.CLASS_GPU, expression: str = GPU_SELECTOR, **spec: Any
) -> device_classes.DeviceClass:
    return device_classes.parse(a_class(name, expression, **spec))


def a_parsed_slice(node_name: str = "node-a", devices: int | list[Raw] = 8) -> slices.Slice:
    return slices.parse(a_slice(node_name, devices))


def on_host(node: str) -> Raw:
    """A v1.NodeSelector of a node by its label."""
    entry = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchExpressions": [entry]}]}
