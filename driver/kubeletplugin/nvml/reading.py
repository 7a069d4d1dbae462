"""One GPU, as NVML and sysfs describe it."""

import ctypes
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

import pynvml

from driver import ids
from driver.devices import model
from driver.kubeletplugin import sysfs
from driver.kubeletplugin.nvml import calls, links, partition

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
"""The words that NVIDIA's driver publishes (go-nvlib, device.GetBrandAsString)."""
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
"""As above (device.GetArchitectureAsString); Rubin follows its pattern."""
ADDRESSING = {
    pynvml.NVML_DEVICE_ADDRESSING_MODE_NONE: "None",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM: "HMM",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS: "ATS",
}
_UNKNOWN = "Unknown"
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Versions:
    """The driver's version, and the newest CUDA it speaks."""

    driver: str
    cuda: tuple[int, int]


def versions() -> Versions:
    """Of the driver that is loaded. Raises DeviceFault."""
    driver = str(calls.ask("", pynvml.nvmlSystemGetDriverVersion))
    cuda = int(calls.ask("", pynvml.nvmlSystemGetCudaDriverVersion_v2))
    return Versions(driver, (cuda // 1000, cuda % 1000 // 10))


def read(index: int, of: Versions, host_root: Path) -> tuple[model.Gpu, links.Links]:
    """The GPU at an index, and its links. Raises DeviceFault."""
    where = f"GPU at index {index}"
    handle = calls.ask(where, pynvml.nvmlDeviceGetHandleByIndex, index)
    pci = calls.address(calls.ask(where, pynvml.nvmlDeviceGetPciInfo, handle))
    memory = calls.maybe(pci, pynvml.nvmlDeviceGetMemoryInfo, handle)
    total = None if memory is None else int(memory.total)
    brand = calls.optional(pci, pynvml.nvmlDeviceGetBrand, handle)
    architecture = calls.optional(pci, pynvml.nvmlDeviceGetArchitecture, handle)
    addressing = calls.optional(pci, pynvml.nvmlDeviceGetAddressingMode, handle)
    major, minor = calls.ask(pci, pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    kind = calls.optional(pci, pynvml.nvmlDeviceGetVirtualizationMode, handle)
    virtual = kind == pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU
    gpu = model.Gpu(
        uuid=_uuid(pci, handle),
        pci=pci,
        index=index,
        minor=int(calls.ask(pci, pynvml.nvmlDeviceGetMinorNumber, handle)),
        product=_text(pci, handle),
        brand=BRANDS.get(brand, _UNKNOWN),
        architecture=ARCHITECTURES.get(architecture, _UNKNOWN),
        cuda_capability=(int(major), int(minor)),
        driver_version=of.driver,
        cuda_driver_version=of.cuda,
        memory_bytes=total,
        numa_node=sysfs.numa_node(host_root, pci),
        pcie_root=sysfs.pcie_root(host_root, pci),
        nvlink_domain=_fabric(pci, handle),
        module=_module(pci, handle),
        addressing=ADDRESSING.get(addressing),
        virtual=virtual,
        # A guest's partitions are made on its host; without memory of its own there are none.
        mig=None if virtual or not total else partition.of_gpu(pci, handle, total),
    )
    return gpu, links.of_gpu(pci, handle)


def _module(pci: ids.PciAddress, handle: object) -> int | None:
    """The number of the GPU's module; pynvml's own place for it is one for all threads."""
    call = pynvml.nvmlDeviceGetModuleId
    return calls.optional(pci, call, handle, ctypes.c_uint()) or None


def _uuid(pci: ids.PciAddress, handle: object) -> ids.GpuUuid:
    found = str(calls.ask(pci, pynvml.nvmlDeviceGetUUID, handle))
    if not _UUID.fullmatch(found):
        raise calls.garbage(pci, "nvmlDeviceGetUUID", found, "a GPU's UUID")
    return ids.GpuUuid(found)


def _text(pci: ids.PciAddress, handle: object) -> str:
    found = str(calls.ask(pci, pynvml.nvmlDeviceGetName, handle))
    if not found.strip() or not found.isprintable():
        raise calls.garbage(pci, "nvmlDeviceGetName", found, "a name")
    return found


def _fabric(pci: ids.PciAddress, handle: object) -> str | None:
    """`<cluster uuid>.<clique>` of a GPU that has joined a fabric of several nodes; else None.

    A switched board without other nodes reports success and an all-zero cluster (NV-9).
    """
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    info.version = pynvml.nvmlGpuFabricInfo_v2
    if calls.optional(pci, pynvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(info)) is None:
        return None
    cluster = bytes(info.clusterUuid)
    joined = info.state == pynvml.NVML_GPU_FABRIC_STATE_COMPLETED
    if not joined or info.status != pynvml.NVML_SUCCESS or not any(cluster):
        return None
    return f"{uuid.UUID(bytes=cluster)}.{info.cliqueId}"
