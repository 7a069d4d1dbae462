"""NVML calls about the machine as a whole, and the ways to a device handle."""

import re
from dataclasses import dataclass

from simulator import client, codes, device_calls, machine

_PCI_ADDRESS = re.compile(r"([0-9A-F]{4}|[0-9A-F]{8}):([0-9A-F]{2}:[0-9A-F]{2}\.0)")


@dataclass(frozen=True, slots=True)
class ExcludedDevice:
    """`nvmlExcludedDeviceInfo_t`."""

    pci: device_calls.PciInfo
    uuid: str


class SystemCalls(client.Client):
    """nvmlSystem* and nvmlDeviceGetCount, GetHandleBy*."""

    @client.call
    def system_get_driver_version(self) -> str:
        """For example 580.105.08."""
        return self.machine.driver_version

    @client.call
    def system_get_nvml_version(self) -> str:
        """The CUDA major in front of the driver version."""
        driver = self.machine.profile.driver
        return f"{driver.cuda.split('.')[0]}.{self.machine.driver_version}"

    @client.call
    def system_get_cuda_driver_version(self) -> int:
        """Major * 1000 + minor * 10."""
        major, minor = self.machine.profile.driver.cuda.split(".")
        return int(major) * 1000 + int(minor) * 10

    @client.call
    def get_excluded_device_count(self) -> int:
        """GPUs the driver leaves alone; they are not enumerated."""
        return len(self._excluded)

    @client.call
    def get_excluded_device_info_by_index(self, index: int) -> ExcludedDevice:
        """In PCI order."""
        if not 0 <= index < len(self._excluded):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        gpu = self._excluded[index]
        ids = gpu.product.pci_ids
        pci = device_calls.pci_info(gpu.slot.pci, ids.device, ids.subsystem)
        return ExcludedDevice(pci, gpu.uuid)

    @property
    def _excluded(self) -> tuple[machine.Gpu, ...]:
        return tuple(gpu for gpu in self.machine.gpus if gpu.slot.excluded)

    @client.call
    def device_get_count(self) -> int:
        """Visible GPUs, lost ones too."""
        return len(self.gpus)

    @client.call
    def device_get_handle_by_index(self, index: int) -> client.Handle:
        """The index counts visible GPUs in PCI order."""
        if not 0 <= index < len(self.gpus):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return self._handle(self.gpus[index])

    @client.call
    def device_get_handle_by_uuid(self, uuid: str) -> client.Handle:
        """A GPU's or a MIG device's; NOT_FOUND for a UUID nothing visible has."""
        for gpu in self.gpus:
            if gpu.uuid == uuid:
                return self._handle(gpu)
            for _, compute in self.mig_devices(gpu):
                if compute.uuid == uuid:
                    return self._part("mig", gpu, compute)
        raise codes.NvmlError(codes.Return.NOT_FOUND if uuid else codes.Return.INVALID_ARGUMENT)

    @client.call
    def device_get_handle_by_pci_bus_id(self, pci_bus_id: str) -> client.Handle:
        """Any case, 4 or 8 digits of domain, function 0; NOT_FOUND without a visible GPU there."""
        parts = _PCI_ADDRESS.fullmatch(pci_bus_id.upper())
        if parts is None:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        bus_id = f"{parts[1].zfill(8)}:{parts[2]}"
        for gpu in self.gpus:
            if gpu.bus_id == bus_id:
                return self._handle(gpu)
        raise codes.NvmlError(codes.Return.NOT_FOUND)
