"""A GPU's compute mode (NVML's nvmlDeviceSetComputeMode; requires root)."""

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls


class NvmlComputeModes:
    """Implements `ports.ComputeModeAccess`. With MPS the server is the only process of a GPU.

    With MIG on, a whole GPU's mode cannot be set; its MIG devices may have modes of their own.
    """

    def __init__(self, session: gpu_calls.GpuSession) -> None:
        self._session = session

    def read(self, device: ids.GpuUuid | ids.MigUuid) -> int | None:
        """Return the mode; None if the device has none. Raises DeviceFault."""
        with self._session.use() as number:
            handle = self._session.handle(device, number)
            mode: int | None = nvml_errors.call_if_supported(
                device, pynvml.nvmlDeviceGetComputeMode, handle
            )
            return mode

    def write(self, device: ids.GpuUuid | ids.MigUuid, mode: int) -> None:
        """Set the mode. Raises DeviceFault."""
        with self._session.use() as number:
            handle = self._session.handle(device, number)
            nvml_errors.call_nvml(device, pynvml.nvmlDeviceSetComputeMode, handle, mode)
