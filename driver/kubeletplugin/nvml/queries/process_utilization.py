"""Utilization per process (NVML's process samples), and of the whole GPU."""

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
    """Implements `ports.UtilizationSampler`."""

    def __init__(self, session: gpu_calls.GpuSession) -> None:
        self._session = session

    def samples_since(self, gpu: ids.GpuUuid, stamp_us: int) -> tuple[ports.Sample, ...] | None:
        """Return each process active after that time, by pid; None if the GPU reports none.

        Raises DeviceFault. Samples above 100 percent, reported for some drivers, are ignored.
        """
        raw_samples = self._session.run_on(gpu, lambda handle: _read_samples(gpu, handle, stamp_us))
        if raw_samples is None:
            return None
        samples: dict[int, ports.Sample] = {}
        for sample in raw_samples:
            if sample.pid and 0 < sample.smUtil <= _WHOLE:
                samples[sample.pid] = ports.Sample(sample.pid, sample.smUtil, sample.timeStamp)
        return tuple(samples[pid] for pid in sorted(samples))

    def utilization_percent(self, gpu: ids.GpuUuid) -> int | None:
        """Return the whole GPU's utilization in percent; None with MIG on. Raises DeviceFault."""
        call = pynvml.nvmlDeviceGetUtilizationRates
        rates = self._session.run_on(
            gpu, lambda handle: nvml_errors.call_if_supported(gpu, call, handle)
        )
        return None if rates is None else int(rates.gpu)


def _read_samples(gpu: ids.GpuUuid, handle: object, stamp_us: int) -> Sequence[Any] | None:
    """Read the samples; retries, as processes may start between the size call and the read."""
    call = pynvml.nvmlDeviceGetProcessUtilization
    for _ in range(_TRIES):
        try:
            samples: Sequence[Any] | None = nvml_errors.call_if_supported(
                gpu, call, handle, stamp_us
            )
        except errors.DeviceFault as fault:
            if fault.code in _NOBODY:
                return ()
            if fault.code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                raise
            last = fault
        else:
            return samples
    raise last
