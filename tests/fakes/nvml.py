"""The plugin's view of NVML, over the simulator's machine model and without its C library."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from driver import errors, ids
from driver.devices import model
from simulator import client, codes, library, machine
from tests.fakes import partitions

T = TypeVar("T")

BRANDS = {codes.Brand.NVIDIA: "Nvidia", codes.Brand.TESLA: "Tesla"}
ARCHITECTURES = {
    codes.Architecture.TURING: "Turing",
    codes.Architecture.AMPERE: "Ampere",
    codes.Architecture.ADA: "Ada Lovelace",
    codes.Architecture.HOPPER: "Hopper",
    codes.Architecture.BLACKWELL: "Blackwell",
}
ADDRESSING = {
    codes.AddressingMode.NONE: "None",
    codes.AddressingMode.HMM: "HMM",
    codes.AddressingMode.ATS: "ATS",
}
_SWITCHES = "switches"


class FakeNvml:
    """Implements `ports.Nvml`; `absent` makes it a library that is not loaded."""

    def __init__(self, source: machine.Machine) -> None:
        self.machine = source
        self.absent = False
        self.readings = 0
        self.knows: tuple[model.Gpu, ...] = ()
        self.hangs: dict[ids.GpuUuid, errors.Hung] = {}
        self._library = library.Library(source)
        self._library.init(client.INIT_FLAG_NO_GPUS)

    def inventory(self) -> model.Inventory:
        self.readings += 1
        if self.absent:
            code = codes.Return.DRIVER_NOT_LOADED
            raise errors.DeviceFault("", "nvmlInitWithFlags", code, "Driver Not Loaded")
        gpus: list[model.Gpu] = []
        broken: list[model.BrokenGpu] = []
        for index in range(self._library.device_get_count()):
            try:
                gpu = self._gpu(index)
                if gpu.uuid in self.hangs:
                    broken.append(model.BrokenGpu(gpu.uuid, str(self.hangs[gpu.uuid])))
                else:
                    gpus.append(gpu)
            except codes.NvmlError as e:
                broken.append(model.BrokenGpu(f"GPU at index {index}", str(e)))
        ends = {gpu.pci: self._end(gpu) for gpu in gpus}
        return model.Inventory(tuple(_linked(gpu, ends) for gpu in gpus), tuple(broken))

    @property
    def library(self) -> library.Library:
        """Return what it asks."""
        return self._library

    def refresh_gpu(self, gpu: model.Gpu) -> model.Gpu:
        if gpu.uuid in self.hangs:
            raise self.hangs[gpu.uuid]
        try:
            handle = self._library.device_get_handle_by_uuid(gpu.uuid)
            match = self.machine.find(gpu.uuid)
            minor = self._library.device_get_minor_number(handle)
            mig = partitions.of_gpu(self._library, match, handle)
        except codes.NvmlError as e:
            raise errors.DeviceFault(gpu.uuid, "reading it again", e.code, str(e)) from e
        return dataclasses.replace(gpu, minor=minor, mig=mig)

    def read_minor(self, gpu: model.Gpu) -> int:
        return self.refresh_gpu(gpu).minor

    def is_current(self, gpu: model.Gpu, profile_ids: Iterable[int]) -> bool:
        now = self.refresh_gpu(gpu).mig
        if gpu.mig is None or now is None:
            return gpu.mig is now
        chosen = frozenset(profile_ids)
        former, latter = (
            {(i.gpu_instance, i.placement) for i in layout.instances if i.profile_id in chosen}
            for layout in (gpu.mig, now)
        )
        return gpu.mig.enabled is now.enabled and former == latter

    def set_gpus(self, inventory: model.Inventory) -> None:
        self.knows = inventory.all_gpus

    def hung_call(self, gpu: ids.GpuUuid) -> errors.Hung | None:
        return self.hangs.get(gpu)

    def _gpu(self, index: int) -> model.Gpu:
        answer = self._library
        handle = answer.device_get_handle_by_index(index)
        slot = self.machine.find(answer.device_get_uuid(handle)).slot
        cuda = answer.system_get_cuda_driver_version()
        addressing = self._optional(answer.device_get_addressing_mode, handle)
        virtual = answer.device_get_virtualization_mode(handle) == codes.Virtualization.VGPU
        gpu = self.machine.find(answer.device_get_uuid(handle))
        return model.Gpu(
            index=index,
            uuid=ids.GpuUuid(answer.device_get_uuid(handle)),
            pci=ids.PciAddress(slot.pci),
            minor=answer.device_get_minor_number(handle),
            product=answer.device_get_name(handle),
            brand=BRANDS[codes.Brand(answer.device_get_brand(handle))],
            architecture=ARCHITECTURES[codes.Architecture(answer.device_get_architecture(handle))],
            cuda_capability=answer.device_get_cuda_compute_capability(handle),
            driver_version=answer.system_get_driver_version(),
            cuda_driver_version=(cuda // 1000, cuda % 1000 // 10),
            memory_bytes=answer.device_get_memory_info(handle).total,
            numa_node=slot.numa if slot.numa >= 0 else None,
            pcie_root=f"pci{slot.host_bridge}",
            nvlink_domain=self._domain(handle),
            module=self._optional(answer.device_get_module_id, handle) or None,
            addressing=None if addressing is None else ADDRESSING[codes.AddressingMode(addressing)],
            virtual=virtual,
            mig=None if virtual else partitions.of_gpu(answer, gpu, handle),
        )

    def _domain(self, handle: client.Handle) -> str | None:
        info = self._optional(self._library.device_get_gpu_fabric_info, handle)
        if info is None or not info.cluster.strip("0"):
            return None
        return f"{uuid.UUID(info.cluster)}.{info.clique}"

    @staticmethod
    def _optional(call: Callable[[client.Handle], T], handle: client.Handle) -> T | None:
        try:
            return call(handle)
        except codes.NvmlError:
            return None

    def _end(self, gpu: model.Gpu) -> str:
        """Return where its NVLinks end: "" without any, a GPU's address, or `_SWITCHES`."""
        answer = self._library
        handle = answer.device_get_handle_by_uuid(gpu.uuid)
        try:
            if (
                answer.device_get_nv_link_remote_device_type(handle, 0)
                == codes.NVLINK_REMOTE_SWITCH
            ):
                return _SWITCHES
        except codes.NvmlError:
            return ""
        return self.machine.find(
            answer.device_get_nv_link_remote_pci_info(handle, 0).bus_id
        ).slot.pci


def _linked(gpu: model.Gpu, ends: dict[ids.PciAddress, str]) -> model.Gpu:
    mine = ends[gpu.pci]
    switched = mine == _SWITCHES
    peers = [pci for pci, end in ends.items() if (end == mine if switched else pci == mine)]
    return dataclasses.replace(gpu, nvlink_peers=frozenset(peers) - {gpu.pci})
