"""NVML calls that monitoring programs start with: firmware, affinity, limits, reasons.

None of them has a state of its own here: they follow from the product and from the board.
"""

from simulator import client, codes, device_calls, machine

CPUS_PER_NUMA_NODE = 32
"""Of every machine. Assumed: profiles say nothing of the host's processors."""

_MBPS_PER_LANE = {3: 8000, 4: 16000, 5: 32000, 6: 64000}
"""PCIe generation to `nvmlDeviceGetPcieSpeed`."""

_VBIOS = {
    codes.Architecture.TURING: "90.04.A7.00.01",
    codes.Architecture.AMPERE: "92.00.45.00.03",
    codes.Architecture.ADA: "95.02.66.00.02",
    codes.Architecture.HOPPER: "96.00.99.00.01",
    codes.Architecture.BLACKWELL: "97.00.82.00.18",
}
"""Of the form that boards of each architecture have; the last two parts are assumed."""

_CELSIUS = {0: 92, 1: 89, 2: 95, 3: 87}
"""`nvmlTemperatureThresholds_t` (shutdown, slowdown, memory, GPU) in degrees, of an H100."""

_CORES_PER_SM = {"7.5": 64, "8.0": 64}
_CORES_PER_NEWER_SM = 128
_CLOCK_STEP_MHZ, _LEAST_CLOCK_MHZ = 15, 345
_BUS_PCIE = 2
_IDLE, _ALL_REASONS = 0x1, 0x1FF
"""Bits of `nvmlClocksEventReasons`."""


class MonitorCalls(client.Client):
    """What a GPU tells of itself to whoever watches it."""

    @client.call
    def device_get_vbios_version(self, device: client.Handle) -> str:
        """Five parts with dots."""
        return _VBIOS[self._gpu(device).product.architecture]

    @client.call
    def device_get_gsp_firmware_version(self, device: client.Handle) -> str:
        """The driver's version; NOT_SUPPORTED in a vGPU guest, which runs none."""
        self._require_gsp(device)
        return self.machine.driver_version

    @client.call
    def device_get_gsp_firmware_mode(self, device: client.Handle) -> tuple[bool, bool]:
        """Whether it runs, and whether it does by default."""
        self._require_gsp(device)
        return True, True

    def _require_gsp(self, device: client.Handle) -> None:
        self._gpu(device)
        if self.machine.profile.virtualization is codes.Virtualization.VGPU:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)

    @client.call
    def device_get_board_id(self, device: client.Handle) -> int:
        """From the PCI address: the same for GPUs of one board, of which there is one a board."""
        bus, rest = self._gpu(device).slot.pci.split(":")[1:]
        return int(bus, 16) << 8 | int(rest.split(".")[0], 16)

    @client.call
    def device_get_multi_gpu_board(self, device: client.Handle) -> bool:
        """Whether several GPUs are on one card."""
        slot = self._gpu(device).slot
        together = [gpu for gpu in self.machine.gpus if gpu.slot.board == slot.board]
        return slot.board is not None and len(together) > 1

    @client.call
    def device_get_bus_type(self, device: client.Handle) -> int:
        """`nvmlBusType_t`: PCIe."""
        self._gpu(device)
        return _BUS_PCIE

    @client.call
    def device_get_num_gpu_cores(self, device: client.Handle) -> int:
        """CUDA cores of the multiprocessors; NOT_SUPPORTED where no profile tells their number."""
        product = self._gpu(device).product
        if product.mig is None:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        multiprocessors = max(profile.sm for profile in product.mig.profiles.values())
        cores = _CORES_PER_SM.get(product.compute_capability, _CORES_PER_NEWER_SM)
        return multiprocessors * cores

    @client.call
    def device_get_pcie_speed(self, device: client.Handle) -> int:
        """In MB/s a lane."""
        return _MBPS_PER_LANE[self._gpu(device).product.pcie.generation]

    @client.call
    def device_get_pcie_link_max_speed(self, device: client.Handle) -> int:
        """`NVML_PCIE_LINK_MAX_SPEED_*`, which count generations."""
        return self._gpu(device).product.pcie.generation

    @client.call
    def device_get_gpu_max_pcie_link_generation(self, device: client.Handle) -> int:
        """Of the GPU, whatever its slot."""
        return self._gpu(device).product.pcie.generation

    @client.call
    def device_get_pcie_throughput(self, device: client.Handle, counter: int) -> int:
        """In KB/s over 20 ms; nothing crosses the bus here."""
        self._gpu(device)
        if counter not in {0, 1}:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return 0

    @client.call
    def device_get_pcie_replay_counter(self, device: client.Handle) -> int:
        """None: the links have no errors."""
        self._gpu(device)
        return 0

    @client.call
    def device_get_cpu_affinity(self, device: client.Handle) -> tuple[int, int]:
        """The first processor near the GPU, and how many follow; all, without NUMA."""
        numa = self._gpu(device).slot.numa
        if numa < 0:
            return 0, CPUS_PER_NUMA_NODE * len(_numa_nodes(self.machine))
        return numa * CPUS_PER_NUMA_NODE, CPUS_PER_NUMA_NODE

    @client.call
    def device_get_memory_affinity(self, device: client.Handle, scope: int) -> int:
        """The NUMA node; `scope` (node, socket) makes no difference here."""
        numa = self._gpu(device).slot.numa
        if scope not in {0, 1}:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return max(0, numa)

    @client.call
    def device_get_current_clocks_event_reasons(self, device: client.Handle) -> int:
        """Idle, or none: nothing here holds clocks down."""
        board = self._board(device)
        busy = board.gpu_percent or any(process.sm_percent for process in board.processes)
        return 0 if busy else _IDLE

    @client.call
    def device_get_supported_clocks_event_reasons(self, device: client.Handle) -> int:
        """All that nvml.h names."""
        self._gpu(device)
        return _ALL_REASONS

    @client.call
    def device_get_supported_memory_clocks(self, device: client.Handle) -> list[int]:
        """In MHz: the greatest alone."""
        return [self._gpu(device).product.clocks_mhz.memory]

    @client.call
    def device_get_supported_graphics_clocks(
        self, device: client.Handle, memory_mhz: int
    ) -> list[int]:
        """In MHz, from the greatest down; NOT_FOUND for a memory clock that is not supported."""
        clocks = self._gpu(device).product.clocks_mhz
        if memory_mhz != clocks.memory:
            raise codes.NvmlError(codes.Return.NOT_FOUND)
        return list(range(clocks.graphics, _LEAST_CLOCK_MHZ - 1, -_CLOCK_STEP_MHZ))

    @client.call
    def device_get_temperature_threshold(self, device: client.Handle, threshold: int) -> int:
        """In degrees Celsius; NOT_SUPPORTED for those of fans and acoustics."""
        self._gpu(device)
        if threshold not in _CELSIUS:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return _CELSIUS[threshold]

    @client.call
    def device_get_jpg_utilization(self, device: client.Handle) -> tuple[int, int]:
        """Percent and sample period in us; no JPEG engine here ever works."""
        self._gpu(device)
        return 0, device_calls.SAMPLE_PERIOD_US

    @client.call
    def device_get_ofa_utilization(self, device: client.Handle) -> tuple[int, int]:
        """As for the JPEG engines."""
        return self.device_get_jpg_utilization(device)


def _numa_nodes(of: machine.Machine) -> set[int]:
    return {gpu.slot.numa for gpu in of.gpus}
