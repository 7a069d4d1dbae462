"""Claims for devices of other drivers: beside our GPUs, or joined with them in one claim."""

from typing import Any

from driver import names
from tests.support.builders import objects

Raw = dict[str, Any]
GPUS, NICS = "gpus", "nics"
NIC_CLASS = "nic.example.com"
PCIE_ROOT, NUMA_NODE = names.ATTR_PCIE_ROOT, names.ATTR_NUMA_NODE


def devices(gpus: int = 1, nics: int = 1, match: str = "", nic_class: str = NIC_CLASS) -> Raw:
    """Return `spec.devices` for whole GPUs and NICs, as the requests `gpus` and `nics`.

    All have the same value of the attribute `match`, if one is given.
    """
    requests = [
        objects.a_request(GPUS, gpus),
        objects.a_request(NICS, nics, deviceClassName=nic_class),
    ]
    return {"requests": requests, "constraints": [objects.matching(match)] if match else []}


def pairs(count: int, match: str = PCIE_ROOT, nic_class: str = NIC_CLASS) -> Raw:
    """Return `spec.devices` for pairs of a GPU and a NIC that have `match` in common."""
    requests, constraints = [], []
    for number in range(count):
        gpu, nic = f"gpu-{number}", f"nic-{number}"
        requests += [objects.a_request(gpu), objects.a_request(nic, deviceClassName=nic_class)]
        constraints.append(objects.matching(match, gpu, nic))
    return {"requests": requests, "constraints": constraints}


def only(device_class: str, count: int = 1, *selectors: str) -> Raw:
    """Return `spec.devices` for devices of one class, as the request `devices`."""
    request = objects.a_request("devices", count, *selectors, deviceClassName=device_class)
    return {"requests": [request]}


def a_claim(name: str, spec_devices: Raw) -> Raw:
    """Return a ResourceClaim that can be created."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": spec_devices},
    }


def a_template(name: str, spec_devices: Raw) -> Raw:
    """Return a ResourceClaimTemplate of such claims."""
    claim = a_claim(name, spec_devices)
    return {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}
