"""A GPU's compute mode: who may use it at once (NVML's nvmlDeviceSetComputeMode; root's)."""

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import calls, door


class Modes:
    """Implements `ports.ComputeModes`. With MPS the server is the one process of a GPU."""

    def __init__(self, session: door.Door) -> None:
        self._session = session

    def open_up(self, gpu: ids.GpuUuid) -> int | None:
        """Let every process in; the mode that was before. Raises DeviceFault.

        None where every process may be on it already, or where it has no mode of its own.
        """
        before = self._set(gpu, pynvml.NVML_COMPUTEMODE_DEFAULT)
        return None if before == pynvml.NVML_COMPUTEMODE_DEFAULT else before

    def put_back(self, gpu: ids.GpuUuid, mode: int) -> None:
        """Have the mode that was before. Raises DeviceFault."""
        self._set(gpu, mode)

    def set_exclusive(self, gpu: ids.GpuUuid | ids.MigUuid, *, exclusive: bool) -> None:
        """Have it so; nothing is written where it is so already. Raises DeviceFault.

        With MIG on, whole GPUs have no compute mode of their own: there is nothing to set. Their
        MIG devices may have one.
        """
        self._set(
            gpu,
            pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
            if exclusive
            else pynvml.NVML_COMPUTEMODE_DEFAULT,
        )

    def _set(self, device: ids.GpuUuid | ids.MigUuid, wanted: int) -> int | None:
        """Have a mode; the one before, None of a device without."""
        with self._session.use() as number:
            handle = self._session.handle(device, number)
            now: int | None = calls.maybe(device, pynvml.nvmlDeviceGetComputeMode, handle)
            if now is not None and now != wanted:
                calls.ask(device, pynvml.nvmlDeviceSetComputeMode, handle, wanted)
            return now
