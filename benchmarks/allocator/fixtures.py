"""The clusters that are measured, as raw API objects: nodes alike but for names and serials.

A node's slices are one text, in which `@NODE@` stands for its name and `@SERIAL@` for its number;
both sides fill it in for themselves.
"""

import json
import re
import uuid
from typing import Any

from driver import names
from driver.resources.publish import slice_builder
from hack.chart import helm
from tests.fakes import simulated_pool

Raw = dict[str, Any]
NODE, SERIAL = "@NODE@", "@SERIAL@"
NAMESPACE = "bench"
GPU_CLASS, MIG_CLASS = names.DRIVER, "gpu-mig.ration.dev"
NIC_DRIVER = "nic.example.com"
_PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
_GPUS = 8
_GPUS_A_NUMA_NODE = 4


def classes() -> list[Raw]:
    """The device classes that we deploy, and that of the NICs."""
    selector = {"cel": {"expression": f'device.driver == "{NIC_DRIVER}"'}}
    nics = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": NIC_DRIVER, "uid": "nic-class"},
        "spec": {"selectors": [selector]},
    }
    deployed = [*helm.usual("DeviceClass"), nics]
    for device_class in deployed:
        device_class["metadata"]["resourceVersion"] = "1"
    return deployed


def whole(allocator: str) -> str:
    """Eight GPUs that are given out whole, as NVIDIA's driver describes them: 12 attributes each.

    `allocator` "controller" taints them, so that kube-scheduler leaves them alone (D2).
    """
    return json.dumps([_pool(names.DRIVER, allocator, [_gpu(number) for number in range(_GPUS)])])


def whole_beside_nics(allocator: str) -> str:
    """The same GPUs, and a NIC of another driver on the PCIe root of each."""
    nics = [
        {
            "name": f"nic-{number}",
            "attributes": {
                "type": {"string": "nic"},
                _PCIE_ROOT: {"string": f"pci0000:{16 * number:02x}"},
            },
        }
        for number in range(_GPUS)
    ]
    return json.dumps([*json.loads(whole(allocator)), _pool(NIC_DRIVER, allocator, nics)])


def _pool(driver: str, allocator: str, devices: list[Raw]) -> Raw:
    """A node's only slice of a driver."""
    taint = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}
    taints = {"taints": [taint]} if allocator == "controller" else {}
    spec: Raw = {
        "driver": driver,
        "nodeName": NODE,
        "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
        "devices": [{**device, **taints} for device in devices],
    }
    return _slice_object(slice_builder.slice_name(driver, NODE, 0), spec)


def _gpu(number: int) -> Raw:
    texts = {
        "type": "gpu",
        "uuid": f"GPU-{SERIAL}-6ac1-4f0e-9d0b-00000000000{number}",
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "Nvidia",
        "architecture": "Hopper",
        "addressingMode": "HMM",
        "resource.kubernetes.io/pciBusID": f"0000:{16 * number + 8:02x}:00.0",
        _PCIE_ROOT: f"pci0000:{16 * number:02x}",
    }
    versions = {
        "cudaComputeCapability": "9.0.0",
        "driverVersion": "580.105.8",
        "cudaDriverVersion": "13.0.0",
    }
    attributes: Raw = {
        **{key: {"string": value} for key, value in texts.items()},
        **{key: {"version": value} for key, value in versions.items()},
        "resource.kubernetes.io/numaNode": {"int": number // _GPUS_A_NUMA_NODE},
    }
    capacity = {"memory": {"value": "81559Mi"}}
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity}


def every_face(allocator: str, product: str = "hgx-h100") -> str:
    """A simulated machine as our plugin publishes it: whole GPUs, MIG placements, shares (D1)."""
    pool = simulated_pool.of_machine(NODE, allocator, product)
    found = slice_builder.render(
        pool, slice_builder.Owner(simulated_pool.node_name(NODE), "uid"), 1
    )
    raw: list[Raw] = json.loads(json.dumps(found))
    text = json.dumps([_slice_object(one["metadata"]["name"], one["spec"]) for one in raw])
    return re.sub(r"GPU-[0-9a-f]{8}", f"GPU-{SERIAL}", text)


def _slice_object(name: str, spec: Raw) -> Raw:
    meta = {"name": name, "uid": f"slice-{name}", "resourceVersion": "1"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": meta,
        "spec": spec,
    }


def filled(template: str, number: int) -> str:
    """The slices of a node."""
    return template.replace(NODE, node_name(number)).replace(SERIAL, f"{number:08x}")


def node_name(number: int) -> str:
    """`node-00017`."""
    return f"node-{number:05d}"


def node(number: int) -> Raw:
    """A ready Node with room for pods."""
    meta = {
        "name": node_name(number),
        "uid": f"node-{number}",
        "resourceVersion": "1",
        "labels": {"kubernetes.io/hostname": node_name(number)},
    }
    room = {"cpu": "192", "memory": "2Ti", "pods": "250"}
    ready = {"type": "Ready", "status": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": {},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def claim(name: str, devices: Raw) -> Raw:
    """A ResourceClaim as it is created."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
        },
        "spec": {"devices": devices},
    }


def pod(name: str, claim_name: str) -> Raw:
    """A pending pod with one claim."""
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, name)),
            "resourceVersion": "1",
        },
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}],
        },
        "status": {"phase": "Pending"},
    }


def gpus(count: int = 1, *, aligned: bool = False) -> Raw:
    """What a claim asks: whole GPUs, on request of one NUMA node."""
    exact = {"deviceClassName": GPU_CLASS, "allocationMode": "ExactCount", "count": count}
    request = {"name": "gpu", "exactly": exact}
    same = {"requests": ["gpu"], "matchAttribute": "resource.kubernetes.io/numaNode"}
    return {"requests": [request], **({"constraints": [same]} if aligned else {})}


def pair() -> Raw:
    """What a claim asks: a GPU and a NIC of one PCIe root."""
    exact = {"allocationMode": "ExactCount", "count": 1}
    requests = [
        {"name": name, "exactly": {**exact, "deviceClassName": device_class}}
        for name, device_class in (("gpu", GPU_CLASS), ("nic", NIC_DRIVER))
    ]
    same = {"requests": ["gpu", "nic"], "matchAttribute": _PCIE_ROOT}
    return {"requests": requests, "constraints": [same]}


def instance(profile: str) -> Raw:
    """What a claim asks: a MIG instance."""
    wanted = f'device.attributes["{names.DRIVER}"].profile == "{profile}"'
    exact = {
        "deviceClassName": MIG_CLASS,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": wanted}}],
    }
    return {"requests": [{"name": "gpu", "exactly": exact}]}


def allocated(raw: Raw, device: tuple[str, str, str], node: str) -> Raw:
    """The claim with one device given to it."""
    result = {"request": "gpu", "driver": device[0], "pool": device[1], "device": device[2]}
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }
    used = {
        "resource": "pods",
        "name": raw["metadata"]["name"],
        "uid": f"pod-{raw['metadata']['uid']}",
    }
    return {**raw, "status": {"allocation": allocation, "reservedFor": [used]}}


def renamed(asks: Raw, name: str) -> Raw:
    """The same, under another name of its only request."""
    found: Raw = json.loads(json.dumps(asks).replace('"gpu"', f'"{name}"'))
    return found
