"""What a GPU draws, and what of a MIG device's memory is used."""

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
        """What the whole GPU draws; None: it does not tell. Raises DeviceFault."""
        call = pynvml.nvmlDeviceGetPowerUsage
        drawn = self._session.run_on(
            gpu, lambda handle: nvml_errors.call_if_supported(gpu, call, handle)
        )
        return None if drawn is None else int(drawn) / _MILLI

    def used_bytes(self, device: ids.MigUuid) -> int | None:
        """The memory of a MIG device that is used; None: it does not tell. Raises DeviceFault."""
        call = pynvml.nvmlDeviceGetMemoryInfo
        memory = self._session.run_on(
            device, lambda handle: nvml_errors.call_if_supported(device, call, handle)
        )
        return None if memory is None else int(memory.used)
