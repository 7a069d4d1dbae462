"""Remembers each GPU's time slice, which nothing tells, so that it is set when it changes only.

nvidia-smi, which sets it, opens every GPU of the node: on a board of eight the Prepares of one
GPU's shares would wait for each other longer than its lock is waited for.

A slice is lost when the driver is loaded again, at a reboot and at a reset of the GPU. A load is
told by its identity; a reset of our own says so here, and nobody else can reset a GPU that NVML has
open in this process. What was before this process is not trusted.
"""

import json
from collections.abc import Callable
from pathlib import Path

from driver import ids
from driver.kubeletplugin import ports
from driver.runtime.files import atomic, failpoints

_VERSION = "proc/driver/nvidia/version"
_MODULE = "sys/module/nvidia"
_MODE = 0o600


class CachedTimeSlices:
    """Implements `ports.TimeSlices`; both plugins of a rolling update have the folder.

    `load` identifies the load of the driver, "" where nothing does: then nothing is remembered.
    """

    def __init__(self, slices: ports.TimeSlices, folder: Path, load: Callable[[], str]) -> None:
        self._slices = slices
        self._folder = folder
        self._load = load
        self._is_current = False

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        """Have it so; nothing is run where it was set so before. Raises NodeFault."""
        self._discard_earlier()
        path, load = self._folder / gpu, self._load()
        wanted = {"interval": interval, "load": load}
        known = _read_cached(path)
        if load and {name: known.get(name) for name in wanted} == wanted:
            lacking = known.get("unsupported")
            return ports.Unsupported(lacking) if lacking else None
        atomic.remove(path, failpoints.NO_OBSERVER, synced=False)  # until it is known how it went
        unsupported = self._slices.set_interval(gpu, interval)
        result = wanted if unsupported is None else {**wanted, "unsupported": unsupported.message}
        atomic.replace(
            path, json.dumps(result).encode(), _MODE, failpoints.NO_OBSERVER, synced=False
        )
        return unsupported

    def forget(self, gpu: ids.GpuUuid) -> None:
        """Its slice may be another now; whoever calls holds the GPU. Raises NodeFault."""
        atomic.remove(self._folder / gpu, failpoints.NO_OBSERVER, synced=False)

    def _discard_earlier(self) -> None:
        """Forget what was said before this process: a GPU may have been reset meanwhile."""
        if not self._is_current:
            for name in atomic.list_names(self._folder):
                atomic.remove(self._folder / name, failpoints.NO_OBSERVER, synced=False)
            self._is_current = True


def driver_load(host_root: Path, boot_id: str) -> str:
    """Identify the load of the kernel module, by the host's proc and sys; "" without a driver.

    A module that is loaded again has another entry in sysfs, where there is one.
    """
    try:
        version = (host_root / _VERSION).read_text()
    except OSError:
        return ""
    try:
        entry = (host_root / _MODULE).stat().st_ino
    except OSError:
        entry = 0
    return f"{boot_id} {entry} {version}"


def _read_cached(path: Path) -> dict[str, str]:
    """Read what is remembered; nothing of a file that is torn or not there. Raises NodeFault."""
    try:
        content = json.loads(atomic.read(path) or b"{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
