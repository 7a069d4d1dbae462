"""Caches each GPU's time slice, which cannot be read, so that it is set only when it changes.

nvidia-smi, which sets it, opens every GPU of the node: on a board of eight the Prepares of one
GPU's shares would wait for each other longer than the lock's limit.

A slice is lost when the driver is loaded again, at a reboot and at a reset of the GPU. A load is
detected by its identity; our own reset calls `forget`, and no other process can reset a GPU that
NVML has open in this process. Values from before this process are not trusted.
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
    """Implements `ports.TimeSlices`; both plugins of a rolling update use the folder.

    `load` identifies the load of the driver, "" if unknown: then nothing is cached.
    """

    def __init__(self, slices: ports.TimeSlices, folder: Path, load: Callable[[], str]) -> None:
        self._slices = slices
        self._folder = folder
        self._load = load
        self._is_current = False

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        """Set the interval, unless it is cached as set. Raises NodeFault."""
        self._discard_earlier()
        path, load = self._folder / gpu, self._load()
        desired = {"interval": interval, "load": load}
        cached = _read_cached(path)
        if load and {name: cached.get(name) for name in desired} == desired:
            reason = cached.get("unsupported")
            return ports.Unsupported(reason) if reason else None
        atomic.remove(path, failpoints.NO_OBSERVER, synced=False)  # until it is known how it went
        unsupported = self._slices.set_interval(gpu, interval)
        result = desired if unsupported is None else {**desired, "unsupported": unsupported.message}
        atomic.replace(
            path, json.dumps(result).encode(), _MODE, failpoints.NO_OBSERVER, synced=False
        )
        return unsupported

    def forget(self, gpu: ids.GpuUuid) -> None:
        """Drop the cached slice; the caller holds the GPU. Raises NodeFault."""
        atomic.remove(self._folder / gpu, failpoints.NO_OBSERVER, synced=False)

    def _discard_earlier(self) -> None:
        """Drop values from before this process: a GPU may have been reset meanwhile."""
        if not self._is_current:
            for name in atomic.list_names(self._folder):
                atomic.remove(self._folder / name, failpoints.NO_OBSERVER, synced=False)
            self._is_current = True


def driver_load(host_root: Path, boot_id: str) -> str:
    """Return an id of the kernel module's load, from the host's proc and sys; "" without one.

    A module that is loaded again has another entry in sysfs, if present.
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
    """Return the cached value; empty if the file is torn or missing. Raises NodeFault."""
    try:
        content = json.loads(atomic.read(path) or b"{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
