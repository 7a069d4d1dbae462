"""A GPU's compute mode: who may use it at once (NVML's nvmlDeviceSetComputeMode; root's)."""

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls


class NvmlComputeModes:
    """Implements `ports.ModeKnob`. With MPS the server is the one process of a GPU.

    With MIG on, a whole GPU's mode cannot be set; its MIG devices may have modes of their own.
    """

    def __init__(self, session: gpu_calls.GpuSession) -> None:
        self._session = session

    def read(self, device: ids.GpuUuid | ids.MigUuid) -> int | None:
        """Its mode; None of a device without. Raises DeviceFault."""
        with self._session.use() as number:
            handle = self._session.handle(device, number)
            mode: int | None = nvml_errors.call_if_supported(
                device, pynvml.nvmlDeviceGetComputeMode, handle
            )
            return mode

    def write(self, device: ids.GpuUuid | ids.MigUuid, mode: int) -> None:
        """Have a mode. Raises DeviceFault."""
        with self._session.use() as number:
            handle = self._session.handle(device, number)
            nvml_errors.call_nvml(device, pynvml.nvmlDeviceSetComputeMode, handle, mode)
