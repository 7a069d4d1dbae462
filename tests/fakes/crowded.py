"""The largest claim that the API lets through, on devices that need no act of the hardware."""

import json
from pathlib import Path
from typing import Any

from driver import names
from driver.devices import faces, mig
from driver.kubeletplugin import ports
from driver.resources.dra import claims
from tests.fakes import gpunode, partitioning
from tests.support.builders import allocated_claims

RESULTS = DOCUMENTS = 32
DOCUMENT_BYTES = 10 * 1024
"""What the API server takes in one opaque configuration."""
PARTS = 7
"""MIG devices of the smallest profile on an H100."""


class Reader(gpunode.FakeReader):
    """Parses the claim anew each time, as what comes from the API server is."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._body = body

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        self.reads += 1
        parsed = claims.parse(json.loads(self._body))
        assert parsed.uid == ref.uid
        return parsed


def node(base: Path) -> gpunode.GpuNode:
    """A node with MIG devices that somebody made by hand, 32 at least, and the claim for them."""
    gpu_node = gpunode.GpuNode(base)
    hands = partitioning.FakePartitions(gpu_node.nvml.library, gpu_node.follow)
    devices: list[str] = []
    for gpu in gpu_node.nvml.inventory().gpus[: RESULTS // PARTS + 1]:
        hands.enable(gpu.uuid)
        for start in range(PARTS):
            hands.create(mig.InstanceRef(gpu.uuid, 19, mig.Placement(start, 1)))
            devices.append(f"{faces.device_name(gpu.pci)}-mig-1g10gb-{start}")
    gpu_node.reader = Reader(json.dumps(claim(devices[:RESULTS])).encode())
    return gpu_node


def claim(devices: list[str]) -> dict[str, Any]:
    """Return a claim as the API server has it: every document is for all requests."""
    results = [
        {
            "request": f"r{index}",
            "driver": names.DRIVER,
            "pool": allocated_claims.NODE,
            "device": device,
        }
        for index, device in enumerate(devices)
    ]
    config = [
        {"source": "FromClaim", "opaque": {"driver": names.DRIVER, "parameters": document(index)}}
        for index in range(DOCUMENTS)
    ]
    ref = allocated_claims.a_ref()
    return {
        "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid},
        "spec": {"devices": {}},
        "status": {"allocation": {"devices": {"results": results, "config": config}}},
    }


def document(number: int) -> dict[str, Any]:
    """One of that size: memory limits of as many devices as there is room for."""
    limits: dict[str, str] = {}
    mps = {"pinnedMemory": f"{number + 1}Gi", "pinnedMemoryPerDevice": limits}
    body = {
        "apiVersion": names.CONFIG_VERSION,
        "kind": "GpuConfig",
        "sharing": {"strategy": "MPS", "mps": mps},
    }
    entry = len(json.dumps({_uuid(0): "10Gi"}))
    for index in range((DOCUMENT_BYTES - len(json.dumps(body))) // entry):
        limits[_uuid(index)] = "10Gi"
    assert DOCUMENT_BYTES - 2 * entry < len(json.dumps(body)) <= DOCUMENT_BYTES
    return body


def _uuid(number: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{number:012d}"
