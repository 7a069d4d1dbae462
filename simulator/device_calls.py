"""NVML calls about one GPU."""

import time
from dataclasses import dataclass

from simulator import client, codes, partition, state

MIB = 1 << 20
PCIE_MODULE = 0
SAMPLE_PERIOD_US = 167_000


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
    """`nvmlProcessInfo_t`: memory in bytes or NOT_AVAILABLE, ids 0xFFFFFFFF outside MIG."""

    pid: int
    used_gpu_memory: int
    gpu_instance_id: int
    compute_instance_id: int


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """`nvmlProcessUtilizationSample_t`: what a process used up to `time_stamp` (us), in percent."""

    pid: int
    time_stamp: int
    sm_util: int
    mem_util: int = 0
    enc_util: int = 0
    dec_util: int = 0


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
        """The product name; a MIG device's ends in its profile."""
        if not client.is_mig(device):
            return self._gpu(device).product.name
        gpu, instance, compute = self._mig_device(device)
        parent = partition.Partition(self.machine, gpu).profile(instance.profile)
        return f"{gpu.product.name} MIG {partition.device_name(parent, compute.profile)}"

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
        """With its GPU- or MIG- prefix."""
        if client.is_mig(device):
            return self._mig_device(device)[2].uuid
        return self._gpu(device).uuid

    @client.call
    def device_get_index(self, device: client.Handle) -> int:
        """The number this client enumerates the GPU, or the MIG device of its GPU, by."""
        if client.is_mig(device):
            return self._mig_device(device)[2].index
        return self.gpus.index(self._gpu(device))

    @client.call
    def device_get_minor_number(self, device: client.Handle) -> int:
        """The N of /dev/nvidiaN."""
        return self.machine.minor(self._gpu(device))

    @client.since("nvmlDeviceGetModuleId")
    @client.call
    def device_get_module_id(self, device: client.Handle) -> int:
        """The position on the baseboard, 0 for a PCIe card (nvml.h)."""
        module = self._gpu(device).slot.module
        return PCIE_MODULE if module is None else module

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
        gpu = self._owner(device)
        processes = self.machine.board(gpu).processes
        total, reserved = gpu.product.memory_mib.total, gpu.product.memory_mib.reserved
        if client.is_mig(device):
            _, instance, _ = self._mig_device(device)
            parent = partition.Partition(self.machine, gpu).profile(instance.profile)
            total, reserved = parent.has.memory_mib, 0
            processes = [p for p in processes if p.gpu_instance == instance.id]
        used = sum(process.memory for process in processes)
        free = (total - reserved) * MIB - used
        return Memory(total=total * MIB, reserved=reserved * MIB, free=free, used=used)

    @client.call
    def device_get_pci_info(self, device: client.Handle) -> PciInfo:
        """The v3 structure; a MIG device's is its GPU's."""
        gpu = self._owner(device)
        ids = gpu.product.pci_ids
        return pci_info(gpu.slot.pci, ids.device, ids.subsystem)

    @client.call
    def device_get_persistence_mode(self, device: client.Handle) -> bool:
        """Whether the driver stays loaded without clients."""
        return self._board(device).persistence

    @client.call
    def device_set_persistence_mode(self, device: client.Handle, mode: int) -> None:
        """Root only; on again after a reboot."""
        board = self._board(device)
        if mode not in {0, 1}:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        self._require_root()
        board.persistence = bool(mode)
        self.machine.touch()

    @client.call
    def device_get_compute_mode(self, device: client.Handle) -> int:
        """`nvmlComputeMode_t`."""
        return self._compute_mode_of(device).compute_mode

    @client.call
    def device_set_compute_mode(self, device: client.Handle, mode: int) -> None:
        """Root only; lost at reboot. With MIG on it is a MIG device's, not the GPU's."""
        board = self._compute_mode_of(device)
        if mode not in set(codes.ComputeMode):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        self._require_root()
        if isinstance(board, state.Board) and board.mig:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        board.compute_mode = mode
        self.machine.touch()

    def _compute_mode_of(self, device: client.Handle) -> state.Board | state.ComputeInstance:
        return self._mig_device(device)[2] if client.is_mig(device) else self._board(device)

    @client.call
    def device_get_virtualization_mode(self, device: client.Handle) -> int:
        """`nvmlGpuVirtualizationMode_t`."""
        self._gpu(device)
        return self.machine.profile.virtualization

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

    @client.since("nvmlDeviceGetTemperatureV")
    @client.call
    def device_get_temperature_v(self, device: client.Handle, sensor: int) -> int:
        """The same, by the newer function."""
        return self.device_get_temperature(device, sensor)

    @client.call
    def device_get_utilization_rates(self, device: client.Handle) -> Utilization:
        """Over the last sample period; NOT_SUPPORTED while MIG is on."""
        board = self._board(device)
        if board.mig:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        working = min(100, sum(one.sm_percent for one in board.processes))
        return Utilization(gpu=max(board.gpu_percent, working), memory=board.memory_percent)

    @client.call
    def device_get_encoder_utilization(self, device: client.Handle) -> tuple[int, int]:
        """Percent (no encoder here ever works) and sample period in us; as utilisation rates."""
        self.device_get_utilization_rates(device)
        return 0, SAMPLE_PERIOD_US

    @client.call
    def device_get_decoder_utilization(self, device: client.Handle) -> tuple[int, int]:
        """As for the encoder."""
        return self.device_get_encoder_utilization(device)

    @client.call
    def device_get_process_utilization(
        self, device: client.Handle, last_seen: int
    ) -> list[ProcessSample]:
        """Of processes that did something since then; NOT_FOUND when none did.

        As utilisation rates, NOT_SUPPORTED while MIG is on. The last sample period is all that is
        kept.
        """
        self.device_get_utilization_rates(device)
        period = time.time_ns() // 1000 // SAMPLE_PERIOD_US
        stamp = period * SAMPLE_PERIOD_US
        working = [one for one in self._board(device).processes if one.sm_percent]
        if not working or stamp <= last_seen:
            raise codes.NvmlError(codes.Return.NOT_FOUND)
        ordered = sorted(working, key=lambda one: one.pid)
        return [ProcessSample(one.pid, stamp, one.sm_percent) for one in ordered]

    @client.call
    def device_get_compute_running_processes(self, device: client.Handle) -> list[Process]:
        """A GPU's, those on its MIG devices too; a MIG device's own."""
        return self._running(device)

    @client.call
    def device_get_mps_compute_running_processes(self, device: client.Handle) -> list[Process]:
        """The clients of MPS servers, which are among the compute processes too."""
        return self._running(device, mps_only=True)

    def _running(self, device: client.Handle, *, mps_only: bool = False) -> list[Process]:
        board = self.machine.board(self._owner(device))
        processes = board.processes
        if client.is_mig(device):
            _, made, compute = self._mig_device(device)
            here = (made.id, compute.id)
            processes = [p for p in processes if (p.gpu_instance, p.compute_instance) == here]
        return [
            Process(
                p.pid,
                codes.NOT_AVAILABLE if board.veiled else p.memory,
                p.gpu_instance,
                p.compute_instance,
            )
            for p in sorted(processes, key=lambda p: p.pid)
            if p.mps or not mps_only
        ]
