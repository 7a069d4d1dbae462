"""Settings of a GPU, made in its lane: a call or a program that hangs keeps no caller."""

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import gpu_calls

_SMI_S = 15.0
"""Longest time of nvidia-smi, which is killed earlier where it can be killed."""


class BoundedComputeModes:
    """Implements `ports.ModeKnob` by another, which is called in the GPU's lane."""

    def __init__(self, knob: ports.ComputeModeAccess, session: gpu_calls.GpuSession) -> None:
        self._knob = knob
        self._session = session

    def read(self, device: ids.GpuUuid | ids.MigUuid) -> int | None:
        """See `ports.ModeKnob`. Raises Hung, too."""
        lane = self._session.lane(device)
        return self._session.lanes.call(lane, lambda: self._knob.read(device))

    def write(self, device: ids.GpuUuid | ids.MigUuid, mode: int) -> None:
        """See `ports.ModeKnob`. Raises Hung, too."""
        lane = self._session.lane(device)
        self._session.lanes.call(lane, lambda: self._knob.write(device, mode))


class BoundedTimeSlices:
    """Implements `ports.TimeSlices` by another, which is called in the GPU's lane."""

    def __init__(self, slices: ports.TimeSlices, session: gpu_calls.GpuSession) -> None:
        self._slices = slices
        self._session = session

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        """See `ports.TimeSlices`. Raises Hung, too."""
        return self._session.lanes.call(
            gpu, lambda: self._slices.set_interval(gpu, interval), _SMI_S, "nvidia-smi"
        )
