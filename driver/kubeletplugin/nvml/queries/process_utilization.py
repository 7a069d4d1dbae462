"""Who is at work on a GPU (NVML's samples of processes, and the utilization of the whole GPU)."""

from collections.abc import Sequence
from typing import Any

import pynvml

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import gpu_calls

_NOBODY = {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_SUCCESS}
"""No samples. pynvml raises a success when there is nothing to make room for."""
_TRIES = 3
_WHOLE = 100


class NvmlUtilization:
    """Implements `ports.Workers`."""

    def __init__(self, session: gpu_calls.GpuSession) -> None:
        self._session = session

    def samples_since(self, gpu: ids.GpuUuid, stamp_us: int) -> tuple[ports.Sample, ...] | None:
        """Every process that worked after that time, by pid; None: the GPU does not tell.

        Raises DeviceFault. Samples beyond 100 percent are said to be seen on some drivers, and are
        disregarded.
        """
        found = self._session.run_on(gpu, lambda handle: _read_samples(gpu, handle, stamp_us))
        if found is None:
            return None
        told: dict[int, ports.Sample] = {}
        for one in found:
            if one.pid and 0 < one.smUtil <= _WHOLE:
                told[one.pid] = ports.Sample(one.pid, one.smUtil, one.timeStamp)
        return tuple(told[pid] for pid in sorted(told))

    def utilization_percent(self, gpu: ids.GpuUuid) -> int | None:
        """How busy the whole GPU is now; None with MIG on. Raises DeviceFault."""
        call = pynvml.nvmlDeviceGetUtilizationRates
        rates = self._session.run_on(
            gpu, lambda handle: nvml_errors.call_if_supported(gpu, call, handle)
        )
        return None if rates is None else int(rates.gpu)


def _read_samples(gpu: ids.GpuUuid, handle: object, stamp_us: int) -> Sequence[Any] | None:
    """Between the call for the size and the one for the samples a process may have come."""
    call = pynvml.nvmlDeviceGetProcessUtilization
    for _ in range(_TRIES):
        try:
            found: Sequence[Any] | None = nvml_errors.call_if_supported(gpu, call, handle, stamp_us)
        except errors.DeviceFault as fault:
            if fault.code in _NOBODY:
                return ()
            if fault.code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                raise
            last = fault
        else:
            return found
    raise last
