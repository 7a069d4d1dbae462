"""Who is on a GPU (NVML's nvmlDeviceGet{,MPS}ComputeRunningProcesses)."""

import pynvml

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import calls
from driver.kubeletplugin.nvml import session as sessions

_LISTS = (
    pynvml.nvmlDeviceGetComputeRunningProcesses,
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses,
)
"""nvidia-smi's types C and M; an MPS client, its M+C, is in both."""


class Busy:
    """Implements `ports.Processes` and `ports.Users`."""

    def __init__(self, session: sessions.Session) -> None:
        self._session = session

    def count(self, gpu: ids.GpuUuid) -> int:
        """How many compute processes are on the whole GPU. Raises DeviceFault."""
        with self._session.use():
            handle = calls.ask(gpu, pynvml.nvmlDeviceGetHandleByUUID, gpu)
            return len(calls.ask(gpu, pynvml.nvmlDeviceGetComputeRunningProcesses, handle))

    def of(self, gpu: ids.GpuUuid) -> tuple[ports.GpuProcess, ...]:
        """Every process that computes on the whole GPU, each once, by pid. Raises DeviceFault."""
        used: dict[int, int | None] = {}
        with self._session.use():
            handle = calls.ask(gpu, pynvml.nvmlDeviceGetHandleByUUID, gpu)
            for call in _LISTS:
                for one in calls.maybe(gpu, call, handle) or ():
                    # Between the two calls it may have grown; pynvml says None for "not available".
                    told = (used.get(one.pid), one.usedGpuMemory)
                    used[one.pid] = max((size for size in told if size is not None), default=None)
        return tuple(ports.GpuProcess(pid, used[pid]) for pid in sorted(used))
