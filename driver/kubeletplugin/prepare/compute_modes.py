"""Persists the compute mode a GPU had before claims shared it, and restores it afterwards.

The mode is written before the first change, so that it is known whatever happens: a call may hang
and take effect later, and the process may end. A mode is lost when the driver is loaded again, and
with it the persisted value.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.runtime.files import atomic, failpoints

DEFAULT: Final = 0
EXCLUSIVE: Final = 3
"""Every process, or one alone (nvml.h, nvmlComputeMode_t)."""
_MODE: Final = 0o600


class PersistentComputeModes:
    """Implements `ports.ComputeModes`; both plugins of a rolling update use the folder.

    `load` identifies the load of the driver (`time_slices.driver_load`).
    """

    def __init__(
        self, access: ports.ComputeModeAccess, folder: Path, load: Callable[[], str]
    ) -> None:
        self._access = access
        self._folder = folder
        self._load = load

    def set_shared(
        self, gpu: ids.GpuUuid, *, exclusive: bool, fallback: int | None = None
    ) -> int | None:
        """See `ports.ComputeModes`. A mode that cannot be read is Unchanged."""
        try:
            current = self._access.read(gpu)
        except errors.Hung as hung:
            raise errors.HungUnchanged(hung.device, hung.call, hung.waited_s) from hung
        except errors.DeviceFault as fault:
            raise errors.Unchanged(fault.device, fault.call, fault.code, fault.text) from fault
        if current is None:
            return None
        original = self._read_mode(gpu)
        if original is None:
            original = current if fallback is None else fallback
            self._write_mode(gpu, original)
        self._set_mode(gpu, current, EXCLUSIVE if exclusive else DEFAULT)
        return original

    def restore(self, gpu: ids.GpuUuid, fallback: int | None = None) -> None:
        """See `ports.ComputeModes`."""
        original = self._read_mode(gpu)
        desired = fallback if original is None else original
        if desired is not None:
            self._set_mode(gpu, self._access.read(gpu), desired)
        atomic.remove(self._folder / gpu, failpoints.NO_OBSERVER, synced=False)

    def set_exclusive(self, instance: ids.MigUuid, *, exclusive: bool) -> None:
        """See `ports.ComputeModes`."""
        desired = EXCLUSIVE if exclusive else DEFAULT
        self._set_mode(instance, self._access.read(instance), desired)

    def _set_mode(
        self, device: ids.GpuUuid | ids.MigUuid, current: int | None, desired: int
    ) -> None:
        """Set a mode, unless it is set already, or the device has none."""
        if current not in {None, desired}:
            self._access.write(device, desired)

    def _write_mode(self, gpu: ids.GpuUuid, mode: int) -> None:
        content = json.dumps({"mode": mode, "load": self._load()}).encode()
        atomic.replace(self._folder / gpu, content, _MODE, failpoints.NO_OBSERVER, synced=False)

    def _read_mode(self, gpu: ids.GpuUuid) -> int | None:
        """Return the mode of this driver load; None if there is none. Raises NodeFault."""
        try:
            content = json.loads(atomic.read(self._folder / gpu) or b"{}")
        except ValueError:
            return None
        if not isinstance(content, dict) or content.get("load") != self._load():
            return None
        mode = content.get("mode")
        return mode if isinstance(mode, int) else None
