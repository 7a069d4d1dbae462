"""NVML calls about a GPU's board: clocks, BAR1, the PCIe link, addressing, the NVLink fabric."""

from dataclasses import dataclass

from simulator import client, codes, device_calls


@dataclass(frozen=True, slots=True)
class Bar1:
    """`nvmlBAR1Memory_t`, in bytes."""

    total: int
    free: int
    used: int


@dataclass(frozen=True, slots=True)
class FabricInfo:
    """`nvmlGpuFabricInfo_v3_t`, the cluster as 32 hex digits."""

    cluster: str
    status: int
    clique: int
    state: int
    health_mask: int
    health_summary: int


@dataclass(frozen=True, slots=True)
class PlatformInfo:
    """`nvmlPlatformInfo_v2_t` without its InfiniBand GUID, which is 0 here."""

    chassis_serial_number: str
    slot_number: int
    tray_index: int
    host_id: int
    peer_type: int
    module_id: int


class BoardCalls(client.Client):
    """What a board reports of itself, whether or not a process uses it."""

    @client.call
    def device_get_clock_info(self, device: client.Handle, clock: int) -> int:
        """In MHz, now."""
        board = self._board(device)
        _require_clock(clock)
        return board.memory_mhz if clock == codes.Clock.MEMORY else board.sm_mhz

    @client.call
    def device_get_max_clock_info(self, device: client.Handle, clock: int) -> int:
        """In MHz, at most."""
        clocks = self._gpu(device).product.clocks_mhz
        _require_clock(clock)
        return clocks.memory if clock == codes.Clock.MEMORY else clocks.graphics

    @client.call
    def device_get_bar1_memory_info(self, device: client.Handle) -> Bar1:
        """Processes use 2 MiB each; a MIG device has its GPU instance's share less 1 MiB.

        Seen: 32767 of 65536 MiB for a 3g.20gb (`nvidia-smi -q -x` of an A100 under 510.47.03).
        """
        gpu = self._owner(device)
        total = gpu.product.bar1_mib * device_calls.MIB
        processes = self.machine.board(gpu).processes
        if client.is_mig(device) and gpu.product.mig:
            _, instance, _ = self._mig_device(device)
            total = total * instance.at.size // gpu.product.mig.memory_slices - device_calls.MIB
            processes = [one for one in processes if one.gpu_instance == instance.id]
        used = min(total, 2 * device_calls.MIB * len(processes))
        return Bar1(total=total, free=total - used, used=used)

    @client.call
    def device_get_max_pcie_link_generation(self, device: client.Handle) -> int:
        """Of GPU and slot."""
        return self._gpu(device).product.pcie.generation

    @client.call
    def device_get_max_pcie_link_width(self, device: client.Handle) -> int:
        """In lanes."""
        return self._gpu(device).product.pcie.width

    @client.call
    def device_get_curr_pcie_link_generation(self, device: client.Handle) -> int:
        """The greatest: links do not rest here."""
        return self._gpu(device).product.pcie.generation

    @client.call
    def device_get_curr_pcie_link_width(self, device: client.Handle) -> int:
        """In lanes."""
        return self._gpu(device).product.pcie.width

    @client.call
    def device_get_fan_speed(self, device: client.Handle) -> int:
        """NOT_SUPPORTED: the servers have the fans."""
        self._gpu(device)
        raise codes.NvmlError(codes.Return.NOT_SUPPORTED)

    @client.call
    def device_get_performance_state(self, device: client.Handle) -> int:
        """P0: these GPUs do not rest."""
        self._gpu(device)
        return 0

    @client.call
    def device_get_display_active(self, device: client.Handle) -> bool:
        """Never."""
        self._gpu(device)
        return False

    @client.call
    def device_get_driver_model(self, device: client.Handle) -> tuple[int, int]:
        """NOT_SUPPORTED: a matter of Windows."""
        self._gpu(device)
        raise codes.NvmlError(codes.Return.NOT_SUPPORTED)

    @client.call
    def device_get_graphics_running_processes(
        self, device: client.Handle
    ) -> list[device_calls.Process]:
        """None: the processes here compute."""
        self._owner(device)
        return []

    @client.since("nvmlDeviceGetGpuFabricInfo")
    @client.call
    def device_get_gpu_fabric_info(self, device: client.Handle) -> FabricInfo:
        """NOT_SUPPORTED without a fabric; an all-zero cluster is one of this node only."""
        self._gpu(device)
        fabric = self.machine.profile.fabric
        if fabric is None:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return FabricInfo(
            cluster=fabric.cluster.replace("-", ""),
            status=codes.Return.SUCCESS,
            clique=fabric.clique,
            state=codes.FABRIC_COMPLETED,
            health_mask=0,
            health_summary=self._fabric_health(device),
        )

    def _fabric_health(self, device: client.Handle) -> int:
        """Told from Blackwell on: an H100 capture has N/A, a B200's and a GB200's Healthy."""
        told = self._gpu(device).product.architecture >= codes.Architecture.BLACKWELL
        return codes.FABRIC_HEALTHY if told else 0

    @client.since("nvmlDeviceGetPlatformInfo")
    @client.call
    def device_get_platform_info(self, device: client.Handle) -> PlatformInfo:
        """NOT_SUPPORTED before Blackwell, and where the machine does not stand in a rack."""
        gpu, place = self._gpu(device), self.machine.profile.platform
        if place is None:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return PlatformInfo(
            chassis_serial_number=place.chassis,
            slot_number=place.slot,
            tray_index=place.tray,
            host_id=place.host,
            peer_type=place.peer,
            module_id=gpu.slot.module or device_calls.PCIE_MODULE,
        )

    @client.since("nvmlDeviceGetAddressingMode")
    @client.call
    def device_get_addressing_mode(self, device: client.Handle) -> int:
        """`nvmlDeviceAddressingModeType_t`."""
        return self._gpu(device).product.addressing


def _require_clock(clock: int) -> None:
    if clock not in set(codes.Clock):
        raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
