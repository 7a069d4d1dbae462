"""What `nvidia-smi` asks the kernel module for and NVML has no function for.

Time-slice policy: NV2080_CTRL_CMD_GPU_SET_COMPUTE_POLICY_CONFIG of the open kernel modules.
"""

from simulator import client, codes, machine


class KernelCalls(client.Client):
    """Not in the C library. Each takes a whole GPU's handle and raises NvmlError."""

    @client.call
    def device_get_timeslice(self, device: client.Handle) -> int:
        """`codes.Timeslice`; NOT_SUPPORTED in a vGPU guest."""
        return self.machine.board(self._scheduled(device)).timeslice

    @client.call
    def device_set_timeslice(self, device: client.Handle, timeslice: int) -> None:
        """Root only; of the whole GPU, and lost when it is reset."""
        gpu = self._scheduled(device)
        if timeslice not in set(codes.Timeslice):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        self._require_root()
        self.machine.board(gpu).timeslice = timeslice
        self.machine.touch()

    @client.call
    def device_reset(self, device: client.Handle) -> None:
        """Root only; NOT_SUPPORTED in a virtual machine.

        IN_USE while processes run on the GPU, another NVML client has it open, or persistence mode
        keeps it open.
        """
        gpu = self._gpu(device)
        if self.machine.profile.virtualization is not codes.Virtualization.NONE:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        self._require_root()
        board = self.machine.board(gpu)
        if board.processes or board.persistence or gpu.bus_id in self._held:
            raise codes.NvmlError(codes.Return.IN_USE)
        self.machine.restore(gpu)

    def _scheduled(self, device: client.Handle) -> machine.Gpu:
        gpu = self._gpu(device)
        if self.machine.profile.virtualization is codes.Virtualization.VGPU:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return gpu
