"""Settings of a GPU, made in its lane: a call or a program that hangs keeps no caller."""

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import door

_SMI_S = 15.0
"""Longest time of nvidia-smi, which is killed earlier where it can be killed."""


class Modes:
    """Implements `ports.ComputeModes` by another, which is called in the GPU's lane."""

    def __init__(self, modes: ports.ComputeModes, session: door.Door) -> None:
        self._modes = modes
        self._session = session

    def open_up(self, gpu: ids.GpuUuid) -> int | None:
        """See `ports.ComputeModes`. Raises Hung, too."""
        lane = self._session.lane(gpu)
        return self._session.lanes.call(lane, lambda: self._modes.open_up(gpu))

    def put_back(self, gpu: ids.GpuUuid, mode: int) -> None:
        """See `ports.ComputeModes`. Raises Hung, too."""
        lane = self._session.lane(gpu)
        self._session.lanes.call(lane, lambda: self._modes.put_back(gpu, mode))

    def set_exclusive(self, gpu: ids.GpuUuid | ids.MigUuid, *, exclusive: bool) -> None:
        """See `ports.ComputeModes`. Raises Hung, too."""
        self._session.lanes.call(
            self._session.lane(gpu), lambda: self._modes.set_exclusive(gpu, exclusive=exclusive)
        )


class TimeSlices:
    """Implements `ports.TimeSlices` by another, which is called in the GPU's lane."""

    def __init__(self, slices: ports.TimeSlices, session: door.Door) -> None:
        self._slices = slices
        self._session = session

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        """See `ports.TimeSlices`. Raises Hung, too."""
        return self._session.lanes.call(
            gpu, lambda: self._slices.set_interval(gpu, interval), _SMI_S, "nvidia-smi"
        )
