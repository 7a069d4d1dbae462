"""What a GPU draws, and what of a MIG device's memory is used."""

import pynvml

from driver import ids
from driver.kubeletplugin.nvml import calls
from driver.kubeletplugin.nvml import session as sessions

_MILLI = 1000


class Meter:
    """Implements `ports.Meter`."""

    def __init__(self, session: sessions.Session) -> None:
        self._session = session

    def watts(self, gpu: ids.GpuUuid) -> float | None:
        """What the whole GPU draws; None: it does not tell. Raises DeviceFault."""
        with self._session.use():
            handle = calls.ask(gpu, pynvml.nvmlDeviceGetHandleByUUID, gpu)
            found = calls.maybe(gpu, pynvml.nvmlDeviceGetPowerUsage, handle)
        return None if found is None else int(found) / _MILLI

    def used_bytes(self, device: ids.MigUuid) -> int | None:
        """The memory of a MIG device that is used; None: it does not tell. Raises DeviceFault."""
        with self._session.use():
            handle = calls.ask(device, pynvml.nvmlDeviceGetHandleByUUID, device)
            found = calls.maybe(device, pynvml.nvmlDeviceGetMemoryInfo, handle)
        return None if found is None else int(found.used)
