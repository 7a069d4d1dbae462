"""A single GPU, read from NVML and sysfs."""

import ctypes
import re
import uuid as uuids
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pynvml

from driver import ids
from driver.devices import mig, model
from driver.kubeletplugin.host import sysfs
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml.queries import mig_layout, nvlink

BRANDS = {
    pynvml.NVML_BRAND_UNKNOWN: "Unknown",
    pynvml.NVML_BRAND_QUADRO: "Quadro",
    pynvml.NVML_BRAND_TESLA: "Tesla",
    pynvml.NVML_BRAND_NVS: "NVS",
    pynvml.NVML_BRAND_GRID: "Grid",
    pynvml.NVML_BRAND_GEFORCE: "GeForce",
    pynvml.NVML_BRAND_TITAN: "Titan",
    pynvml.NVML_BRAND_NVIDIA_VAPPS: "NvidiaVApps",
    pynvml.NVML_BRAND_NVIDIA_VPC: "NvidiaVPC",
    pynvml.NVML_BRAND_NVIDIA_VCS: "NvidiaVCS",
    pynvml.NVML_BRAND_NVIDIA_VWS: "NvidiaVWS",
    pynvml.NVML_BRAND_NVIDIA_CLOUD_GAMING: "NvidiaCloudGaming",
    pynvml.NVML_BRAND_QUADRO_RTX: "QuadroRTX",
    pynvml.NVML_BRAND_NVIDIA_RTX: "NvidiaRTX",
    pynvml.NVML_BRAND_NVIDIA: "Nvidia",
    pynvml.NVML_BRAND_GEFORCE_RTX: "GeForceRTX",
    pynvml.NVML_BRAND_TITAN_RTX: "TitanRTX",
}
"""Names published by NVIDIA's driver (go-nvlib, device.GetBrandAsString)."""
ARCHITECTURES = {
    pynvml.NVML_DEVICE_ARCH_KEPLER: "Kepler",
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "Maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "Pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "Volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "Turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "Ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "Ada Lovelace",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "Hopper",
    pynvml.NVML_DEVICE_ARCH_BLACKWELL: "Blackwell",
    pynvml.NVML_DEVICE_ARCH_RUBIN: "Rubin",
}
"""Likewise (device.GetArchitectureAsString); Rubin follows its pattern."""
ADDRESSING = {
    pynvml.NVML_DEVICE_ADDRESSING_MODE_NONE: "None",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM: "HMM",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS: "ATS",
}
_UNKNOWN = "Unknown"
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

KnownMig = Callable[[ids.GpuUuid], mig.Mig | None]
"""Returns the MIG of a GPU as read earlier from the same driver; None if it was not."""


def _no_mig(_gpu: ids.GpuUuid) -> None:
    """Return None: nothing was read earlier."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The driver's version, and the newest CUDA version it supports."""

    driver: str
    cuda: tuple[int, int]


def read_versions() -> Versions:
    """Return the versions of the loaded driver. Raises DeviceFault."""
    driver = str(nvml_errors.call_nvml("", pynvml.nvmlSystemGetDriverVersion))
    cuda = int(nvml_errors.call_nvml("", pynvml.nvmlSystemGetCudaDriverVersion_v2))
    return Versions(driver, (cuda // 1000, cuda % 1000 // 10))


def read_gpu(
    index: int, versions: Versions, host_root: Path, known_mig: KnownMig = _no_mig
) -> tuple[model.Gpu, nvlink.Links]:
    """Return the GPU at an index, and its links. Raises DeviceFault."""
    label = f"GPU at index {index}"
    handle = nvml_errors.call_nvml(label, pynvml.nvmlDeviceGetHandleByIndex, index)
    pci = nvml_errors.parse_pci_address(
        nvml_errors.call_nvml(label, pynvml.nvmlDeviceGetPciInfo, handle)
    )
    memory = nvml_errors.call_if_supported(pci, pynvml.nvmlDeviceGetMemoryInfo, handle)
    total = None if memory is None else int(memory.total)
    brand = nvml_errors.call_optional(pci, pynvml.nvmlDeviceGetBrand, handle)
    architecture = nvml_errors.call_optional(pci, pynvml.nvmlDeviceGetArchitecture, handle)
    addressing = nvml_errors.call_optional(pci, pynvml.nvmlDeviceGetAddressingMode, handle)
    major, minor = nvml_errors.call_nvml(pci, pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    virtualization = nvml_errors.call_optional(pci, pynvml.nvmlDeviceGetVirtualizationMode, handle)
    virtual = virtualization == pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU
    uuid = _read_uuid(pci, handle)
    gpu = model.Gpu(
        uuid=uuid,
        pci=pci,
        index=index,
        minor=int(nvml_errors.call_nvml(pci, pynvml.nvmlDeviceGetMinorNumber, handle)),
        product=_product_name(pci, handle),
        brand=BRANDS.get(brand, _UNKNOWN),
        architecture=ARCHITECTURES.get(architecture, _UNKNOWN),
        cuda_capability=(int(major), int(minor)),
        driver_version=versions.driver,
        cuda_driver_version=versions.cuda,
        memory_bytes=total,
        numa_node=sysfs.numa_node(host_root, pci),
        pcie_root=sysfs.pcie_root(host_root, pci),
        nvlink_domain=_fabric_domain(pci, handle),
        module=_module_id(pci, handle),
        addressing=ADDRESSING.get(addressing),
        virtual=virtual,
        # A guest's instances are made on its host; a GPU without memory of its own has none.
        mig=None
        if virtual or not total
        else mig_layout.read_mig(pci, handle, total, known_mig(uuid)),
    )
    return gpu, nvlink.read_links(pci, handle)


def _module_id(pci: ids.PciAddress, handle: object) -> int | None:
    """Return the GPU's module number; pynvml's own buffer is shared by all threads."""
    call = pynvml.nvmlDeviceGetModuleId
    return nvml_errors.call_optional(pci, call, handle, ctypes.c_uint()) or None


def _read_uuid(pci: ids.PciAddress, handle: object) -> ids.GpuUuid:
    value = str(nvml_errors.call_nvml(pci, pynvml.nvmlDeviceGetUUID, handle))
    if not _UUID.fullmatch(value):
        raise nvml_errors.invalid_value(pci, "nvmlDeviceGetUUID", value, "a GPU's UUID")
    return ids.GpuUuid(value)


def _product_name(pci: ids.PciAddress, handle: object) -> str:
    name = str(nvml_errors.call_nvml(pci, pynvml.nvmlDeviceGetName, handle))
    if not name.strip() or not name.isprintable():
        raise nvml_errors.invalid_value(pci, "nvmlDeviceGetName", name, "a name")
    return name


def _fabric_domain(pci: ids.PciAddress, handle: object) -> str | None:
    """Return `<cluster uuid>.<clique>` of a GPU in a multi-node fabric; else None.

    A switched board without other nodes reports success and an all-zero cluster (NV-9).
    """
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    info.version = pynvml.nvmlGpuFabricInfo_v2
    if (
        nvml_errors.call_optional(
            pci, pynvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(info)
        )
        is None
    ):
        return None
    cluster = bytes(info.clusterUuid)
    joined = info.state == pynvml.NVML_GPU_FABRIC_STATE_COMPLETED
    if not joined or info.status != pynvml.NVML_SUCCESS or not any(cluster):
        return None
    return f"{uuids.UUID(bytes=cluster)}.{info.cliqueId}"
