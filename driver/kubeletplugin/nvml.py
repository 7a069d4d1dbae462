"""NVML, through pynvml: the only room that knows it. Errors leave as DeviceFault.

NVML is initialised once and stays so; after a failure of the library as a whole, or with a GPU
that cannot be read, the next reading starts it anew (a lost GPU comes back no other way). When to
try again is the caller's to say.
"""

import ctypes
import dataclasses
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynvml

from driver import errors, ids
from driver.devices import model
from driver.kubeletplugin import driver_root, sysfs

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
_UNKNOWN = "Unknown"

_ABSENT = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
}
"""The GPU, the link or the driver version does not have it."""
_LIBRARY_GONE = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
}
"""Said of one GPU, yet true of all."""
_NO_CODE = -1


@dataclasses.dataclass(frozen=True, slots=True)
class _Links:
    """Where a GPU's active NVLinks end."""

    switched: bool = False
    remotes: frozenset[ids.PciAddress] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class _Read:
    """A GPU as NVML describes it, and its links."""

    gpu: model.Gpu
    links: _Links


class NvmlLibrary:
    """The library `libnvidia-ml.so.1` of a driver root; pynvml can hold one a process.

    Thread safe: one call at a time.
    """

    def __init__(self, driver_path: Path, host_root: Path) -> None:
        self._root = driver_root.DriverRoot(driver_path)
        self._host_root = host_root
        self._lock = threading.Lock()
        self._open = False

    def inventory(self) -> model.Inventory:
        """Every GPU that can be read, in PCI order, and those that cannot. Raises DeviceFault."""
        with self._lock:
            self._initialise()
            try:
                found = self._read_all()
            except errors.DeviceFault:
                self._shut_down()
                raise
            if found.broken:
                self._shut_down()
            return found

    def close(self) -> None:
        """Let go of the library; the next reading starts it again."""
        with self._lock:
            self._shut_down()

    def _initialise(self) -> None:
        if self._open:
            return
        try:
            library = self._root.require(driver_root.NVML_LIBRARY)
            pynvml.nvmlLib = ctypes.CDLL(str(library))
        except (errors.NodeFault, OSError) as e:
            code = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
            raise errors.DeviceFault("", "loading NVML", code, str(e)) from e
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - keeps the old library's addresses
        _ask("", pynvml.nvmlInitWithFlags, pynvml.NVML_INIT_FLAG_NO_GPUS)
        self._open = True

    def _shut_down(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            _ask("", pynvml.nvmlShutdown)
        except errors.DeviceFault:
            return  # the library is gone: nothing is held any more

    def _read_all(self) -> model.Inventory:
        driver = str(_ask("", pynvml.nvmlSystemGetDriverVersion))
        cuda = int(_ask("", pynvml.nvmlSystemGetCudaDriverVersion_v2))
        versions = (driver, (cuda // 1000, cuda % 1000 // 10))
        read: list[_Read] = []
        broken: list[model.BrokenGpu] = []
        for index in range(_ask("", pynvml.nvmlDeviceGetCount)):
            try:
                read.append(self._read(index, versions))
            except errors.DeviceFault as fault:
                if fault.code in _LIBRARY_GONE:
                    raise
                broken.append(model.BrokenGpu(fault.device, str(fault)))
        gpus = tuple(_with_peers(one, read) for one in read)
        return model.Inventory(model.in_pci_order(gpus), tuple(broken))

    def _read(self, index: int, versions: tuple[str, tuple[int, int]]) -> _Read:
        where = f"GPU at index {index}"
        handle = _ask(where, pynvml.nvmlDeviceGetHandleByIndex, index)
        pci = _address(_ask(where, pynvml.nvmlDeviceGetPciInfo, handle))
        memory = _maybe(pci, pynvml.nvmlDeviceGetMemoryInfo, handle)
        brand = _maybe(pci, pynvml.nvmlDeviceGetBrand, handle)
        architecture = _maybe(pci, pynvml.nvmlDeviceGetArchitecture, handle)
        major, minor = _ask(pci, pynvml.nvmlDeviceGetCudaComputeCapability, handle)
        gpu = model.Gpu(
            uuid=ids.GpuUuid(str(_ask(pci, pynvml.nvmlDeviceGetUUID, handle))),
            pci=pci,
            minor=int(_ask(pci, pynvml.nvmlDeviceGetMinorNumber, handle)),
            product=str(_ask(pci, pynvml.nvmlDeviceGetName, handle)),
            brand=BRANDS.get(brand, _UNKNOWN),
            architecture=ARCHITECTURES.get(architecture, _UNKNOWN),
            cuda_capability=(int(major), int(minor)),
            driver_version=versions[0],
            cuda_driver_version=versions[1],
            memory_bytes=None if memory is None else int(memory.total),
            numa_node=sysfs.numa_node(self._host_root, pci),
            pcie_root=sysfs.pcie_root(self._host_root, pci),
        )
        return _Read(gpu, _links(pci, handle))


def _links(pci: ids.PciAddress, handle: object) -> _Links:
    ends = list(_ends(pci, handle))
    remotes = frozenset(end for end in ends if end is not None)
    return _Links(switched=None in ends, remotes=remotes)


def _ends(pci: ids.PciAddress, handle: object) -> Iterator[ids.PciAddress | None]:
    """The GPU at the end of each active link; None for a switch."""
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = _maybe(pci, pynvml.nvmlDeviceGetNvLinkState, handle, link)
        if state is None:
            return  # past the last link, or a GPU without any
        if state != pynvml.NVML_FEATURE_ENABLED:
            continue
        kind = _maybe(pci, pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
        if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            yield None
        elif kind == pynvml.NVML_NVLINK_DEVICE_TYPE_GPU:
            yield _address(_ask(pci, pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link))


def _with_peers(one: _Read, read: list[_Read]) -> model.Gpu:
    """The node's switches are one fabric: GPUs with a link to it reach each other."""
    peers = frozenset(
        other.gpu.pci
        for other in read
        if other is not one
        and (other.gpu.pci in one.links.remotes or (one.links.switched and other.links.switched))
    )
    return dataclasses.replace(one.gpu, nvlink_peers=peers)


def _address(info: Any) -> ids.PciAddress:  # noqa: ANN401 - pynvml's structures have no types
    """`00000000:53:00.0` in NVML is `0000:53:00.0` in sysfs."""
    domain, _, rest = str(info.busId).lower().partition(":")
    return ids.PciAddress(f"{int(domain, 16):04x}:{rest}")


def _maybe(device: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """As `_ask`; None where it does not exist."""
    try:
        return _ask(device, call, *arguments)
    except errors.DeviceFault as fault:
        if fault.code in _ABSENT:
            return None
        raise


def _ask(device: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """One call of pynvml. Raises DeviceFault.

    NVMLError's own text is a bare number for some codes until a library is loaded, and a newer
    structure than the driver knows raises no NVMLError at all (node-layer: pynvml's traps).
    """
    try:
        return call(*arguments)
    except pynvml.NVMLError as e:
        raise errors.DeviceFault(device, call.__name__, e.value, str(e)) from e
    except (pynvml.NVMLLibraryMismatchError, UnicodeDecodeError) as e:
        raise errors.DeviceFault(device, call.__name__, _NO_CODE, str(e)) from e
