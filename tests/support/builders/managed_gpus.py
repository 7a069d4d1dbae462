"""GPUs of other drivers as these published them on a node, and the rule that has them managed."""

import json
from pathlib import Path
from typing import Any

from driver import names

Raw = dict[str, Any]
NVIDIA, AMD, INTEL = "gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"
DATA = Path(__file__).parents[2] / "data" / "slices"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-a"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
    },
}


def rule(driver: str) -> Raw:
    """Return the rule that makes the controller the allocator of a driver's devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"ration-driver-{driver}", "labels": {names.ALLOCATOR_RULE: "true"}},
        "spec": {
            "deviceSelector": {"driver": driver},
            "taint": {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"},
        },
    }


RULE = rule(NVIDIA)


def published(name: str) -> list[Raw]:
    """Return the slices of a pool of NVIDIA's: whole, dynamic-mig, static-mig."""
    return recorded(f"nvidia-{name}")


def recorded(name: str) -> list[Raw]:
    """Return the slices of a recorded pool by the name of its file."""
    items: list[Raw] = json.loads((DATA / f"{name}.json").read_text())["items"]
    return items


def holding(name: str, device: str, driver: str = NVIDIA) -> Raw:
    """Return a claim that holds a device of the recorded node."""
    result = {"request": "gpu", "driver": driver, "pool": "node-a", "device": device}
    request = {"name": "gpu", "exactly": {"deviceClassName": driver}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
