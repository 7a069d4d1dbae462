"""GPU power draw, and used memory of MIG devices."""

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls

_MILLI = 1000


class NvmlMeter:
    """Implements `ports.Meter`."""

    def __init__(self, session: gpu_calls.GpuSession) -> None:
        self._session = session

    def power_watts(self, gpu: ids.GpuUuid) -> float | None:
        """Return the whole GPU's power draw in watts; None if not reported. Raises DeviceFault."""
        call = pynvml.nvmlDeviceGetPowerUsage
        milliwatts = self._session.run_on(
            gpu, lambda handle: nvml_errors.call_if_supported(gpu, call, handle)
        )
        return None if milliwatts is None else int(milliwatts) / _MILLI

    def used_bytes(self, device: ids.MigUuid) -> int | None:
        """Return the used memory of a MIG device; None if not reported. Raises DeviceFault."""
        call = pynvml.nvmlDeviceGetMemoryInfo
        memory = self._session.run_on(
            device, lambda handle: nvml_errors.call_if_supported(device, call, handle)
        )
        return None if memory is None else int(memory.used)
