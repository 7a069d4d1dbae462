"""GPU settings applied in the GPU's lane, so that a hanging call or program blocks no caller."""

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import gpu_calls

_SMI_S = 15.0
"""Limit of nvidia-smi, which is killed earlier if possible."""


class BoundedComputeModes:
    """Implements `ports.ComputeModeAccess`: runs another implementation in the GPU's lane."""

    def __init__(self, access: ports.ComputeModeAccess, session: gpu_calls.GpuSession) -> None:
        self._knob = access
        self._session = session

    def read(self, device: ids.GpuUuid | ids.MigUuid) -> int | None:
        """See `ports.ComputeModeAccess`. Also raises Hung."""
        lane = self._session.lane(device)
        return self._session.lanes.call(lane, lambda: self._knob.read(device))

    def write(self, device: ids.GpuUuid | ids.MigUuid, mode: int) -> None:
        """See `ports.ComputeModeAccess`. Also raises Hung."""
        lane = self._session.lane(device)
        self._session.lanes.call(lane, lambda: self._knob.write(device, mode))


class BoundedTimeSlices:
    """Implements `ports.TimeSlices`: runs another implementation in the GPU's lane."""

    def __init__(self, slices: ports.TimeSlices, session: gpu_calls.GpuSession) -> None:
        self._slices = slices
        self._session = session

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        """See `ports.TimeSlices`. Also raises Hung."""
        return self._session.lanes.call(
            gpu, lambda: self._slices.set_interval(gpu, interval), _SMI_S, "nvidia-smi"
        )
