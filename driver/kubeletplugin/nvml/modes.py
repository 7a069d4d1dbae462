"""A GPU's compute mode: who may use it at once (NVML's nvmlDeviceSetComputeMode; root's)."""

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import calls, door


class Modes:
    """Implements `ports.ComputeModes`. With MPS the server is the one process of a GPU."""

    def __init__(self, session: door.Door) -> None:
        self._session = session

    def set_exclusive(self, gpu: ids.GpuUuid | ids.MigUuid, *, exclusive: bool) -> None:
        """Have it so; nothing is written where it is so already. Raises DeviceFault.

        With MIG on, whole GPUs have no compute mode of their own: there is nothing to set. Their
        MIG devices may have one.
        """
        wanted = (
            pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
            if exclusive
            else pynvml.NVML_COMPUTEMODE_DEFAULT
        )
        with self._session.use() as number:
            handle = self._session.handle(gpu, number)
            now = calls.maybe(gpu, pynvml.nvmlDeviceGetComputeMode, handle)
            if now is not None and now != wanted:
                calls.ask(gpu, pynvml.nvmlDeviceSetComputeMode, handle, wanted)
