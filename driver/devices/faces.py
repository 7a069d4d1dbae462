"""The faces a GPU is published as (D1). Today: the whole GPU.

A face becomes one device of a ResourceSlice (`resources.slices`). The union grows by one class.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from driver import ids, names
from driver.devices import model

FULL_COMPUTE_PERCENT = 100
_STRING_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Version:
    """A `version` attribute: strict semantic versioning 2.0.0, at most 64 bytes."""

    text: str

    def __str__(self) -> str:
        return self.text


AttributeValue = bool | int | str | Version


@dataclass(frozen=True, slots=True)
class WholeFace:
    """The GPU as one device, for one claim at a time."""

    gpu: model.Gpu

    @property
    def name(self) -> ids.DeviceName:
        """`gpu-0000-18-00-0`, from the PCI address: minors and indices move, it does not."""
        return device_name(self.gpu.pci)

    @property
    def memory_bytes(self) -> int | None:
        """The whole memory; None where the GPU shares the host's."""
        return self.gpu.memory_bytes

    @property
    def compute_percent(self) -> int:
        """All of the GPU."""
        return FULL_COMPUTE_PERCENT


Face = WholeFace


def device_name(pci: ids.PciAddress) -> ids.DeviceName:
    """The name of the whole face of the GPU at a PCI address."""
    return ids.DeviceName("gpu-" + re.sub(r"[:.]", "-", pci))


def of_inventory(inventory: model.Inventory) -> tuple[Face, ...]:
    """The faces of a node: GPUs in PCI order."""
    return tuple(WholeFace(gpu) for gpu in model.in_pci_order(inventory.gpus))


def attributes(
    face: Face, inventory: model.Inventory, allocator: str
) -> Mapping[str, AttributeValue]:
    """The attributes of a face. `allocator` is `controller` or `scheduler` (D2).

    What is not known is left out: Kubernetes knows no empty attribute.
    """
    gpu = face.gpu
    major, minor = gpu.cuda_capability
    cuda_major, cuda_minor = gpu.cuda_driver_version
    found: dict[str, AttributeValue | None] = {
        names.ATTR_TYPE: names.TYPE_GPU,
        names.ATTR_UUID: gpu.uuid,
        names.ATTR_PRODUCT: gpu.product[:_STRING_LIMIT],
        names.ATTR_BRAND: gpu.brand,
        names.ATTR_ARCHITECTURE: gpu.architecture,
        names.ATTR_CUDA_CAPABILITY: Version(f"{major}.{minor}.0"),
        names.ATTR_DRIVER_VERSION: semver(gpu.driver_version),
        names.ATTR_CUDA_DRIVER_VERSION: Version(f"{cuda_major}.{cuda_minor}.0"),
        names.ATTR_ALLOCATOR: allocator,
        names.ATTR_NVLINK_PEERS: _peers(gpu, inventory),
        names.ATTR_PCI_BUS_ID: gpu.pci,
        names.ATTR_PCIE_ROOT: gpu.pcie_root,
        names.ATTR_NUMA_NODE: gpu.numa_node,
    }
    return {key: value for key, value in found.items() if value is not None}


def _peers(gpu: model.Gpu, inventory: model.Inventory) -> int:
    ordered = model.in_pci_order(inventory.gpus)
    return sum(1 << i for i, other in enumerate(ordered) if other.pci in gpu.nvlink_peers)


def semver(driver_version: str) -> Version | None:
    """`580.05.1` is no semver (leading zeros): its numbers are written plainly, three of them."""
    parts = re.findall(r"\d+", driver_version)[:3]
    if not parts:
        return None
    return Version(".".join(str(int(part)) for part in [*parts, "0", "0"][:3]))
