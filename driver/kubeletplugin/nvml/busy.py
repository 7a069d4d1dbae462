"""Who is on a GPU (NVML's lists of compute and of graphics processes)."""

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import calls
from driver.kubeletplugin.nvml import session as sessions


class Busy:
    """Implements `ports.Processes`."""

    def __init__(self, session: sessions.Session) -> None:
        self._session = session

    def count(self, gpu: ids.GpuUuid) -> int:
        """How many compute processes are on the whole GPU. Raises DeviceFault."""
        with self._session.use():
            handle = calls.ask(gpu, pynvml.nvmlDeviceGetHandleByUUID, gpu)
            return len(calls.ask(gpu, pynvml.nvmlDeviceGetComputeRunningProcesses, handle))

    def count_all(self, gpu: ids.GpuUuid) -> int:
        """As `count`, graphics processes too; one that is both counts twice. Raises DeviceFault."""
        with self._session.use():
            handle = calls.ask(gpu, pynvml.nvmlDeviceGetHandleByUUID, gpu)
            computing = calls.ask(gpu, pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
            drawing = calls.maybe(gpu, pynvml.nvmlDeviceGetGraphicsRunningProcesses, handle)
            return len(computing) + len(drawing or ())
