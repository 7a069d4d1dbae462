"""GPUs of NVIDIA's driver as it published them on a node, and the rule that has them managed."""

import json
from pathlib import Path
from typing import Any

from driver import names

Raw = dict[str, Any]
NVIDIA = "gpu.nvidia.com"
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
RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": f"ration-driver-{NVIDIA}", "labels": {names.ALLOCATOR_RULE: "true"}},
    "spec": {
        "deviceSelector": {"driver": NVIDIA},
        "taint": {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"},
    },
}


def published(name: str) -> list[Raw]:
    """Return the slices of a recorded pool: whole, dynamic-mig, static-mig."""
    items: list[Raw] = json.loads((DATA / f"nvidia-{name}.json").read_text())["items"]
    return items


def holding(name: str, device: str) -> Raw:
    """Return a claim that holds a device of the recorded node."""
    result = {"request": "gpu", "driver": NVIDIA, "pool": "node-a", "device": device}
    request = {"name": "gpu", "exactly": {"deviceClassName": NVIDIA}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
