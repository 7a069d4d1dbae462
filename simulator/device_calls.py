"""NVML calls about one GPU."""

from collections.abc import Sequence
from dataclasses import dataclass

from simulator import client, codes, machine

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Memory:
    """`nvmlMemory_v2_t`, in bytes: total is reserved + free + used."""

    total: int
    reserved: int
    free: int
    used: int


@dataclass(frozen=True, slots=True)
class PciInfo:
    """`nvmlPciInfo_t`; ids are `device << 16 | vendor`."""

    bus_id_legacy: str
    domain: int
    bus: int
    device: int
    pci_device_id: int
    pci_subsystem_id: int
    bus_id: str


@dataclass(frozen=True, slots=True)
class Utilization:
    """`nvmlUtilization_t`, in percent."""

    gpu: int
    memory: int


@dataclass(frozen=True, slots=True)
class Process:
    """`nvmlProcessInfo_t`: memory in bytes, ids 0xFFFFFFFF outside MIG."""

    pid: int
    used_gpu_memory: int
    gpu_instance_id: int
    compute_instance_id: int


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One answer of `nvmlDeviceGetFieldValues`: its own return code, and an unsigned value."""

    code: int
    value: int


def pci_info(address: str, device_id: int, subsystem_id: int) -> PciInfo:
    """The address as sysfs writes it ("0000:53:00.0") with its ids."""
    domain, bus, rest = address.split(":")
    return PciInfo(
        bus_id_legacy=address.upper(),
        domain=int(domain, 16),
        bus=int(bus, 16),
        device=int(rest.split(".")[0], 16),
        pci_device_id=device_id,
        pci_subsystem_id=subsystem_id,
        bus_id=f"0000{address}".upper(),
    )


class DeviceCalls(client.Client):
    """nvmlDeviceGet* and nvmlDeviceSet*; each takes a handle and raises NvmlError."""

    @client.call
    def device_get_name(self, device: client.Handle) -> str:
        """The product name."""
        return self._gpu(device).product.name

    @client.call
    def device_get_brand(self, device: client.Handle) -> int:
        """`nvmlBrandType_t`."""
        return self._gpu(device).product.brand

    @client.call
    def device_get_serial(self, device: client.Handle) -> str:
        """13 digits."""
        return self._gpu(device).serial

    @client.call
    def device_get_uuid(self, device: client.Handle) -> str:
        """With its GPU- prefix."""
        return self._gpu(device).uuid

    @client.call
    def device_get_index(self, device: client.Handle) -> int:
        """The number this client enumerates the GPU by."""
        return self.gpus.index(self._gpu(device))

    @client.call
    def device_get_minor_number(self, device: client.Handle) -> int:
        """The N of /dev/nvidiaN."""
        return self._gpu(device).slot.minor

    @client.call
    def device_get_module_id(self, device: client.Handle) -> int:
        """The position on the baseboard."""
        return self._gpu(device).slot.module

    @client.call
    def device_get_architecture(self, device: client.Handle) -> int:
        """`nvmlDeviceArchitecture_t`."""
        return self._gpu(device).product.architecture

    @client.call
    def device_get_cuda_compute_capability(self, device: client.Handle) -> tuple[int, int]:
        """Major and minor."""
        major, minor = self._gpu(device).product.compute_capability.split(".")
        return int(major), int(minor)

    @client.call
    def device_get_memory_info(self, device: client.Handle) -> Memory:
        """The v2 figures; v1 counts `reserved` as used."""
        size = self._gpu(device).product.memory_mib
        free = size.total - size.reserved
        return Memory(total=size.total * MIB, reserved=size.reserved * MIB, free=free * MIB, used=0)

    @client.call
    def device_get_pci_info(self, device: client.Handle) -> PciInfo:
        """The v3 structure."""
        gpu = self._gpu(device)
        ids = gpu.product.pci_ids
        return pci_info(gpu.slot.pci, ids.device, ids.subsystem)

    @client.call
    def device_get_persistence_mode(self, device: client.Handle) -> bool:
        """Whether the driver stays loaded without clients."""
        return self._board(device).persistence

    @client.call
    def device_get_compute_mode(self, device: client.Handle) -> int:
        """`nvmlComputeMode_t`."""
        return self._board(device).compute_mode

    @client.call
    def device_set_compute_mode(self, device: client.Handle, mode: int) -> None:
        """Root only; lost at reboot."""
        board = self._board(device)
        if mode not in set(codes.ComputeMode):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        self._require_root()
        board.compute_mode = mode
        self.machine.touch()

    @client.call
    def device_get_mig_mode(self, device: client.Handle) -> tuple[int, int]:
        """Current and pending: always disabled here; NOT_SUPPORTED where the product has no MIG."""
        if not self._gpu(device).product.mig:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return 0, 0

    @client.call
    def device_get_max_mig_device_count(self, device: client.Handle) -> int:
        """0 while MIG is off or not supported."""
        self._gpu(device)
        return 0

    @client.call
    def device_is_mig_device_handle(self, device: client.Handle) -> bool:
        """Never, while MIG is off."""
        self._gpu(device)
        return False

    @client.call
    def device_get_virtualization_mode(self, device: client.Handle) -> int:
        """`nvmlGpuVirtualizationMode_t`: none of them, bare metal."""
        self._gpu(device)
        return 0

    @client.call
    def device_get_ecc_mode(self, device: client.Handle) -> tuple[bool, bool]:
        """Current and pending."""
        ecc = self._gpu(device).product.ecc
        return ecc, ecc

    @client.call
    def device_get_power_usage(self, device: client.Handle) -> int:
        """In mW."""
        return self._board(device).power_mw

    @client.call
    def device_get_enforced_power_limit(self, device: client.Handle) -> int:
        """In mW."""
        return self._gpu(device).product.power_w.default * 1000

    @client.call
    def device_get_power_management_limit(self, device: client.Handle) -> int:
        """In mW."""
        return self._gpu(device).product.power_w.default * 1000

    @client.call
    def device_get_power_management_default_limit(self, device: client.Handle) -> int:
        """In mW."""
        return self._gpu(device).product.power_w.default * 1000

    @client.call
    def device_get_power_management_limit_constraints(
        self, device: client.Handle
    ) -> tuple[int, int]:
        """Least and greatest, in mW."""
        power = self._gpu(device).product.power_w
        return power.min * 1000, power.max * 1000

    @client.call
    def device_get_temperature(self, device: client.Handle, sensor: int) -> int:
        """In degrees Celsius; sensor 0, the GPU, is the only one."""
        board = self._board(device)
        if sensor != 0:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return board.celsius

    @client.call
    def device_get_utilization_rates(self, device: client.Handle) -> Utilization:
        """Over the last sample period."""
        board = self._board(device)
        return Utilization(gpu=board.gpu_percent, memory=board.memory_percent)

    @client.call
    def device_get_compute_running_processes(self, device: client.Handle) -> list[Process]:
        """None: no program here uses a GPU."""
        self._gpu(device)
        return []

    @client.call
    def device_get_field_values(
        self, device: client.Handle, fields: Sequence[int], scopes: Sequence[int]
    ) -> list[FieldValue]:
        """One answer for each field, in order; unknown fields answer NOT_SUPPORTED."""
        gpu = self._gpu(device)
        return [self._field(gpu, field) for field, _ in zip(fields, scopes, strict=True)]

    @staticmethod
    def _field(gpu: machine.Gpu, field: int) -> FieldValue:
        product = gpu.product
        match field:
            case codes.Field.NVLINK_LINK_COUNT if product.nvlink:
                return FieldValue(codes.Return.SUCCESS, product.nvlink.links)
            case codes.Field.IS_RESETLESS_MIG_SUPPORTED if product.mig:
                resetless = product.architecture >= codes.Architecture.HOPPER
                return FieldValue(codes.Return.SUCCESS, int(resetless))
            case codes.Field.GPU_RECOVERY_ACTION:
                return FieldValue(codes.Return.SUCCESS, 0)
            case _:
                return FieldValue(codes.Return.NOT_SUPPORTED, 0)
