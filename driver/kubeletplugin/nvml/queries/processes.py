"""Processes on a GPU (NVML's lists of compute, MPS and graphics processes)."""

import pynvml

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls

_LISTS = (
    pynvml.nvmlDeviceGetComputeRunningProcesses,
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses,
)
"""nvidia-smi's types C and M; an MPS client, its M+C, is in both."""


class NvmlProcesses:
    """Implements `ports.ProcessCounter` and `ports.ProcessLister`."""

    def __init__(self, session: gpu_calls.GpuSession) -> None:
        self._session = session

    def count(self, gpu: ids.GpuUuid) -> int:
        """Return the number of compute processes on the whole GPU. Raises DeviceFault."""
        call = pynvml.nvmlDeviceGetComputeRunningProcesses
        return self._session.run_on(
            gpu, lambda handle: len(nvml_errors.call_nvml(gpu, call, handle))
        )

    def list_processes(self, gpu: ids.GpuUuid) -> tuple[ports.GpuProcess, ...]:
        """Return each compute process of the whole GPU once, by pid. Raises DeviceFault."""
        used = self._session.run_on(gpu, lambda handle: _used_bytes(gpu, handle))
        return tuple(ports.GpuProcess(pid, used[pid]) for pid in sorted(used))

    def count_all(self, gpu: ids.GpuUuid) -> int:
        """Count graphics processes too; one that is both counts twice. Raises DeviceFault."""
        return self._session.run_on(gpu, lambda handle: _count_all(gpu, handle))


def _used_bytes(gpu: str, handle: object) -> dict[int, int | None]:
    """Return the bytes of each process, by pid."""
    used: dict[int, int | None] = {}
    for call in _LISTS:
        for process in nvml_errors.call_if_supported(gpu, call, handle) or ():
            # It may have grown between the two calls; pynvml returns None for "not available".
            sizes = (used.get(process.pid), process.usedGpuMemory)
            used[process.pid] = max((size for size in sizes if size is not None), default=None)
    return used


def _count_all(gpu: str, handle: object) -> int:
    compute = nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    graphics = nvml_errors.call_if_supported(
        gpu, pynvml.nvmlDeviceGetGraphicsRunningProcesses, handle
    )
    return len(compute) + len(graphics or ())
