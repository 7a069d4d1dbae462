"""A GPU's compute mode: who may use it at once (NVML's nvmlDeviceSetComputeMode; root's)."""

from enum import IntEnum

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import calls
from driver.kubeletplugin.nvml import session as sessions


class ComputeMode(IntEnum):
    """`nvmlComputeMode_t`; EXCLUSIVE_PROCESS with MPS: the server is the one process."""

    DEFAULT = pynvml.NVML_COMPUTEMODE_DEFAULT
    PROHIBITED = pynvml.NVML_COMPUTEMODE_PROHIBITED
    EXCLUSIVE_PROCESS = pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS


class Modes:
    """Thread safe as NVML is; the caller holds the GPU."""

    def __init__(self, session: sessions.Session) -> None:
        self._session = session

    def read(self, gpu: ids.GpuUuid) -> ComputeMode:
        """As it is now. Raises DeviceFault."""
        with self._session.use():
            handle = calls.ask(gpu, pynvml.nvmlDeviceGetHandleByUUID, gpu)
            return ComputeMode(calls.ask(gpu, pynvml.nvmlDeviceGetComputeMode, handle))

    def set(self, gpu: ids.GpuUuid, mode: ComputeMode) -> None:
        """Have it so; nothing is written where it is so already. Raises DeviceFault.

        With MIG on, whole GPUs have no compute mode of their own: there is nothing to set.
        """
        with self._session.use():
            handle = calls.ask(gpu, pynvml.nvmlDeviceGetHandleByUUID, gpu)
            now = calls.maybe(gpu, pynvml.nvmlDeviceGetComputeMode, handle)
            if now is not None and now != mode:
                calls.ask(gpu, pynvml.nvmlDeviceSetComputeMode, handle, int(mode))
