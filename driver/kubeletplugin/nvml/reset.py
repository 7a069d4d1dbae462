"""GPU reset that closes the GPU in this process first.

nvidia-smi refuses while the GPU is open anywhere: NVML in this process keeps it open from the first
handle until shutdown, and so does persistence mode.
"""

import functools
from collections.abc import Callable
from typing import Final

import pynvml
import structlog

from driver import errors, ids
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls

_log = structlog.get_logger(__name__)
PATIENCE_S: Final = 10.0
"""Longest wait for calls of NVML to return; a wait for events takes a second."""
_LIMIT_S: Final = 70.0
"""Limit of the program, which is killed earlier if possible."""


class GpuResetter:
    """Resets a GPU; `act` runs once no process has it open; raises NodeFault."""

    def __init__(self, session: gpu_calls.GpuSession, act: Callable[[ids.GpuUuid], None]) -> None:
        self._session = session
        self._act = act

    def reset(self, gpu: ids.GpuUuid) -> None:
        """Reset an idle GPU, whose lock the caller holds. All NVML calls wait meanwhile.

        Persistence mode is restored in any case. Raises NodeFault, DeviceFault.
        """
        persistent = self._disable_persistence(gpu)
        try:
            with self._session.paused(PATIENCE_S):
                self._session.lanes.call(
                    gpu, functools.partial(self._act, gpu), _LIMIT_S, "nvidia-smi"
                )
        finally:
            if persistent:
                self._restore_persistence(gpu)

    def _disable_persistence(self, gpu: ids.GpuUuid) -> bool:
        """Turn persistence mode off; return whether it was on. Some GPUs have none."""
        return self._session.run_on(gpu, lambda handle: _disable(gpu, handle))

    def _restore_persistence(self, gpu: ids.GpuUuid) -> None:
        try:
            call = pynvml.nvmlDeviceSetPersistenceMode
            self._session.run_on(gpu, lambda handle: nvml_errors.call_nvml(gpu, call, handle, 1))
        except errors.DeviceFault as fault:
            _log.warning("persistence mode stays off", gpu=gpu, error=str(fault))


def _disable(gpu: str, handle: object) -> bool:
    if not nvml_errors.call_if_supported(gpu, pynvml.nvmlDeviceGetPersistenceMode, handle):
        return False
    nvml_errors.call_nvml(gpu, pynvml.nvmlDeviceSetPersistenceMode, handle, 0)
    return True
